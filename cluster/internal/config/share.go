package config

import (
	"fmt"
	"slices"
	"strings"
)

// Machine has the resources that the nodes of a cluster share.
type Machine struct {
	// CPUs are the numbers of its CPUs, in ascending order.
	CPUs []int
	// Memory is in bytes.
	Memory uint64
}

// Share is the part of the machine that one node's kubelet gives away.
type Share struct {
	// CPUs that kubelet sees. The first one of the machine is in every share: kubelet keeps it back for all pods without exclusive CPUs.
	CPUs []int
	// OthersMemory is the memory, in bytes, that belongs to other nodes.
	OthersMemory uint64
	// Measures reports whether runs may measure here. On a cluster of several nodes the first one holds the platform instead.
	Measures bool
	// Labels and Taints of the node, where there are several.
	Labels map[string]string
	Taints []string
	// Turns reports that other nodes may give away the same CPUs, so that one node measures at a time.
	Turns bool
}

// Labels and taint of the nodes of a cluster with several.
const (
	// PlatformLabel is on the node of the operator, the store and everything else that does not measure.
	PlatformLabel = "assay.dev/platform"
	// MeasureLabel is on the nodes that runs may use. Its taint keeps pods that are not bound to a node away.
	MeasureLabel = "assay.dev/measure"
	// MachineLabel has the same value on nodes that share a machine.
	MachineLabel = "assay.dev/machine"
)

// Divide gives each of n nodes its share of the machine. A single node has all of it. Of several, the first has the platform and the CPUs
// that remain, and the others measure: on disjoint CPUs if there are enough, else by turns on all but the first.
func Divide(machine Machine, n int, name string) []Share {
	shares := make([]Share, n)
	if n == 1 {
		shares[0] = Share{CPUs: machine.CPUs, Measures: true}
		return shares
	}
	first, rest := machine.CPUs[:1], machine.CPUs[1:]
	each := len(rest) / (n - 1)
	for i := range shares {
		share := &shares[i]
		share.OthersMemory = machine.Memory - machine.Memory/uint64(n)
		share.Measures, share.Turns = i > 0, i > 0 && each == 0
		switch {
		case i == 0 && each > 0:
			share.CPUs = slices.Concat(first, rest[each*(n-1):])
		case i == 0:
			share.CPUs = first
		case each == 0:
			share.CPUs = machine.CPUs
		default:
			share.CPUs = slices.Concat(first, rest[each*(i-1):each*i])
		}
		share.Labels = map[string]string{MachineLabel: name, PlatformLabel: "true"}
		if share.Measures {
			share.Labels = map[string]string{MachineLabel: name, MeasureLabel: "true"}
			share.Taints = []string{MeasureLabel + "=only:PreferNoSchedule"}
		}
	}
	return shares
}

// CPUList writes CPU numbers as the kernel does, without ranges.
func CPUList(cpus []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(cpus), " ", ","), "[]") + "\n"
}
