package plan

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/record"
)

// An operator may be replaced between draining a lease and releasing it, and the run may want the node after all.
func TestDecide_DrainingLease(t *testing.T) {
	drained := func(w *world) {
		l := w.leaseOf("node-a")
		l.Draining = true
		w.setLease(l)
	}
	cases := map[string]struct {
		change func(w *world)
		action string
	}{
		"a wave needs a new token": {func(w *world) {
			frozen, err := experiment.Freeze(record.Run{Namespace: w.Run.Namespace, Name: w.Run.Name, UID: string(w.Run.UID)}, w.Run.Spec,
				*w.Template)
			if err != nil {
				t.Fatal(err)
			}
			w.Ledger.Experiment = frozen
			w.setLease(w.leaseOf("node-a").TakenBy(HolderOf(w.Run), false, lease.DefaultDuration, w.now))
			drained(w)
		}, "take the lease of node-a anew"},
		"a wave that runs under it is stopped": {func(w *world) {
			w.happens("the run is created", func() {})
			drained(w)
		}, "stop scan-w000: the lease of node node-a with token 1 is being given back"},
		"it is released once the run has ended": {func(w *world) {
			w.happens("the run is created", func() {})
			w.Wave.Ended, w.Pods.Blocks = true, nil
			w.end()
			drained(w)
		}, "release the lease of node-a"},
		"it is not released while something runs there": {func(w *world) {
			w.happens("the run is created", func() {})
			w.Wave.Ended, w.Pods.Blocks = true, nil
			w.end()
			drained(w)
			l := w.leaseOf("node-a")
			l.Busy = "pod block"
			w.setLease(l)
		}, "<nil>"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			got := Decide(w.Observed, testSettings, w.now)
			if action := fmt.Sprint(got.Action); !strings.HasPrefix(action, tc.action) {
				t.Errorf("action %q (%s), want %q", action, got.Message, tc.action)
			}
			if after, again := got.RequeueAfter(); !again {
				t.Errorf("it is not reconciled again, after %s", after)
			}
		})
	}
}
