package observe

import corev1 "k8s.io/api/core/v1"

// Ready is the condition of a node that says whether it is ready; unknown where it has none.
func Ready(node *corev1.Node) corev1.NodeCondition {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return corev1.NodeCondition{Status: corev1.ConditionUnknown}
}
