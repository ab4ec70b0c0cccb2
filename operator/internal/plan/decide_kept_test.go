package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestDecide_PodKeptByForeignContainer(t *testing.T) {
	cases := map[string]struct {
		since  time.Duration
		change func(w *world)
		// action and reason of the decision, and when the planner decides again at the latest.
		action, reason string
		within         time.Duration
	}{
		"the engine has time to signal the container": {
			5 * time.Second, func(*world) {}, "<nil>", assayv1alpha1.ReasonWaveRunning, 15 * time.Second,
		},
		"then the pod is ended": {keptGrace, func(*world) {}, "end pod scan-1", assayv1alpha1.ReasonPodKept, WatchSettles},
		"also of a wave that is being stopped": {
			time.Minute, func(w *world) { w.Wave.Stopped = true }, "end pod scan-1", assayv1alpha1.ReasonPodKept, WatchSettles,
		},
		"also of a run that has ended": {
			time.Minute, func(w *world) { w.Leases, w.Wave, w.Run.Finalizers = nil, nil, nil; w.end() }, "end pod scan-1", "", WatchSettles,
		},
		"the status names it until the pod has ended": {
			time.Minute, func(w *world) { w.Pods.Kept[0].Deleting = true }, "<nil>", assayv1alpha1.ReasonPodKept, waveInterval,
		},
		"another action comes first": {
			time.Minute, func(w *world) { w.Run.Spec.Cancel = new(true) }, "stop scan-w000", assayv1alpha1.ReasonCancelled, podsInterval,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.happens("the run is created", func() {})
			w.Pods.Kept = []KeptPod{{Name: "scan-1", UID: "1", Containers: "mesh-proxy", Since: w.now.Add(-tc.since)}}
			tc.change(w)
			got := Decide(w.Observed, testSettings, w.now)
			if action := fmt.Sprint(got.Action); !strings.HasPrefix(action, tc.action) || got.Reason != tc.reason {
				t.Errorf("action %q, reason %s (%s), want %q, %s", action, got.Reason, got.Message, tc.action, tc.reason)
			}
			if after, again := got.RequeueAfter(); !again || after > tc.within {
				t.Errorf("decides again: %t, after %s; want within %s", again, after, tc.within)
			}
			if got.Reason == assayv1alpha1.ReasonPodKept && !strings.Contains(got.Message, "container mesh-proxy") {
				t.Errorf("the message %q does not name the container", got.Message)
			}
		})
	}
}

func TestDecide_DemotedBlocksAreNamedOnlyIfTheyAskForExclusiveCPUs(t *testing.T) {
	for exclusive, want := range map[assayv1alpha1.Exclusivity]bool{
		assayv1alpha1.ExclusiveCPUs: true, assayv1alpha1.ExclusiveNode: true, assayv1alpha1.ExclusiveNone: false,
	} {
		w := newWorld(t)
		w.Run.Spec.Placement.Exclusive = exclusive
		w.happens("the run is created", func() {})
		w.Pods.Demoted = "mesh-proxy"
		got := Decide(w.Observed, testSettings, w.now)
		if has := strings.Contains(got.Message, "container mesh-proxy"); has != want || got.Reason != assayv1alpha1.ReasonWaveRunning {
			t.Errorf("%s: reason %s, message %q names the container: %t, want %t", exclusive, got.Reason, got.Message, has, want)
		}
	}
}
