package argo

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
)

// Folders inside a block's container.
const (
	binFolder  = "/assay/bin"
	planFolder = "/assay/plan"
)

// The runner and the plan, for whatever of a pod uses them.
var (
	binMount  = corev1.VolumeMount{Name: "assay-bin", MountPath: binFolder, ReadOnly: true}
	planMount = corev1.VolumeMount{Name: "assay-plan", MountPath: planFolder, ReadOnly: true}
)

// References that Argo replaces; both are made by Assay or Argo.
const (
	blockReference = "{{inputs.parameters.block}}"
	nodeReference  = "{{inputs.parameters.node}}"
	// displayReference is made by displayName, which leaves nothing in it that people wrote but letters, digits and hyphens.
	displayReference = "{{inputs.parameters.display}}"
	podReference     = "{{pod.name}}"
)

// block is the template of every block: the runner inside the workload's image, on one node, with whole CPUs.
func block(config Config, exp *experiment.Experiment, wave int) Template {
	run := exp.Run
	return Template{
		Name:         blockTemplate,
		Annotations:  map[string]string{displayAnnotation: displayReference},
		Metadata:     &Metadata{Labels: map[string]string{executor.PartLabel: executor.BlockPart}, Annotations: blockAnnotations(config.Bucket)},
		Inputs:       Parameters{Parameters: blockInputs()},
		Affinity:     onNode(nodeReference),
		Tolerations:  tolerations(exp),
		PodSpecPatch: blockPatch(config, exp.Plan.Placement),
		// A trial that fails is a result and the runner exits 0: a pod that fails was lost to the infrastructure. There is no
		// maxDuration: it would count from the first start and deny long blocks their retries.
		RetryStrategy: retries(exp.Plan.Retries),
		Volumes: []corev1.Volume{
			emptyDir("assay-bin", binRoom), emptyDir("tmp", tmpRoom), noToken,
			{Name: "assay-plan", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: executor.Name(run.Name, wave)},
			}}},
		},
		InitContainers: []corev1.Container{{
			Name: "install", Image: config.RunnerImage, ImagePullPolicy: config.PullPolicy,
			Command:         []string{"/assay-runner", "install", "--to", binFolder},
			Resources:       config.preparing(exp.Plan.Placement),
			VolumeMounts:    []corev1.VolumeMount{{Name: "assay-bin", MountPath: binFolder}, noTokenMount},
			SecurityContext: containerSecurity(true),
		}},
		Container: &corev1.Container{
			Image: exp.Plan.Workload.Image,
			Command: []string{
				binFolder + "/assay-runner", "block", "--wave", planFolder + "/" + executor.WaveFile, "--block", blockReference,
				"--keeper", "unix:" + keeperSocket, "--alone",
			},
			Resources:    stored(blockResources(exp.Plan.Placement), layerRoom+binRoom+tmpRoom),
			VolumeMounts: []corev1.VolumeMount{binMount, planMount, {Name: "tmp", MountPath: "/tmp"}, noTokenMount},
			// A workload may write beside itself: a read-only root would be one more way in which it differs from production.
			SecurityContext: containerSecurity(false),
		},
	}
}

// retries runs a pod again that was lost, with more and more time between.
func retries(limit int) *RetryStrategy {
	return &RetryStrategy{
		Limit: ptr.To(intstr.FromInt32(int32(limit))), RetryPolicy: "Always",
		Backoff: &Backoff{Duration: "5s", Factor: ptr.To(intstr.FromInt32(2))},
	}
}

// onNode pins a pod by the node's name; the hostname label may be something else.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		}}},
	}}
}

// tolerations of the run's pods: those it asks for, and that of its own taint on nodes it has for itself.
func tolerations(exp *experiment.Experiment) []corev1.Toleration {
	out := slices.Clone(exp.Plan.Placement.Tolerations)
	if exp.Plan.Placement.Exclusive == experiment.ExclusiveNode {
		out = append(out, lease.Toleration(exp.Run.UID))
	}
	return out
}

// blockAsks is what a block asks of its node.
func blockAsks(placement experiment.Placement) corev1.ResourceList {
	cpus := *resource.NewQuantity(int64(placement.CPUs), resource.DecimalSI)
	return corev1.ResourceList{corev1.ResourceCPU: cpus, corev1.ResourceMemory: placement.Memory}
}

// blockResources requests what it limits, so that the pod is Guaranteed and the kubelet's static CPU manager gives it CPUs
// of its own. Without exclusivity there is no CPU limit: the pod shares, and is never throttled.
func blockResources(placement experiment.Placement) corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: blockAsks(placement), Limits: blockAsks(placement)}
	if placement.Exclusive == experiment.ExclusiveNone {
		delete(out.Limits, corev1.ResourceCPU)
	}
	return out
}
