package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// ScratchMedium is the kind of storage of the folder that trials write to.
// +kubebuilder:validation:Enum=Memory;Disk
type ScratchMedium string

// Scratch media.
const (
	ScratchMemory ScratchMedium = "Memory"
	ScratchDisk   ScratchMedium = "Disk"
)

// Scratch describes /tmp of a block's pod, which is the only folder that trials can write to beside /dev/shm. All folders that the
// environment of a trial names are below it.
// +kubebuilder:validation:XValidation:rule="!has(self.size) || quantity(string(self.size)).isGreaterThan(quantity('0'))",message="size must be above zero: omit it for the default, or give a size such as 512Mi"
type Scratch struct {
	// medium of the folder. Files in Memory count for the memory of the block (placement.memory), and the kernel refuses what does not
	// fit. Disk is a disk of the node, for workloads that measure disks: the runner measures the used space every 20 ms and ends the trial
	// that exceeds it. With Disk, fallocate and io_uring are not available to a trial, because they reserve more than can be bounded
	// so. The medium is in the fingerprint of every attempt (scratchMedium).
	// +required
	Medium ScratchMedium `json:"medium"`

	// size is the limit. A trial that reaches it fails. Empty is half of the memory of the block and 512Mi at most in Memory, and 4Gi on
	// Disk.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	Size *resource.Quantity `json:"size,omitempty"`
}
