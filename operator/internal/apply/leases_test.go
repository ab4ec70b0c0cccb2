package apply

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/workflow"
)

var release = plan.ReleaseLeases{Nodes: []string{"node-a"}}

type releasing struct {
	*Applier
	t   *testing.T
	run *assayv1alpha1.BenchmarkRun
}

// newReleasing is a run that holds node-a.
func newReleasing(t *testing.T) *releasing {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, workflow.AddToScheme,
		assayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	store, err := ledger.Open(t.Context(), "file://"+t.TempDir(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u",
		Finalizers: []string{plan.Finalizer}}}
	all := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run).Build()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
	r := &releasing{
		Applier: &Applier{
			Client: all, Live: all, Store: store, Clock: clock,
			Lease: LeaseConfig{Namespace: "assay-system", Duration: time.Minute},
		},
		t: t, run: run,
	}
	if err := r.Do(t.Context(), run, plan.AcquireLeases{Nodes: release.Nodes}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *releasing) holds() bool {
	r.t.Helper()
	var object coordinationv1.Lease
	if err := r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: "assay-system", Name: lease.Name("node-a")}, &object); err != nil {
		r.t.Fatal(err)
	}
	current, err := lease.FromObject(&object)
	if err != nil {
		r.t.Fatal(err)
	}
	return current.Holder == plan.HolderOf(r.run)
}

func TestANodeIsGivenBackInTwoStepsBetweenWhichNothingStarts(t *testing.T) {
	drain := plan.DrainLeases(release)
	wave := &record.Wave{Blocks: []record.Block{{ID: "w000-b0000", Lease: &record.Lease{Node: "node-a", Token: 1}}}}
	cases := map[string]struct {
		actions []plan.Action
		// refused is whether the last action is; kept whether the node is held after it.
		refused, kept bool
	}{
		"drained, it is still held":                        {[]plan.Action{drain}, false, true},
		"drained twice is drained":                         {[]plan.Action{drain, drain}, false, true},
		"drained, it can be released":                      {[]plan.Action{drain, release}, false, false},
		"released twice is released":                       {[]plan.Action{drain, release, release}, false, false},
		"it is not released while blocks may start there":  {[]plan.Action{release}, true, true},
		"drained, no wave is planned under it":             {[]plan.Action{drain, plan.PlanWave{Wave: wave}}, true, true},
		"renewed, it stays drained":                        {[]plan.Action{drain, plan.RenewLeases(drain), plan.PlanWave{Wave: wave}}, true, true},
		"taken anew, blocks may start there, and it stays": {[]plan.Action{drain, plan.RetakeLeases(drain), release}, true, true},
		"what it does not hold is not drained":             {[]plan.Action{drain, release, drain}, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newReleasing(t)
			for i, action := range tc.actions {
				err, last := r.Do(t.Context(), r.run, action), i == len(tc.actions)-1
				if refused := apierrors.IsConflict(err); refused != (last && tc.refused) || err != nil && !refused {
					t.Fatalf("%s: %v, want refused %v", action, err, last && tc.refused)
				}
			}
			if r.holds() != tc.kept {
				t.Errorf("the node is still held: %v, want %v", r.holds(), tc.kept)
			}
		})
	}
}
