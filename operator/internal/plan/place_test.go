package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/record"
)

func TestDecide_PlaceInTheQueue(t *testing.T) {
	othersHold := func(w *world) {
		w.takes("first", "node-a")
		w.takes("second", "node-b")
	}
	holds := func(w *world) {
		w.setLease(w.leaseOf("node-a").TakenBy(HolderOf(w.Run), false, lease.DefaultDuration, w.now))
	}
	beside := func(name string, created time.Duration) func(*world) {
		return func(w *world) { w.Waiting = append(w.Waiting, w.other(name, created)) }
	}
	wholeNode := func(w *world) { w.Ledger.Experiment.Plan.Placement.Exclusive = experiment.ExclusiveNode }
	ledgerAway := func(w *world) { w.Ledger.Problem = assayv1alpha1.ReasonLedgerUnreachable }
	cordoned := func(w *world) { w.cordon("node-a", true) }
	suspended := func(w *world) { w.Run.Spec.Suspend = ptr.To(true) }
	noNodes := func(w *world) { w.Nodes = nil }
	const (
		waits, takes = assayv1alpha1.ReasonWaitingForLease, assayv1alpha1.ReasonTakingLease
		begins, away = assayv1alpha1.ReasonWaveRunning, assayv1alpha1.ReasonLedgerUnreachable
	)
	type edits []func(*world)
	cases := map[string]struct {
		edits  edits
		want   *Place
		reason string
	}{
		"a run that acquires a lease":          {nil, &Place{}, takes},
		"a run whose nodes are leased":         {edits{othersHold}, &Place{}, waits},
		"behind an older run":                  {edits{othersHold, beside("old", -time.Minute)}, &Place{1}, waits},
		"before a younger run":                 {edits{othersHold, beside("new", time.Minute)}, &Place{}, waits},
		"a run that holds a node":              {edits{holds}, nil, begins},
		"a run whose node is being tainted":    {edits{holds, wholeNode}, nil, takes},
		"a run that releases an unusable node": {edits{holds, cordoned}, &Place{}, assayv1alpha1.ReasonReleasingLease},
		"a run that no node matches":           {edits{noNodes}, nil, assayv1alpha1.ReasonNoNodeMatches},
		"a run whose ledger is unreachable":    {edits{othersHold, ledgerAway}, nil, away},
		"a suspended run":                      {edits{othersHold, suspended}, nil, assayv1alpha1.ReasonSuspended},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Run.CreationTimestamp = metav1.NewTime(w.began)
			frozen, err := experiment.Freeze(record.Run{Namespace: w.Run.Namespace, Name: w.Run.Name, UID: string(w.Run.UID)}, w.Run.Spec,
				*w.Template)
			if err != nil {
				t.Fatal(err)
			}
			w.Ledger.Experiment = frozen
			for _, edit := range tc.edits {
				edit(w)
			}
			got := Decide(w.Observed, testSettings, w.now)
			if diff := cmp.Diff(tc.want, got.Queue); diff != "" || got.Reason != tc.reason {
				t.Errorf("%s (%s), place (-want +got):\n%s", got.Reason, got.Message, diff)
			}
		})
	}
}
