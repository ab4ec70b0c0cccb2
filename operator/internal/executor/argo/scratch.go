package argo

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// Sizes of the scratch folder where the template has none, in bytes.
const (
	memoryRoom = 512 << 20
	diskRoom   = 4 << 30
)

const (
	scratchVolume = "tmp"
	scratchFolder = "/tmp"
)

// scratch is the only volume that trials can write to. The root of their container is read-only, and the runner confines them to this
// folder, because the kubelet measures other places too rarely to bound a program that writes at the full speed of a disk.
type scratch struct {
	medium assayv1alpha1.ScratchMedium
	bytes  int64
}

// scratchOf returns the scratch folder of a run's blocks. The experiment has the template as it was accepted.
func scratchOf(exp *experiment.Experiment) scratch {
	var template struct {
		Scratch *assayv1alpha1.Scratch `json:"scratch"`
	}
	// It was written or read as a whole template before, so that it can be decoded. Otherwise the default bounds the trials.
	_ = json.Unmarshal(exp.Template, &template)
	memory := exp.Plan.Placement.Memory.Value()
	out := scratch{medium: assayv1alpha1.ScratchMemory, bytes: min(memory/2, memoryRoom)}
	if template.Scratch == nil {
		return out
	}
	if out.medium = template.Scratch.Medium; out.medium == assayv1alpha1.ScratchDisk {
		out.bytes = diskRoom
	}
	if size := template.Scratch.Size; size != nil && size.Sign() > 0 {
		out.bytes = size.Value()
	}
	if out.medium == assayv1alpha1.ScratchMemory {
		out.bytes = min(out.bytes, memory)
	}
	return out
}

// volume returns the volume. One in memory counts for the memory of the container that writes to it, so that the pod stays Guaranteed.
func (s scratch) volume() corev1.Volume {
	out := emptyDir(scratchVolume, s.bytes)
	if s.medium == assayv1alpha1.ScratchMemory {
		out.EmptyDir.Medium = corev1.StorageMediumMemory
	}
	return out
}

// stored returns the bytes on the disk of the node.
func (s scratch) stored() int64 {
	if s.medium == assayv1alpha1.ScratchMemory {
		return 0
	}
	return s.bytes
}

// arguments returns the arguments by which the runner confines trials to the folder.
func (s scratch) arguments() []string {
	return []string{
		"--scratch", scratchFolder, "--scratch-bytes", strconv.FormatInt(s.bytes, 10), "--scratch-medium", strings.ToLower(string(s.medium)),
	}
}

// addStored adds bytes to the limit of a container's ephemeral storage.
func addStored(resources *corev1.ResourceRequirements, bytes int64) {
	limit := resources.Limits[corev1.ResourceEphemeralStorage]
	limit.Add(*resource.NewQuantity(bytes, resource.BinarySI))
	resources.Limits[corev1.ResourceEphemeralStorage] = limit
}
