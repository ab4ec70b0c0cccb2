package integration

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/record"
)

// keptBy is the status of a pod whose own containers have ended while one that a webhook added still runs.
func keptBy(container, message string) corev1.PodStatus {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Message: message, FinishedAt: metav1.NewTime(time.Now().Add(-time.Minute)),
	}}
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: executor.MainContainer, State: ended}, {Name: executor.EngineContainer, State: ended},
		{Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}}
}

// A webhook adds a container that never ends to every pod. The run has its results, and the pods end.
func TestRun_PodsKeptByAnInjectedContainerEnd(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.argoSays("scan-w000", "Running", "")
	pod := w.blockPod("scan-w000-block-1")
	w.runBlocks(0, 4)
	w.setPod(w.live(pod), keptBy("mesh-proxy", ""))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonPodKept,
		"container mesh-proxy", pod.Name, "docs/tasks/run-beside-a-service-mesh.md")
	w.untilEvent(assayv1alpha1.ReasonPodKept, "container mesh-proxy")
	w.untilDeleting(pod)
	w.deletePod(pod) // As its kubelet does.

	// The run ends with the analysis whose container has ended, before the pod has.
	w.argoSays("scan-w000", "Running", "4/5")
	written := w.writeFirstAnalysis()
	labels := executor.Labels(record.Run{Name: w.run.Name, UID: string(w.get().UID)}, 0)
	labels[executor.PartLabel] = executor.AnalysisPart
	analysis := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "scan-w000-analyze-1", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: w.node("node-a"), Containers: []corev1.Container{{Name: executor.MainContainer, Image: "assay:test"}}},
	}
	w.must(admin.Create(w.ctx, analysis))
	status := keptBy("mesh-proxy", written.Text())
	engine := status.ContainerStatuses[1].State
	status.ContainerStatuses[1].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	w.setPod(analysis, status)
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached, "verdict Go")
	w.argoSays("scan-w000", "Failed", "pod deleted")
	analysis = w.live(analysis)
	status.ContainerStatuses[1].State = engine
	w.setPod(analysis, status)
	w.untilDeleting(analysis)
	w.untilReleased(w.node("node-a"))
}

// A sidecar without resources takes the class Guaranteed from the pods of blocks, and with it their exclusive CPUs.
func TestRun_SidecarThatTakesExclusiveCPUsIsNamed(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.argoSays("scan-w000", "Running", "")
	pod := w.blockPod("scan-w000-block-1")
	// The API server gives a pod without resources the class BestEffort, and none can change it.
	w.setPod(w.live(pod), corev1.PodStatus{Phase: corev1.PodRunning,
		InitContainerStatuses: []corev1.ContainerStatus{{Name: executor.KeeperContainer}, {Name: "mesh-proxy"}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: executor.MainContainer}},
	})
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning,
		"container mesh-proxy", "takes the class Guaranteed")
	w.untilEvent("CPUsNotExclusive", "container mesh-proxy")
	w.pass(time.Second)
	w.pass(time.Second)
	count := 0
	for _, event := range w.events() {
		if strings.HasPrefix(event, "CPUsNotExclusive") {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d events, want 1", count)
	}
}

// live returns a pod as the API server has it.
func (w *world) live(pod *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	var out corev1.Pod
	w.must(admin.Get(w.ctx, client.ObjectKeyFromObject(pod), &out))
	return &out
}

func (w *world) untilDeleting(pod *corev1.Pod) {
	w.t.Helper()
	w.until("pod "+pod.Name+" is being deleted", func() error {
		var live corev1.Pod
		err := admin.Get(w.ctx, client.ObjectKeyFromObject(pod), &live)
		if err == nil && live.DeletionTimestamp.IsZero() {
			return errors.New("it is not")
		}
		return client.IgnoreNotFound(err)
	})
}
