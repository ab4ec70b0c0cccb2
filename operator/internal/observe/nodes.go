package observe

import (
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/plan"
)

func nodeState(node *corev1.Node) plan.Node {
	out := plan.Node{
		Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints,
		Unschedulable: node.Spec.Unschedulable, Allocatable: node.Status.Allocatable,
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			out.Ready = condition.Status == corev1.ConditionTrue
			out.ReadySince = condition.LastTransitionTime.Time
		}
	}
	return out
}
