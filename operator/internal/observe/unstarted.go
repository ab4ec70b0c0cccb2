package observe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/permanent"
	"assay.dev/assay/operator/internal/plan"
)

// addUnstarted adds the pod of a block to those that do not start, if its failure may be permanent. A permanent failure is described in
// place of one that has to repeat.
func addUnstarted(before *plan.UnstartedPods, pod *corev1.Pod) *plan.UnstartedPods {
	container, message, row := unstarted(pod)
	if row.Class == permanent.Passing {
		return before
	}
	out := &plan.UnstartedPods{Count: 1}
	if before != nil {
		*out = *before
		out.Count++
	}
	if before == nil || before.Class != permanent.Permanent && row.Class == permanent.Permanent {
		out.Name, out.Node, out.Class = pod.Name, pod.Spec.NodeName, row.Class
		out.Why, out.Fix = row.Describe(container, message), row.Fix
	}
	return out
}

// unstarted returns the container of a pod that does not start and the message of its kubelet, by the row of the failure. The container is
// empty for a pod that its kubelet refuses.
func unstarted(pod *corev1.Pod) (container, message string, row permanent.Row) {
	row.Class = permanent.Passing
	consider := func(name, reason, text string) {
		if found := permanent.Start(reason, text); row.Class != permanent.Permanent && found.Class != permanent.Passing {
			container, message, row = name, text, found
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		consider("", pod.Status.Reason, pod.Status.Message)
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
			switch {
			case state.Waiting != nil:
				consider(status.Name, state.Waiting.Reason, state.Waiting.Message)
			case state.Terminated != nil:
				consider(status.Name, state.Terminated.Reason, state.Terminated.Message)
			}
		}
	}
	return container, message, row
}
