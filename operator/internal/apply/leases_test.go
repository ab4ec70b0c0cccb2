package apply

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
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
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

var release = plan.ReleaseLeases{Nodes: []string{"node-a"}}

type releasing struct {
	*Applier
	t   *testing.T
	run *assayv1alpha1.BenchmarkRun
}

// newReleasing returns a run that holds the lease of node-a.
func newReleasing(t *testing.T) *releasing {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, argo.AddToScheme,
		assayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	store, err := store.Open(t.Context(), "file://"+t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u",
		Finalizers: []string{plan.Finalizer}}}
	all := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run).Build()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
	r := &releasing{
		Applier: &Applier{
			Client: all, Live: all, Executor: &argo.Executor{Client: all, Live: all}, Store: store, Clock: clock,
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

func TestLeases_ReleaseDrainsFirst(t *testing.T) {
	drain := plan.DrainLeases(release)
	wave := &record.Wave{Blocks: []record.Block{{ID: "w000-b0000", Lease: &record.Lease{Node: "node-a", Token: 1}}}}
	cases := map[string]struct {
		actions []plan.Action
		// refused means that the last action is rejected, and kept that the lease is held after it.
		refused, kept bool
	}{
		"a drained lease is held":                   {[]plan.Action{drain}, false, true},
		"draining twice":                            {[]plan.Action{drain, drain}, false, true},
		"release after draining":                    {[]plan.Action{drain, release}, false, false},
		"releasing twice":                           {[]plan.Action{drain, release, release}, false, false},
		"release without draining is rejected":      {[]plan.Action{release}, true, true},
		"no wave is planned under a drained lease":  {[]plan.Action{drain, plan.PlanWave{Wave: wave}}, true, true},
		"a renewed lease stays drained":             {[]plan.Action{drain, plan.RenewLeases(drain), plan.PlanWave{Wave: wave}}, true, true},
		"a retaken lease is not released":           {[]plan.Action{drain, plan.RetakeLeases(drain), release}, true, true},
		"draining a lease of no holder is rejected": {[]plan.Action{drain, release, drain}, true, false},
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

// other returns a run of another namespace that requests node-a as well.
func (r *releasing) other() *assayv1alpha1.BenchmarkRun {
	r.t.Helper()
	out := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "v",
		Finalizers: []string{plan.Finalizer}}}
	r.create(out)
	return out
}

func (r *releasing) create(object client.Object) {
	r.t.Helper()
	if err := r.Client.Create(r.t.Context(), object); err != nil {
		r.t.Fatal(err)
	}
}

// wave returns a Workflow of the run with blocks on a node.
func (r *releasing) wave(node, phase string) *argo.Workflow {
	r.t.Helper()
	out := &argo.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan-w000",
		Labels: executor.Labels(record.Run{Namespace: "lab", Name: "scan", UID: "u"}, 0)}}
	out.Spec.Templates = []argo.Template{{DAG: argo.DAG{Tasks: []argo.Task{
		{Name: "b0000", Arguments: argo.Parameters{Parameters: []argo.Parameter{{Name: "node", Value: &node}}}},
	}}}}
	out.Status.Phase = phase
	return out
}

func (r *releasing) block(node string, phase corev1.PodPhase) *corev1.Pod {
	labels := executor.Labels(record.Run{Namespace: "lab", Name: "scan", UID: "u"}, 0)
	labels[executor.PartLabel] = "block"
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "block", Labels: labels},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

// The Workflow of a run that was deleted without its finalizer is orphaned, and would hold the node for ever.
func TestLeases_OrphanedWorkflowHoldsNoNode(t *testing.T) {
	r := newReleasing(t)
	r.create(r.wave("node-a", "Running"))
	r.run.Finalizers = nil
	for _, err := range []error{r.Client.Update(t.Context(), r.run), r.Client.Delete(t.Context(), r.run)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Clock.(*clocktesting.FakePassiveClock).SetTime(r.Clock.Now().Add(30 * 24 * time.Hour))
	if err := r.Reclaim(t.Context(), "node-a"); !apierrors.IsConflict(err) {
		t.Fatalf("the lease expired while a Workflow runs: %v", err)
	}
	if err := r.DeleteOrphans(t.Context(), plan.HolderOf(r.other())); err != nil {
		t.Fatal(err)
	}
	if err := r.Reclaim(t.Context(), "node-a"); !apierrors.IsConflict(err) {
		t.Fatalf("another run's end deleted it: %v", err)
	}
	if err := r.DeleteOrphans(t.Context(), plan.HolderOf(r.run)); err != nil {
		t.Fatal(err)
	}
	if err := r.Reclaim(t.Context(), "node-a"); err != nil {
		t.Fatal(err)
	}
	if r.holds() {
		t.Error("the node is still held")
	}
}

// A user deletes the Lease object of a node, so that its holder is unknown.
func TestLeases_DeletedLeaseDoesNotShareTheNode(t *testing.T) {
	for sentence, tc := range map[string]struct {
		left    func(r *releasing) client.Object
		refused bool
	}{
		"the holder has no pods and workflows":  {nil, false},
		"a block runs there":                    {func(r *releasing) client.Object { return r.block("node-a", corev1.PodRunning) }, true},
		"a block ran there":                     {func(r *releasing) client.Object { return r.block("node-a", corev1.PodSucceeded) }, false},
		"a block runs elsewhere":                {func(r *releasing) client.Object { return r.block("node-b", corev1.PodRunning) }, false},
		"a wave may start a block there":        {func(r *releasing) client.Object { return r.wave("node-a", "Running") }, true},
		"a wave without a status may start one": {func(r *releasing) client.Object { return r.wave("node-a", "") }, true},
		"a wave has ended":                      {func(r *releasing) client.Object { return r.wave("node-a", "Succeeded") }, false},
		"a wave is on other nodes":              {func(r *releasing) client.Object { return r.wave("node-b", "Running") }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newReleasing(t)
			if tc.left != nil {
				r.create(tc.left(r))
			}
			if err := r.Client.Delete(t.Context(), &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "assay-system", Name: lease.Name("node-a")},
			}); err != nil {
				t.Fatal(err)
			}
			err := r.Do(t.Context(), r.other(), plan.AcquireLeases{Nodes: release.Nodes})
			if apierrors.IsConflict(err) != tc.refused || err != nil && !tc.refused {
				t.Errorf("acquired by another run: %v, want rejected %v", err, tc.refused)
			}
			if err := r.Do(t.Context(), r.run, plan.AcquireLeases{Nodes: release.Nodes}); tc.refused && err != nil {
				t.Errorf("the run itself cannot take it again: %v", err)
			}
		})
	}
}

// away is a store with intermittent errors.
type away struct {
	store.Store
	now *bool
}

func (a away) Create(ctx context.Context, key string, data []byte) error {
	if *a.now {
		return store.ErrUnreachable
	}
	return a.Store.Create(ctx, key, data)
}

// For any sequence of actions, store errors and time steps: before another run acquires the node, the ledger of the run has the end of
// every token under which a block may have started.
func TestLeases_TokensEndBeforeTheNextHolder(t *testing.T) {
	for seed := range uint64(200) {
		random, story := rand.New(rand.NewPCG(seed, 1)), []string(nil)
		r, none, waves := newReleasing(t), false, 0
		r.Store = away{r.Store, &none}
		clock := r.Clock.(*clocktesting.FakePassiveClock)
		for range 12 {
			none = random.IntN(3) == 0
			clock.SetTime(clock.Now().Add(time.Duration(random.IntN(30)) * time.Second))
			nodes := release.Nodes
			action := []plan.Action{
				plan.AcquireLeases{Nodes: nodes}, plan.RetakeLeases{Nodes: nodes}, plan.RetakeLeases{Nodes: nodes}, plan.DrainLeases{Nodes: nodes},
				plan.RenewLeases{Nodes: nodes}, plan.PlanWave{Wave: r.nextWave(waves)}, plan.PlanWave{Wave: r.nextWave(waves)}, release,
			}[random.IntN(8)]
			err := r.Do(t.Context(), r.run, action)
			if _, planned := action.(plan.PlanWave); planned && err == nil {
				waves++
			}
			story = append(story, fmt.Sprintf("%T, the store is away: %v, %v", action, none, err))
		}
		none = false
		clock.SetTime(clock.Now().Add(time.Hour))
		if err := r.Do(t.Context(), r.other(), plan.AcquireLeases{Nodes: release.Nodes}); err != nil {
			t.Fatal(err)
		}
		known, problems, err := ledger.ReadLeases(t.Context(), store.WithPrefix(r.Store, "runs/lab/scan/u"))
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		ended := map[record.Lease]bool{}
		for _, end := range known.Ends {
			ended[end.Lease] = true
		}
		for _, taken := range known.Taken {
			if !ended[taken.Lease] {
				t.Fatalf("seed %d: another run has the node, and token %d has not ended:\n%s", seed, taken.Token, strings.Join(story, "\n"))
			}
		}
	}
}

// nextWave returns a wave with a block under the current token of node-a.
func (r *releasing) nextWave(number int) *record.Wave {
	r.t.Helper()
	_, current, err := r.readLease(r.t.Context(), "node-a")
	if err != nil {
		r.t.Fatal(err)
	}
	return &record.Wave{Wave: number, Blocks: []record.Block{
		{ID: record.BlockName(number, number), Lease: &record.Lease{Node: "node-a", Token: current.Token}},
	}}
}

// A decision of an operator that lost the leader lease, to start or to release something, must not undo writes of its successor.
func TestLeases_StaleDecisionWritesNothing(t *testing.T) {
	drain := plan.DrainLeases(release)
	exp, wave, lanes := sample(t)
	for what, tc := range map[string]struct{ before, action plan.Action }{
		"start":     {nil, plan.StartWave{Experiment: exp, Wave: wave, Lanes: lanes, Longest: time.Hour}},
		"analyse":   {nil, plan.Analyze{Experiment: exp, Wave: 0, Try: 1}},
		"drain":     {nil, drain},
		"take anew": {nil, plan.RetakeLeases(release)},
		"give back": {drain, release},
	} {
		for name, since := range map[string]struct {
			edit    func(client.Object)
			refused bool
		}{
			"no other write":               {nil, false},
			"the run's status was written": {ends, true},
			"a new annotation of the run":  {touch, false},
		} {
			t.Run(what+": "+name, func(t *testing.T) {
				r := newReleasing(t)
				if tc.before != nil {
					if err := r.Do(t.Context(), r.run, tc.before); err != nil {
						t.Fatal(err)
					}
				}
				if since.edit != nil {
					change(t, r.Client, &assayv1alpha1.BenchmarkRun{}, "scan", since.edit)
				}
				object, _, err := r.readLease(t.Context(), "node-a")
				if err != nil {
					t.Fatal(err)
				}
				before := object.ResourceVersion
				if err := r.Do(t.Context(), r.run, tc.action); apierrors.IsConflict(err) != since.refused || err != nil && !since.refused {
					t.Errorf("got %v, want it refused: %v", err, since.refused)
				}
				if object, _, err = r.readLease(t.Context(), "node-a"); err != nil || since.refused && object.ResourceVersion != before {
					t.Errorf("the lease was written: %v", err)
				}
				var flows argo.WorkflowList
				if err := r.Client.List(t.Context(), &flows); err != nil || since.refused && len(flows.Items) > 0 {
					t.Errorf("%d Workflows were created: %v", len(flows.Items), err)
				}
			})
		}
	}
}

// sample returns a wave of a run without exclusive nodes.
func sample(t *testing.T) (*experiment.Experiment, *record.Wave, []design.Lane) {
	t.Helper()
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	exp.Run = record.Run{Namespace: "lab", Name: "scan", UID: "u"}
	lanes := []design.Lane{{Node: "node-a"}}
	wave, err := design.BuildWave(exp, 0, 0, 2, lanes)
	if err != nil {
		t.Fatal(err)
	}
	return exp, wave, lanes
}
