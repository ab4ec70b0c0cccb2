package observe

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

func TestLeases_BusyNode(t *testing.T) {
	labels := func(part string) map[string]string {
		out := executor.Labels(record.Run{Name: "scan", UID: "u"}, 0)
		out[executor.PartLabel] = part
		return out
	}
	block := func(node string, phase corev1.PodPhase, edit ...func(*corev1.Pod)) client.Object {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "block-1", Labels: labels("block")},
			Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
		}
		for _, e := range edit {
			e(pod)
		}
		return pod
	}
	flow := func(name, phase string, edit ...func(*argo.Workflow)) client.Object {
		out := &argo.Workflow{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, Labels: labels("")}, Status: argo.Status{Phase: phase},
		}
		for _, e := range edit {
			e(out)
		}
		return out
	}
	cases := map[string]struct {
		object client.Object
		want   string
	}{
		"a block on the node":                 {block("node-a", corev1.PodRunning), "pod block-1"},
		"an unscheduled block":                {block("", corev1.PodPending), "pod block-1"},
		"a block that is being deleted":       {block("node-a", corev1.PodRunning, func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"x/y"} }), "pod block-1"},
		"a block on another node":             {block("node-b", corev1.PodRunning), ""},
		"a block that ended":                  {block("node-a", corev1.PodFailed), ""},
		"an analysis":                         {block("node-a", corev1.PodRunning, func(p *corev1.Pod) { p.Labels[executor.PartLabel] = executor.AnalysisPart }), ""},
		"another run's block":                 {block("node-a", corev1.PodRunning, func(p *corev1.Pod) { p.Labels[executor.RunUIDLabel] = "v" }), ""},
		"a workflow that may start a block":   {flow("scan-w000", "Running"), "execution scan-w000"},
		"a workflow without a status":         {flow("scan-w000", ""), "execution scan-w000"},
		"a workflow that ended":               {flow("scan-w000", "Succeeded"), ""},
		"a workflow that is being deleted":    {flow("scan-w000", "Running", func(w *argo.Workflow) { w.DeletionTimestamp, w.Finalizers = ptr.To(metav1.Now()), []string{"x/y"} }), ""},
		"a workflow that only analyses":       {flow("scan-w000-a1", "Running"), ""},
		"a workflow of a wave on other nodes": {flow("scan-w001", "Running", func(w *argo.Workflow) { w.Labels[executor.WaveLabel] = "1" }), ""},
		"a pod without labels":                {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "x"}}, ""},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, argo.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.object).Build()
			engine := &argo.Executor{Live: reader}
			got, err := Busy(t.Context(), engine, reader, lease.Holder{Namespace: "lab", Name: "scan", UID: "u"}, "node-a", "scan-w001")
			if err != nil || got != tc.want {
				t.Errorf("busy with %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestWaiting_RunsInTheQueue(t *testing.T) {
	waits := func(edit func(*assayv1alpha1.BenchmarkRun)) *assayv1alpha1.BenchmarkRun {
		run := &assayv1alpha1.BenchmarkRun{}
		run.Status.Queue = &assayv1alpha1.QueueStatus{}
		edit(run)
		return run
	}
	cases := map[string]struct {
		run  *assayv1alpha1.BenchmarkRun
		want bool
	}{
		"a run with a place in the queue": {waits(func(*assayv1alpha1.BenchmarkRun) {}), true},
		"a run with a place and other conditions": {waits(func(r *assayv1alpha1.BenchmarkRun) {
			r.Status.Conditions = []metav1.Condition{{Type: assayv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse,
				Reason: assayv1alpha1.ReasonLedgerUnreachable}}
		}), true},
		"a run with a condition and without a place": {waits(func(r *assayv1alpha1.BenchmarkRun) {
			r.Status.Queue = nil
			r.Status.Conditions = []metav1.Condition{{Type: assayv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse,
				Reason: assayv1alpha1.ReasonWaitingForLease}}
		}), false},
		"a run without a status":      {&assayv1alpha1.BenchmarkRun{}, false},
		"a suspended run":             {waits(func(r *assayv1alpha1.BenchmarkRun) { r.Spec.Suspend = ptr.To(true) }), false},
		"a cancelled run":             {waits(func(r *assayv1alpha1.BenchmarkRun) { r.Spec.Cancel = ptr.To(true) }), false},
		"a run that is being deleted": {waits(func(r *assayv1alpha1.BenchmarkRun) { r.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now())) }), false},
		"a run that ended while it waited": {waits(func(r *assayv1alpha1.BenchmarkRun) {
			r.Status.CompletionTime = ptr.To(metav1.Now())
		}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := WaitsForLease(tc.run); got != tc.want {
				t.Errorf("waits is %v, want %v", got, tc.want)
			}
		})
	}
}

// With a stale cache a run neither loses its leases nor acquires them twice. Known leases are not read from the API server again.
func TestLeases_OwnLeasesAreReadFromTheAPIServer(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, argo.AddToScheme,
		assayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u"}}
	run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveCPUs
	object := func(node string, holder lease.Holder) *coordinationv1.Lease {
		out := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "assay-system", Name: lease.Name(node), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
		}}
		now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
		if err := (lease.Lease{Node: node}).TakenBy(holder, false, time.Minute, now).Write(out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	asked := 0
	count := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
		options ...client.GetOption) error {
		asked++
		return c.Get(ctx, key, object, options...)
	}}
	mine, other := object("node-a", plan.HolderOf(run)), object("node-b", lease.Holder{Namespace: "lab", Name: "rival", UID: "v"})
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(other.DeepCopy()).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mine.DeepCopy(), other.DeepCopy()).WithInterceptorFuncs(count).Build()
	o := &Observer{Client: cache, Live: live, Executor: &argo.Executor{Client: cache, Live: live},
		LeaseNamespace: "assay-system", Clock: clock.RealClock{}}
	expect := func(when string, held bool, times int) {
		t.Helper()
		asked = 0
		world := &World{Observed: plan.Observed{Run: run}}
		if err := o.leases(t.Context(), world); err != nil {
			t.Fatal(err)
		}
		if holds(world) != held || asked != times {
			t.Errorf("%s: the run holds a node: %v, asked %d times; want %v, %d", when, holds(world), asked, held, times)
		}
	}
	expect("nothing tells of the lease yet", false, 0)
	o.Memory.Wrote(run, plan.AcquireLeases{Nodes: []string{"node-a"}})
	expect("this operator took it, and the cache is behind", true, 1)
	cache = fake.NewClientBuilder().WithScheme(scheme).WithObjects(mine.DeepCopy(), other.DeepCopy()).Build()
	o.Client = cache
	expect("the cache has it as it was read", true, 0)
	for _, action := range []plan.Action{
		plan.RetakeLeases{Nodes: []string{"node-a"}}, plan.RenewLeases{Nodes: []string{"node-a"}}, plan.DrainLeases{Nodes: []string{"node-a"}},
		plan.ReleaseLeases{Nodes: []string{"node-a"}},
	} {
		o.Memory.Wrote(run, action)
		expect("after "+action.String()+" the cache may be behind", true, 1)
	}
	var changed coordinationv1.Lease
	if err := cache.Get(t.Context(), client.ObjectKeyFromObject(mine), &changed); err != nil {
		t.Fatal(err)
	}
	if err := cache.Update(t.Context(), &changed); err != nil {
		t.Fatal(err)
	}
	expect("the cache knows of a change", true, 1)
}

// Before a run releases a node, its pods and Workflows are read from the API server, except Workflows of waves on other nodes.
func TestLeases_ReleasedNodeIsCheckedOnTheAPIServer(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, argo.AddToScheme,
		assayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u"}}
	run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveCPUs
	labels := executor.Labels(record.Run{Name: "scan", UID: "u"}, 0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "block", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	flow := &argo.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: executor.Name("scan", 0), Labels: labels}}
	elsewhere := &record.Wave{Blocks: []record.Block{{Lease: &record.Lease{Node: "node-b", Token: 1}}}}
	for name, tc := range map[string]struct {
		draining bool
		there    []client.Object
		newest   *record.Wave
		busy     string
	}{
		"nothing":                     {true, nil, nil, ""},
		"a block":                     {true, []client.Object{pod}, nil, "pod block"},
		"a workflow":                  {true, []client.Object{flow}, nil, "execution scan-w000"},
		"a workflow on other nodes":   {true, []client.Object{flow}, elsewhere, ""},
		"a node that is not released": {false, []client.Object{pod}, nil, ""},
		"a block, and other nodes":    {true, []client.Object{pod, flow}, elsewhere, "pod block"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Namespace: "assay-system", Name: lease.Name("node-a"), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
			}}
			mine := lease.Lease{Node: "node-a"}.TakenBy(plan.HolderOf(run), false, time.Minute, time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
			mine.Draining = tc.draining
			if err := mine.Write(object); err != nil {
				t.Fatal(err)
			}
			cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object.DeepCopy()).Build()
			there := []client.Object{object.DeepCopy()}
			for _, got := range tc.there {
				there = append(there, got.DeepCopyObject().(client.Object))
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).Build()
			o := &Observer{Client: cache, Live: live, Executor: &argo.Executor{Client: cache, Live: live},
				LeaseNamespace: "assay-system", Clock: clock.RealClock{}}
			world := &World{Observed: plan.Observed{Run: run, Ledger: plan.LedgerState{Newest: tc.newest}}}
			if err := o.leases(t.Context(), world); err != nil {
				t.Fatal(err)
			}
			if len(world.Leases) != 1 || world.Leases[0].Draining != tc.draining || world.Leases[0].Busy != tc.busy {
				t.Errorf("leases %+v, want one with %q on its node", world.Leases, tc.busy)
			}
		})
	}
}

// Pods of the holder are read only after its lease has expired, because a thousand waiting runs would read them for every node.
func TestLeases_HolderIsReadOnlyAfterExpiry(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, argo.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		left time.Duration
		busy string
	}{
		"it has expired":                 {0, "pod block"},
		"it expires before the decision": {time.Second, "pod block"},
		"it is in force":                 {soon + time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Namespace: "assay-system", Name: lease.Name("node-a"), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
			}}
			theirs := lease.Lease{Node: "node-a"}.TakenBy(lease.Holder{Namespace: "lab", Name: "rival", UID: "v"}, false, time.Hour,
				now.Add(tc.left-time.Hour))
			if err := theirs.Write(object); err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "block", Labels: executor.Labels(record.Run{Name: "rival", UID: "v"}, 0)},
				Spec:       corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			}
			cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object, pod).Build()
			o := &Observer{Client: cache, Live: cache, Executor: &argo.Executor{Client: cache, Live: cache},
				LeaseNamespace: "assay-system",
				Clock:          clocktesting.NewFakePassiveClock(now)}
			run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u"}}
			world := &World{Observed: plan.Observed{Run: run}}
			if err := o.leases(t.Context(), world); err != nil {
				t.Fatal(err)
			}
			if len(world.Leases) != 1 || world.Leases[0].Busy != tc.busy {
				t.Errorf("leases %+v, want one with %q on its node", world.Leases, tc.busy)
			}
		})
	}
}

// absent is an engine whose API is not served.
type absent struct{ argo.Executor }

func (*absent) State() plan.EngineState { return plan.EngineState{Absent: true} }

// If Argo's API is removed while runs hold nodes, the cache of Workflows never fills. A reconcile that waits for it would block all others.
func TestLeases_WithoutArgoTheCacheOfWorkflowsIsNotAwaited(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, argo.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "assay-system", Name: lease.Name("node-a"), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
	}}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	theirs := lease.Lease{Node: "node-a"}.TakenBy(lease.Holder{Namespace: "lab", Name: "rival", UID: "v"}, false, time.Minute, now)
	if err := theirs.Write(object); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "block", Labels: executor.Labels(record.Run{Name: "rival", UID: "v"}, 0)},
		Spec:       corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	listed := func(answer func(ctx context.Context) error) client.Client {
		there := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object.DeepCopy(), pod.DeepCopy())
		return there.WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, ok := list.(*argo.WorkflowList); ok {
					return answer(ctx)
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
	}
	cache := listed(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	live := listed(func(context.Context) error {
		return apierrors.NewNotFound(schema.GroupResource{Group: argo.GroupVersion.Group, Resource: "workflows"}, "")
	})
	o := &Observer{
		Client: cache, Live: live,
		LeaseNamespace: "assay-system", Clock: clocktesting.NewFakePassiveClock(now.Add(time.Hour)),
		Executor: &absent{argo.Executor{Client: cache, Live: live}},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	world := &World{Observed: plan.Observed{
		Run: &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u"}},
	}}
	if err := o.leases(ctx, world); err != nil {
		t.Fatal(err)
	}
	if len(world.Leases) != 1 || world.Leases[0].Busy != "pod block" {
		t.Errorf("leases %+v, want one whose holder still has a pod on the node", world.Leases)
	}
}

// An invalid Lease makes its node unusable, and no other node.
func TestLeases_UnreadableLeaseNamesItsNode(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	spoiled := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "assay-system", Name: lease.Name("node-a"), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
			Annotations: map[string]string{lease.NodeAnnotation: "node-a"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("not a holder")},
	}
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(spoiled,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-b"}}).Build()
	o := &Observer{Client: cache, Live: cache, Executor: &argo.Executor{Client: cache, Live: cache},
		LeaseNamespace: "assay-system", Clock: clock.RealClock{}}
	world := &World{Observed: plan.Observed{Run: &assayv1alpha1.BenchmarkRun{}}}
	if err := o.leases(t.Context(), world); err != nil {
		t.Fatal(err)
	}
	if err := o.nodes(t.Context(), world); err != nil {
		t.Fatal(err)
	}
	for _, node := range world.Nodes {
		if got := node.LeaseDamaged; (got != "") != (node.Name == "node-a") {
			t.Errorf("%s: its lease is damaged: %q", node.Name, got)
		}
	}
}

// The newest decision, not the status, decides whether a run is in the queue, because its status may not be writable.
func TestWaiting_RunWithoutRequestIsNotInTheQueue(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := assayv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u"},
		Status: assayv1alpha1.BenchmarkRunStatus{Queue: &assayv1alpha1.QueueStatus{}}}
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run).Build()
	for sentence, tc := range map[string]struct {
		note func(*Memory)
		want int
	}{
		"without a decision, as after a restart": {func(*Memory) {}, 1},
		"the newest decision requests a node":    {func(m *Memory) { m.Note(run, func(n *Notes) { n.Passive = false }) }, 1},
		"the newest decision requests none":      {func(m *Memory) { m.Note(run, func(n *Notes) { n.Passive = true }) }, 0},
	} {
		o := &Observer{Client: cache}
		tc.note(&o.Memory)
		world := &World{Observed: plan.Observed{Run: run}}
		if err := o.waiting(t.Context(), world); err != nil {
			t.Fatal(err)
		}
		if got := len(world.Waiting); got != tc.want {
			t.Errorf("%s: %d runs wait, want %d", sentence, got, tc.want)
		}
	}
}
