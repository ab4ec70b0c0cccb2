package observe

import (
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/plan"
)

func nodeState(node *corev1.Node) plan.Node {
	ready := Ready(node)
	return plan.Node{
		Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints,
		Unschedulable: node.Spec.Unschedulable, Allocatable: node.Status.Allocatable,
		Ready: ready.Status == corev1.ConditionTrue, ReadySince: ready.LastTransitionTime.Time,
	}
}

// Ready is the condition of a node that says whether it is ready; unknown where it has none.
func Ready(node *corev1.Node) corev1.NodeCondition {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return corev1.NodeCondition{Status: corev1.ConditionUnknown}
}
