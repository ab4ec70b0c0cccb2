package argo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/design"
)

// MachineLabel has the same value on nodes that share a machine: nodes of a test cluster, or guests of one host that share its CPUs.
const MachineLabel = "assay.dev/machine"

// Machines maps the nodes that share a machine with another one of the lanes to the machine.
type Machines map[string]string

// readMachines reads the machines of the nodes of lanes. A node that is gone shares none.
func readMachines(ctx context.Context, reader client.Reader, lanes []design.Lane) (Machines, error) {
	on := map[string][]string{}
	for _, lane := range lanes {
		var node corev1.Node
		err := reader.Get(ctx, client.ObjectKey{Name: lane.Node}, &node)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", lane.Node, err)
		}
		if machine := node.Labels[MachineLabel]; machine != "" {
			on[machine] = append(on[machine], lane.Node)
		}
	}
	machines := Machines{}
	for machine, nodes := range on {
		for _, node := range nodes {
			if len(nodes) > 1 {
				machines[node] = machine
			}
		}
	}
	return machines, nil
}

// of is the chain that a lane's blocks belong to: that of its machine if it shares one, else its own.
func (m Machines) of(lane design.Lane) string {
	if machine, shared := m[lane.Node]; shared {
		return "machine " + machine
	}
	return "node " + lane.Node
}

// describe says that nodes share a machine; empty if none do.
func (m Machines) describe(lanes []design.Lane) string {
	shared := 0
	for _, lane := range lanes {
		if _, ok := m[lane.Node]; ok {
			shared++
		}
	}
	if shared == 0 {
		return ""
	}
	return fmt.Sprintf(" %d of the nodes share a machine: their blocks run one after the other, and are no independent sample of machines.",
		shared)
}
