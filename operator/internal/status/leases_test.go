package status

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
)

func TestLeases_StatusAndEvents(t *testing.T) {
	me, other := lease.Holder{Namespace: "lab", Name: "scan", UID: "u"}, lease.Holder{Namespace: "lab", Name: "other", UID: "o"}
	on := func(node string, holder lease.Holder) lease.Lease {
		return lease.Lease{Node: node, Token: 4}.TakenBy(holder, false, time.Minute, began)
	}
	mine := []assayv1alpha1.LeaseStatus{{Node: "a", Token: 5}}
	cases := map[string]struct {
		before []assayv1alpha1.LeaseStatus
		leases []lease.Lease
		ended  bool
		want   []assayv1alpha1.LeaseStatus
		events []string
	}{
		"none":                                  {},
		"another run's":                         {leases: []lease.Lease{on("a", other)}},
		"taken":                                 {leases: []lease.Lease{on("a", me), on("b", other)}, want: mine, events: []string{"LeaseAcquired"}},
		"in order":                              {leases: []lease.Lease{on("b", me), on("a", me)}, want: []assayv1alpha1.LeaseStatus{{Node: "a", Token: 5}, {Node: "b", Token: 5}}, events: []string{"LeaseAcquired", "LeaseAcquired"}},
		"kept":                                  {before: mine, leases: []lease.Lease{on("a", me)}, want: mine},
		"released":                              {before: mine, leases: []lease.Lease{on("a", me).Ended(lease.Released, began)}, events: []string{"LeaseReleased"}},
		"released, taken":                       {before: mine, leases: []lease.Lease{on("a", me).Ended(lease.Released, began).TakenBy(other, false, time.Minute, began)}, events: []string{"LeaseReleased"}},
		"expired":                               {before: mine, leases: []lease.Lease{on("a", me).Ended(lease.Expired, began).TakenBy(other, false, time.Minute, began)}, events: []string{"LeaseLost"}},
		"gone, and another node's was released": {before: mine, leases: []lease.Lease{on("b", me).Ended(lease.Released, began)}, events: []string{"LeaseLost"}},
		"gone, and another run's was released": {
			before: mine, leases: []lease.Lease{on("a", me).Ended(lease.Expired, began).TakenBy(other, false, time.Minute, began).Ended(lease.Released, began)},
			events: []string{"LeaseLost"},
		},
		"gone": {before: mine, events: []string{"LeaseLost"}},
		"of a run that ended, until it is released": {before: mine, leases: []lease.Lease{on("a", me)}, ended: true, want: mine},
		"of a run that ended, by now another's":     {before: mine, leases: []lease.Lease{on("a", other).Ended(lease.Released, began)}, ended: true, events: []string{"LeaseReleased"}},
		"of a run that ended, released":             {before: mine, leases: []lease.Lease{on("a", me).Ended(lease.Released, began)}, ended: true, events: []string{"LeaseReleased"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			world := testWorld()
			world.Leases, world.Run.Status.Leases = tc.leases, tc.before
			if tc.ended {
				world.Run.Status.CompletionTime = ptr.To(metav1.NewTime(began))
			}
			got := Compute(Outcome{World: world, Decision: plan.Decision{}}, began)
			if diff := cmp.Diff(tc.want, got.Leases); diff != "" {
				t.Errorf("leases (-want +got):\n%s", diff)
			}
			var events []string
			for _, event := range LeaseEvents(world, &got) {
				events = append(events, event.Reason)
			}
			if !slices.Equal(events, tc.events) {
				t.Errorf("events are %v, want %v", events, tc.events)
			}
		})
	}
}
