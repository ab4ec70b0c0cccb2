package argo

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GroupVersion is Argo's API. The types below are the part of it that Assay writes and reads. Argo's own package depends on a gRPC stack
// and 72,000 generated lines, and the node statuses of a Workflow, which Assay does not read, are most of its size in memory.
var GroupVersion = schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"}

// AddToScheme adds Argo's Workflow to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Workflow{}, &WorkflowList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Workflow is an Argo Workflow.
// +kubebuilder:object:root=true
type Workflow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// WorkflowList is a list of Workflows.
// +kubebuilder:object:root=true
type WorkflowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workflow `json:"items"`
}

// Spec is the desired state of a Workflow.
// +kubebuilder:object:generate=true
type Spec struct {
	Entrypoint         string                     `json:"entrypoint,omitempty"`
	OnExit             string                     `json:"onExit,omitempty"`
	Suspend            *bool                      `json:"suspend,omitempty"`
	Shutdown           Shutdown                   `json:"shutdown,omitempty"`
	ServiceAccountName string                     `json:"serviceAccountName,omitempty"`
	PodGC              *PodGC                     `json:"podGC,omitempty"`
	TTLStrategy        *TTLStrategy               `json:"ttlStrategy,omitempty"`
	PodMetadata        *Metadata                  `json:"podMetadata,omitempty"`
	PodSpecPatch       string                     `json:"podSpecPatch,omitempty"`
	SecurityContext    *corev1.PodSecurityContext `json:"securityContext,omitempty"`
	Volumes            []corev1.Volume            `json:"volumes,omitempty"`
	Templates          []Template                 `json:"templates,omitempty"`
}

// Shutdown makes Argo end a workflow early.
type Shutdown string

// Shutdowns.
const (
	// Stop ends the running pods and still runs the exit handler.
	Stop Shutdown = "Stop"
	// Terminate runs nothing more.
	Terminate Shutdown = "Terminate"
)

// PodGC sets which pods Argo deletes.
// +kubebuilder:object:generate=true
type PodGC struct {
	Strategy string `json:"strategy,omitempty"`
	// LabelSelector selects the pods; nil is all of them.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// TTLStrategy sets when Argo deletes a workflow that has ended.
// +kubebuilder:object:generate=true
type TTLStrategy struct {
	SecondsAfterCompletion *int32 `json:"secondsAfterCompletion,omitempty"`
}

// Metadata is added to pods.
// +kubebuilder:object:generate=true
type Metadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Template is one kind of node.
// +kubebuilder:object:generate=true
type Template struct {
	Name string `json:"name"`
	// Annotations are for Argo, those of Metadata for the pod.
	Annotations map[string]string   `json:"annotations,omitempty"`
	Metadata    *Metadata           `json:"metadata,omitempty"`
	Inputs      Parameters          `json:"inputs,omitzero"`
	DAG         DAG                 `json:"dag,omitzero"`
	Affinity    *corev1.Affinity    `json:"affinity,omitempty"`
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PodSpecPatch goes on top of the workflow's.
	PodSpecPatch string `json:"podSpecPatch,omitempty"`
	// ActiveDeadlineSeconds is that of the pod.
	ActiveDeadlineSeconds *intstr.IntOrString `json:"activeDeadlineSeconds,omitempty"`
	RetryStrategy         *RetryStrategy      `json:"retryStrategy,omitempty"`
	Volumes               []corev1.Volume     `json:"volumes,omitempty"`
	InitContainers        []corev1.Container  `json:"initContainers,omitempty"`
	Container             *corev1.Container   `json:"container,omitempty"`
}

// Parameters are the inputs of a template, or the arguments of a task.
// +kubebuilder:object:generate=true
type Parameters struct {
	Parameters []Parameter `json:"parameters,omitempty"`
}

// Parameter is a named value.
// +kubebuilder:object:generate=true
type Parameter struct {
	Name  string  `json:"name"`
	Value *string `json:"value,omitempty"`
}

// DAG is a graph of tasks.
// +kubebuilder:object:generate=true
type DAG struct {
	FailFast *bool  `json:"failFast,omitempty"`
	Tasks    []Task `json:"tasks"`
}

// Task is a node of a DAG.
// +kubebuilder:object:generate=true
type Task struct {
	Name      string     `json:"name"`
	Template  string     `json:"template"`
	Depends   string     `json:"depends,omitempty"`
	Arguments Parameters `json:"arguments,omitzero"`
}

// RetryStrategy sets when Argo retries a node.
// +kubebuilder:object:generate=true
type RetryStrategy struct {
	Limit       *intstr.IntOrString `json:"limit,omitempty"`
	RetryPolicy string              `json:"retryPolicy,omitempty"`
	// Expression must also hold before a retry.
	Expression string   `json:"expression,omitempty"`
	Backoff    *Backoff `json:"backoff,omitempty"`
}

// Backoff sets the delay between retries.
// +kubebuilder:object:generate=true
type Backoff struct {
	Duration string              `json:"duration,omitempty"`
	Factor   *intstr.IntOrString `json:"factor,omitempty"`
}

// Status is the state of a Workflow. It has no results; those are in the ledger.
// +kubebuilder:object:generate=true
type Status struct {
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`
}

// Ended reports whether the Workflow has finished.
func (s Status) Ended() bool {
	return s.Phase == "Succeeded" || s.Phase == "Failed" || s.Phase == "Error"
}
