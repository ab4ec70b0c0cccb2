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

// Mounts of the runner and of the plan, for the containers of a pod that use them.
var (
	binMount  = corev1.VolumeMount{Name: "assay-bin", MountPath: binFolder, ReadOnly: true}
	planMount = corev1.VolumeMount{Name: "assay-plan", MountPath: planFolder, ReadOnly: true}
)

// References that Argo replaces; both are made by Assay or Argo.
const (
	blockReference = "{{inputs.parameters.block}}"
	nodeReference  = "{{inputs.parameters.node}}"
	// displayReference refers to the result of displayName, which consists of letters, digits, dots and hyphens.
	displayReference = "{{inputs.parameters.display}}"
	podReference     = "{{pod.name}}"
)

// block is the template of every block: the runner inside the workload's image, on one node, with whole CPUs.
func block(config Config, exp *experiment.Experiment, wave int) Template {
	run, room := exp.Run, scratchOf(exp)
	return Template{
		Name:         blockTemplate,
		Annotations:  map[string]string{displayAnnotation: displayReference},
		Metadata:     &Metadata{Labels: map[string]string{executor.PartLabel: executor.BlockPart}, Annotations: blockAnnotations(config.Bucket)},
		Inputs:       Parameters{Parameters: blockInputs()},
		Affinity:     onNode(nodeReference),
		Tolerations:  tolerations(exp),
		PodSpecPatch: blockPatch(config, exp.Plan.Placement),
		// Only failures of the infrastructure are retried, because the runner exits 0 when a trial fails. A maxDuration would count from
		// the first start and deny long blocks their retries.
		RetryStrategy: retries(exp.Plan.Retries),
		Volumes: []corev1.Volume{
			emptyDir("assay-bin", binRoom), room.volume(), noToken,
			{Name: "assay-plan", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: executor.Name(run.Name, wave)},
			}}},
		},
		InitContainers: []corev1.Container{{
			Name: executor.InstallContainer, Image: config.RunnerImage, ImagePullPolicy: config.PullPolicy,
			Command:         []string{"/assay-runner", "install", "--to", binFolder},
			Resources:       config.preparing(exp.Plan.Placement),
			VolumeMounts:    []corev1.VolumeMount{{Name: "assay-bin", MountPath: binFolder}, noTokenMount},
			SecurityContext: containerSecurity(true),
		}},
		Container: &corev1.Container{
			Image: exp.Plan.Workload.Image,
			Command: append([]string{
				binFolder + "/assay-runner", "block", "--wave", planFolder + "/" + executor.WaveFile, "--block", blockReference,
				"--keeper", "unix:" + keeperSocket, "--alone",
			}, room.arguments()...),
			Resources:       stored(blockResources(exp.Plan.Placement), logRoom+binRoom+room.stored()),
			VolumeMounts:    []corev1.VolumeMount{binMount, planMount, {Name: scratchVolume, MountPath: scratchFolder}, noTokenMount},
			SecurityContext: containerSecurity(true),
		},
	}
}

// unlessDone is the condition of a retry. A container that ended with 0 has done its work, and its pod was lost afterwards, or was ended
// because another container kept it. Argo notes the exit code as soon as the container has ended.
const unlessDone = `lastRetry.exitCode != "0"`

// retries returns the retry strategy of pods that were lost, with exponential backoff.
func retries(limit int) *RetryStrategy {
	return &RetryStrategy{
		Limit: ptr.To(intstr.FromInt32(int32(limit))), RetryPolicy: "Always", Expression: unlessDone,
		Backoff: &Backoff{Duration: "5s", Factor: ptr.To(intstr.FromInt32(2))},
	}
}

// onNode pins a pod by the node's name, because the hostname label may differ from it.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		}}},
	}}
}

// tolerations returns the tolerations in the run's placement and, if the run has nodes exclusively, that of the lease's taint.
func tolerations(exp *experiment.Experiment) []corev1.Toleration {
	out := slices.Clone(exp.Plan.Placement.Tolerations)
	if exp.Plan.Placement.Exclusive == experiment.ExclusiveNode {
		out = append(out, lease.Toleration(exp.Run.UID))
	}
	return out
}

// blockAsks returns the resource requests of a block's container.
func blockAsks(placement experiment.Placement) corev1.ResourceList {
	cpus := *resource.NewQuantity(int64(placement.CPUs), resource.DecimalSI)
	return corev1.ResourceList{corev1.ResourceCPU: cpus, corev1.ResourceMemory: placement.Memory}
}

// blockResources returns limits equal to the requests, so that the pod is Guaranteed and the kubelet's static CPU manager pins it to
// exclusive CPUs. Without exclusivity there is no CPU limit, so that the pod is never throttled.
func blockResources(placement experiment.Placement) corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: blockAsks(placement), Limits: blockAsks(placement)}
	if placement.Exclusive == experiment.ExclusiveNone {
		delete(out.Limits, corev1.ResourceCPU)
	}
	return out
}
