package observe

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/executor"
)

// terminationMessage returns the termination message of a failed pod and when it ended: that of the keeper in the pod of a block, which
// trials cannot write, and that of the analysis itself.
func terminationMessage(pod *corev1.Pod) (words string, at time.Time) {
	if pod.Status.Phase != corev1.PodFailed {
		return "", time.Time{}
	}
	statuses, name := pod.Status.InitContainerStatuses, executor.KeeperContainer
	if pod.Labels[executor.PartLabel] == executor.AnalysisPart {
		statuses, name = pod.Status.ContainerStatuses, executor.MainContainer
	}
	i := slices.IndexFunc(statuses, func(status corev1.ContainerStatus) bool { return status.Name == name })
	if i < 0 || statuses[i].State.Terminated == nil {
		return "", time.Time{}
	}
	return statuses[i].State.Terminated.Message, statuses[i].State.Terminated.FinishedAt.Time
}
