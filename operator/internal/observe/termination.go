package observe

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/ledger"
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

// writtenAnalyses returns the digests of the last analysis of each wave, according to the pods of analyses and the status of the run. The
// kubelet copies the termination message into the status of a pod, which tenants may delete and not change. Pods are ordered by the clock
// of the API server; of those of one second any may be the last.
func writtenAnalyses(run *assayv1alpha1.BenchmarkRun, pods []corev1.Pod) map[int][]assayv1alpha1.AnalysisStatus {
	out := map[int][]assayv1alpha1.AnalysisStatus{}
	add := func(found assayv1alpha1.AnalysisStatus) {
		switch before := out[int(found.Wave)]; {
		case len(before) == 0 || before[0].StartTime.Before(&found.StartTime):
			out[int(found.Wave)] = []assayv1alpha1.AnalysisStatus{found}
		case before[0].StartTime.Equal(&found.StartTime):
			out[int(found.Wave)] = append(before, found)
		}
	}
	if known := run.Status.Analysis; known != nil {
		add(*known)
	}
	for i := range pods {
		if found, ok := writtenBy(&pods[i]); ok {
			add(found)
		}
	}
	return out
}

// writtenBy returns the digests that the pod of an analysis reported; ok is false for any other pod.
func writtenBy(pod *corev1.Pod) (out assayv1alpha1.AnalysisStatus, ok bool) {
	if pod.Labels[executor.PartLabel] != executor.AnalysisPart {
		return out, false
	}
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.Name == executor.MainContainer && status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
	})
	if i < 0 {
		return out, false
	}
	ended := pod.Status.ContainerStatuses[i].State.Terminated
	written, ok := ledger.ParseWritten(ended.Message)
	if !ok || fmt.Sprint(written.Wave) != pod.Labels[executor.WaveLabel] {
		return out, false
	}
	return assayv1alpha1.AnalysisStatus{
		Wave: int32(written.Wave), SHA256: written.Analysis, ReportSHA256: written.Report, EvidenceSHA256: written.Evidence,
		StartTime: pod.CreationTimestamp,
	}, true
}
