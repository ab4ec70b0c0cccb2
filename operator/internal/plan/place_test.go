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

func TestWhoHasAPlaceInTheQueue(t *testing.T) {
	othersHold := func(w *world) { w.takes("first", "node-a"); w.takes("second", "node-b") }
	holds := func(w *world) { w.setLease(w.leaseOf("node-a").TakenBy(HolderOf(w.Run), false, lease.DefaultDuration, w.now)) }
	cases := map[string]struct {
		edit   func(*world)
		want   *Place
		reason string
	}{
		"a run that is about to take a node has none yet":     {func(*world) {}, &Place{}, assayv1alpha1.ReasonTakingLease},
		"a run whose nodes others hold":                       {othersHold, &Place{}, assayv1alpha1.ReasonWaitingForLease},
		"behind one that came earlier":                        {func(w *world) { othersHold(w); w.Waiting = append(w.Waiting, w.other("old", -time.Minute)) }, &Place{1}, assayv1alpha1.ReasonWaitingForLease},
		"before one that came later":                          {func(w *world) { othersHold(w); w.Waiting = append(w.Waiting, w.other("new", time.Minute)) }, &Place{}, assayv1alpha1.ReasonWaitingForLease},
		"a run that holds a node":                             {holds, nil, assayv1alpha1.ReasonWaveRunning},
		"a run whose node is being tainted":                   {func(w *world) { holds(w); w.Ledger.Experiment.Plan.Placement.Exclusive = experiment.ExclusiveNode }, nil, assayv1alpha1.ReasonTakingLease},
		"a run that gives back a node it cannot use any more": {func(w *world) { holds(w); w.cordon("node-a", true) }, &Place{}, assayv1alpha1.ReasonReleasingLease},
		"a run that no node matches":                          {func(w *world) { w.Nodes = nil }, nil, assayv1alpha1.ReasonNoNodeMatches},
		"a run whose ledger is away":                          {func(w *world) { othersHold(w); w.Ledger.Problem = assayv1alpha1.ReasonLedgerUnreachable }, nil, assayv1alpha1.ReasonLedgerUnreachable},
		"a suspended run":                                     {func(w *world) { othersHold(w); w.Run.Spec.Suspend = ptr.To(true) }, nil, assayv1alpha1.ReasonSuspended},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Run.CreationTimestamp = metav1.NewTime(w.began)
			frozen, err := experiment.Freeze(record.Run{Namespace: w.Run.Namespace, Name: w.Run.Name, UID: string(w.Run.UID)}, w.Run.Spec, *w.Template)
			if err != nil {
				t.Fatal(err)
			}
			w.Ledger.Experiment = frozen
			tc.edit(w)
			got := Decide(w.Observed, testSettings, w.now)
			if diff := cmp.Diff(tc.want, got.Queue); diff != "" || got.Reason != tc.reason {
				t.Errorf("%s (%s), place (-want +got):\n%s", got.Reason, got.Message, diff)
			}
		})
	}
}
