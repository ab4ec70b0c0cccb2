package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkRevisionSpec is the revision that CI reports. It is immutable.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a recorded revision never changes: record another one"
type BenchmarkRevisionSpec struct {
	// series that it belongs to, as schedules name it.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Series string `json:"series"`

	Revision `json:",inline"`

	// reportedAt is when it was reported, by the clock of who did. It only orders revisions that the API server was given in one second.
	// +optional
	ReportedAt *metav1.MicroTime `json:"reportedAt,omitempty"`
}

// BenchmarkRevisionStatus is the state of a revision.
type BenchmarkRevisionStatus struct {
	// sequence is the number of the schedule's run that measured it, or that passed it over for a newer one. Absent until then.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`

	// measured reports whether that run was for this revision.
	// +optional
	Measured bool `json:"measured,omitempty"`
}

// BenchmarkRevision is a revision of a program that CI reports (assay record), for a schedule of its series to measure.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=brev,categories=assay
// +kubebuilder:printcolumn:name="Series",type=string,JSONPath=`.spec.series`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.spec.revision`
// +kubebuilder:printcolumn:name="Run",type=integer,JSONPath=`.status.sequence`
// +kubebuilder:printcolumn:name="Measured",type=boolean,JSONPath=`.status.measured`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BenchmarkRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the reported revision.
	// +required
	Spec BenchmarkRevisionSpec `json:"spec"`

	// status is its state.
	// +optional
	Status BenchmarkRevisionStatus `json:"status,omitzero"`
}

// BenchmarkRevisionList is a list of BenchmarkRevisions.
// +kubebuilder:object:root=true
type BenchmarkRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BenchmarkRevision `json:"items"`
}
