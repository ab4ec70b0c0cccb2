package apply

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
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
	t     *testing.T
	run   *assayv1alpha1.BenchmarkRun
	clock *clocktesting.FakePassiveClock
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
		t: t, run: run, clock: clock,
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
	found, err := lease.FromObject(&object)
	if err != nil {
		r.t.Fatal(err)
	}
	return found.Holder == plan.HolderOf(r.run)
}

func TestANodeIsGivenBackInTwoStepsBetweenWhichNothingStarts(t *testing.T) {
	cases := map[string]struct {
		before, between func(*releasing) error
		first, second   error
		kept            bool
	}{
		"the second step ends the lease": {first: ErrUnfinished},
		"another action in between makes the first void": {
			between: func(r *releasing) error { return r.Do(r.t.Context(), r.run, plan.Resume{Workflow: "scan-w000"}) },
			first:   ErrUnfinished, second: ErrUnfinished, kept: true,
		},
		"so does giving back another node": {
			between: func(r *releasing) error {
				err := r.Do(r.t.Context(), r.run, plan.ReleaseLeases{Nodes: []string{"node-b"}})
				if !errors.Is(err, ErrUnfinished) {
					return err
				}
				return nil
			},
			first: ErrUnfinished, second: ErrUnfinished, kept: true,
		},
		"so does time": {
			between: func(r *releasing) error { r.clock.SetTime(r.clock.Now().Add(idleFor + time.Second)); return nil },
			first:   ErrUnfinished, second: ErrUnfinished, kept: true,
		},
		"a node with a block on it is left alone": {
			before: func(r *releasing) error {
				return r.Client.Create(r.t.Context(), &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "block", Labels: workflow.Labels(record.Run{Name: "scan", UID: "u"}, 0)},
					Spec:       corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
				})
			},
			kept: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newReleasing(t)
			do := func(what func(*releasing) error) {
				t.Helper()
				if what == nil {
					return
				}
				if err := what(r); err != nil {
					t.Fatal(err)
				}
			}
			do(tc.before)
			if err := r.Do(t.Context(), r.run, release); !errors.Is(err, tc.first) || !r.holds() {
				t.Fatalf("the first step said %v, want %v; the node is still held: %v", err, tc.first, r.holds())
			}
			do(tc.between)
			if err := r.Do(t.Context(), r.run, release); !errors.Is(err, tc.second) {
				t.Errorf("the second step said %v, want %v", err, tc.second)
			}
			if r.holds() != tc.kept {
				t.Errorf("the node is still held: %v, want %v", r.holds(), tc.kept)
			}
		})
	}
}
