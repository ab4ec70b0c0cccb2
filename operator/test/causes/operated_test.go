package causes

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/policy"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/status"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/fakeexecutor"
)

// created is when the run of these tests was created.
var created = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// operated is a run and its operator. The operator observes, decides and reports as in a cluster, but no watch wakes it: it reconciles only
// when its last decision asked for that, so that a cause reaches the status as late as it can.
type operated struct {
	t        *testing.T
	observer *observe.Observer
	settings plan.Settings
	clock    *clocktesting.FakePassiveClock
	api      client.Client
	engine   *fakeexecutor.Executor
	run      *assayv1alpha1.BenchmarkRun
	exp      *experiment.Experiment
	events   strings.Builder
	// next is when the operator reconciles again, after its last reconcile; 0 is never.
	next time.Duration
	// away is the error of every request to the store, and refused that of every start of a wave; nil without one.
	away, refused error
}

// operate returns a run that was just created, on a node with four CPUs.
func operate(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec),
	both func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)) *operated {
	t.Helper()
	exp, err := fixture.PairExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveNone
		spec.Placement.CPUs, spec.Placement.Memory = 1, resource.MustParse("1Gi")
	})
	if err != nil {
		t.Fatal(err)
	}
	spec, template, err := fixture.SpecAndTemplate(exp)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&spec)
	}
	if both != nil {
		both(&spec, &template)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, assayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := &operated{t: t, exp: exp, clock: clocktesting.NewFakePassiveClock(created), engine: fakeexecutor.New()}
	out.run = &assayv1alpha1.BenchmarkRun{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: exp.Run.Namespace, Name: exp.Run.Name, UID: types.UID(exp.Run.UID), CreationTimestamp: metav1.NewTime(created),
	}}
	objects := []client.Object{node("node-a", nil)}
	if spec.TemplateRef != nil {
		objects = append(objects, &assayv1alpha1.BenchmarkTemplate{Spec: template,
			ObjectMeta: metav1.ObjectMeta{Namespace: exp.Run.Namespace, Name: "simulated"}})
	}
	out.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	out.observer = &observe.Observer{
		Client: out.api, Live: out.api, LeaseNamespace: "assay-system", Executor: out.engine, Clock: out.clock,
		Store: store.Around(folder, func(ctx context.Context, what string, operation func(context.Context) error) error {
			if out.away != nil {
				return store.Explain(what, out.away)
			}
			return operation(ctx)
		}),
	}
	out.settings = plan.Settings{ // The defaults of the operator's flags.
		ImagePullGrace: 5 * time.Minute, LedgerRetry: 10 * time.Second, NodeGrace: 40 * time.Second, Policy: &policy.Policy{},
		Engine: fakeexecutor.Engine,
	}
	return out
}

func node(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created)}},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")},
	}}
}

// pod adds a pod of the first block to the cluster.
func (o *operated) pod(edit func(*corev1.Pod)) {
	o.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.run.Namespace, Name: o.run.Name + "-b0000", CreationTimestamp: metav1.NewTime(o.clock.Now()),
			Labels: map[string]string{executor.RunUIDLabel: string(o.run.UID)}},
		Spec: corev1.PodSpec{NodeName: "node-a"},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(o.clock.Now())},
		}},
	}
	edit(pod)
	if err := o.api.Create(o.t.Context(), pod); err != nil {
		o.t.Fatal(err)
	}
}

// measures adds the attempts of the first trials of a wave to the ledger.
func (o *operated) measures(spoil func(*record.Attempt)) {
	o.t.Helper()
	wave := o.wave()
	attempts := fixture.NewWorld(fixture.Scenarios()[0], 0, 1, 1).Run(o.exp, wave)
	for i := range attempts {
		spoil(&attempts[i])
	}
	objects, err := fixture.Objects(o.exp, []*record.Wave{wave}, attempts[:4])
	if err != nil {
		o.t.Fatal(err)
	}
	files := observe.RunStore(o.observer.Store, o.run)
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if !strings.HasPrefix(key, ledger.AttemptsPrefix) {
			continue
		}
		if err := files.Create(o.t.Context(), key, objects[key]); err != nil {
			o.t.Fatal(err)
		}
	}
}

// wave returns the newest wave in the ledger.
func (o *operated) wave() *record.Wave {
	o.t.Helper()
	waves, problems, err := ledger.ReadWaves(o.t.Context(), observe.RunStore(o.observer.Store, o.run), 0)
	if err != nil || len(problems) > 0 || len(waves) != 1 {
		o.t.Fatalf("%d waves, problems %v (%v)", len(waves), problems, err)
	}
	return &waves[0]
}

// starts lets the operator accept the run, plan its first wave and start it.
func (o *operated) starts() {
	o.t.Helper()
	for range 10 {
		o.reconcile()
	}
	name := executor.Name(o.run.Name, 0)
	if !o.engine.Set(o.run.Namespace, name, func(e *executor.Execution) { e.Seen, e.CreatedAt = true, o.clock.Now() }) {
		o.t.Fatalf("no wave was started: %+v", o.run.Status.Conditions)
	}
	o.reconcile()
}

// reconcile lets the operator observe, decide, act and report once.
func (o *operated) reconcile() {
	o.t.Helper()
	world, err := o.observer.Observe(o.t.Context(), o.run)
	if err != nil {
		o.t.Fatal(err)
	}
	if o.settings.Policy.Counts(o.run.Namespace) {
		world.UnderWay = 3
	}
	decision := plan.Decide(world.Observed, o.settings, o.clock.Now())
	outcome := status.Outcome{World: world, Decision: decision}
	if err := o.do(decision.Action); apply.Permanent(err) {
		outcome.Decision = plan.CannotStart(err)
	} else if err != nil {
		outcome.WriteErr = err
	}
	computed := status.Compute(outcome, o.clock.Now())
	for _, event := range status.Events(&o.run.Status, &computed) {
		o.events.WriteString(event.Message + "\n")
	}
	o.run.Status = computed
	after, again := outcome.Decision.RequeueAfter()
	if o.next = after; again {
		o.next = max(after, time.Nanosecond)
	}
	if outcome.LedgerErr != nil || outcome.WriteErr != nil {
		o.next = o.settings.LedgerRetry
	}
}

// do executes the actions of a run without leases until its wave has ended.
func (o *operated) do(action plan.Action) error {
	put := func(key string, value any) error {
		raw, err := ledger.JSON(value)
		if err != nil {
			return err
		}
		return observe.RunStore(o.observer.Store, o.run).Create(o.t.Context(), key, raw)
	}
	switch action := action.(type) {
	case nil:
		return nil
	case plan.Accept:
		o.exp = action.Experiment
		return put(ledger.ExperimentKey, action.Experiment)
	case plan.PlanWave:
		return put(ledger.WaveKey(action.Wave.Wave), action.Wave)
	case plan.StartWave:
		if o.refused != nil {
			return o.refused
		}
		return o.engine.StartWave(o.t.Context(), discard{}, action)
	case plan.Stop:
		return o.engine.Stop(o.t.Context(), discard{}, executor.ID{Namespace: o.run.Namespace, Name: action.Execution},
			executor.Stop{Analyze: true, Again: action.Why})
	case plan.Terminate:
		return o.engine.Stop(o.t.Context(), discard{}, executor.ID{Namespace: o.run.Namespace, Name: action.Execution}, executor.Stop{})
	default:
		o.t.Fatalf("unexpected action: %s", action)
		return nil
	}
}

// discard is an executor.Writer whose objects the test does not need.
type discard struct{ executor.Writer }

func (discard) Apply(context.Context, client.Object) error { return nil }

// told reconciles until every view has a text, and returns how long that takes from now, and the views that lack it after five minutes.
func (o *operated) told(says string) (after time.Duration, missing []string) {
	o.t.Helper()
	from := o.clock.Now()
	for {
		o.clock.SetTime(o.clock.Now().Add(o.next))
		o.reconcile()
		missing = nil
		for name, text := range o.views() {
			if !strings.Contains(plain(text), plain(says)) {
				missing = append(missing, name)
			}
		}
		if after = o.clock.Since(from); len(missing) == 0 || o.next == 0 || after > 5*time.Minute {
			return after, missing
		}
	}
}

// views are the views of a run that has no analysis. Events are those of a run that waits or ends: one that continues has none.
func (o *operated) views() map[string]string {
	var conditions, summary strings.Builder
	waits := progress.Ended(o.run)
	for _, condition := range o.run.Status.Conditions {
		conditions.WriteString(condition.Message + "\n")
		waits = waits || condition.Status == metav1.ConditionFalse && condition.Type != assayv1alpha1.ConditionSuspended
	}
	progress.Summary(&summary, o.run)
	out := map[string]string{"condition": conditions.String(), "kubectl get": o.run.Status.Reason, "assay watch": progress.Line(o.run),
		"assay get": summary.String()}
	if waits {
		out["events"] = o.events.String()
	}
	return out
}
