package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/slimmed"
)

const leaseNamespace = "assay-system"

var began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// countingStore is a folder of ledgers that counts requests, and can be made unreachable.
type countingStore struct {
	store.Store
	asked atomic.Int32
	away  atomic.Bool
}

func (s *countingStore) Get(ctx context.Context, key string) ([]byte, error) {
	s.asked.Add(1)
	if s.away.Load() {
		return nil, store.ErrUnreachable
	}
	return s.Store.Get(ctx, key)
}

func (s *countingStore) Check(ctx context.Context) error {
	s.asked.Add(1)
	if s.away.Load() {
		return store.ErrUnreachable
	}
	return s.Store.Check(ctx)
}

// goneStore is an unreachable store.
type goneStore struct{ store.Store }

func (goneStore) fault(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &store.Fault{Cause: store.CauseRefused, Tried: "read a"}
}

func (s goneStore) Get(ctx context.Context, _ string) ([]byte, error) { return nil, s.fault(ctx) }

func (s goneStore) Page(ctx context.Context, _, _ string) ([]string, bool, error) {
	return nil, false, s.fault(ctx)
}

// world is a cluster, a store and the metrics of the leading operator.
type world struct {
	t      *testing.T
	client client.Client
	// reader is the operator's view of the client's objects, with the fields that its caches retain.
	reader  client.Reader
	store   *countingStore
	metrics *Metrics
}

func newWorld(t *testing.T, settings Settings, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, assayv1alpha1.AddToScheme} {
		must(t, add(scheme))
	}
	folder, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	must(t, err)
	w := &world{t: t, store: &countingStore{Store: folder}}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	w.reader = slimmed.Reader{All: w.client}
	w.restart(settings)
	return w
}

// restart starts another operator as the leader.
func (w *world) restart(settings Settings) {
	w.metrics = New(settings)
	w.metrics.leading.Store(true)
	must(w.t, w.metrics.Register(prometheus.NewRegistry(), Sources{
		Stored: func() map[string]store.Sizes { return map[string]store.Sizes{"lab": {Bytes: 1 << 30, Objects: 4000}} },
		Reader: w.reader, LeaseNamespace: leaseNamespace, Store: w.store, Clock: testingclock.NewFakeClock(began),
	}))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scrape returns the exported text, with comments on request.
func (w *world) scrape(comments bool) string {
	w.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	must(w.t, registry.Register(w.metrics))
	families, err := registry.Gather()
	must(w.t, err)
	var out bytes.Buffer
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&out, family)
		must(w.t, err)
	}
	if comments {
		return out.String()
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// with returns the lines of a scrape that contain all texts.
func (w *world) with(texts ...string) []string {
	w.t.Helper()
	var out []string
	for line := range strings.Lines(w.scrape(false)) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// measured is a finished run with its analysis.
type measured struct {
	run    *assayv1alpha1.BenchmarkRun
	exp    *experiment.Experiment
	result *analysis.Analysis
}

// newRun returns a finished run: two points, two arms, and four blocks on two nodes, one of them with a temporary neighbour.
func newRun(t *testing.T, name string) *measured {
	t.Helper()
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Sweep.Axes = []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1", "8"}}}
		spec.Arms = spec.Arms[:1:1]
		spec.Arms = append(spec.Arms, assayv1alpha1.Arm{Name: "fused-m4r", Parameters: assayv1alpha1.ParameterValues{"strategy": "fused-m4r"}})
	})
	must(t, err)
	return measure(t, name, exp, 8)
}

func measure(t *testing.T, name string, exp *experiment.Experiment, blocks int) *measured {
	t.Helper()
	exp.Run = record.Run{Namespace: "lab", Name: name, UID: "uid-of-" + name}
	digest, err := exp.ComputeDigest()
	must(t, err)
	exp.Digest = digest
	wave, err := design.BuildWave(exp, 0, 0, blocks, []design.Lane{{Node: "node-a", Token: 1}, {Node: "node-b", Token: 4}})
	must(t, err)
	attempts := fixture.Machine{Seed: 3, Samples: 30, Seconds: fixture.ScanSeconds, Noise: fixture.Noise{Trial: 0.01}}.Run(exp, wave)
	for i := range attempts {
		if attempts[i].Block == "w000-b0003" {
			fixture.Neighbour{Slowdown: 1.2, Canary: 1.5, OtherWork: 0.3}.Disturb(&attempts[i])
		}
	}
	for i := range attempts {
		attempts[i].Kept = &record.Kept{Clock: &record.Clock{AheadSeconds: -0.25, UncertaintySeconds: 0.5}}
	}
	result := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
	spec, _, err := fixture.SpecAndTemplate(exp)
	must(t, err)
	run := &assayv1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(exp.Run.UID), CreationTimestamp: metav1.NewTime(began)},
		Spec:       spec,
	}
	run.Status = assayv1alpha1.BenchmarkRunStatus{
		Phase: assayv1alpha1.PhaseSucceeded, Verdict: assayv1alpha1.Verdict(result.Verdict), Best: result.Best, Wave: ptr.To[int32](0),
		Trials: assayv1alpha1.TrialCounts{
			Planned: int32(result.Trials.Planned), Done: int32(result.Trials.Used), Invalid: int32(result.Trials.Invalid),
		},
		StartTime:      ptr.To(metav1.NewTime(began.Add(time.Minute))),
		CompletionTime: ptr.To(metav1.NewTime(began.Add(time.Hour))),
		Conditions: []metav1.Condition{
			{Type: assayv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: assayv1alpha1.ReasonFinished},
			{Type: assayv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: assayv1alpha1.ReasonVerdictReached},
		},
	}
	raw, err := json.Marshal(result)
	must(t, err)
	run.Status.Analysis = &assayv1alpha1.AnalysisStatus{SHA256: record.SHA256(raw)}
	return &measured{run, exp, result}
}

// waiting returns a run that has waited for a node since a time.
func waiting(name string, since time.Time) *assayv1alpha1.BenchmarkRun {
	return &assayv1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(since)},
		Status: assayv1alpha1.BenchmarkRunStatus{
			Phase: assayv1alpha1.PhasePending, Remaining: &metav1.Duration{Duration: time.Minute},
			Queue: &assayv1alpha1.QueueStatus{Since: metav1.NewTime(since)},
			Conditions: []metav1.Condition{{
				Type: assayv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: assayv1alpha1.ReasonWaitingForLease,
				LastTransitionTime: metav1.NewTime(since),
			}},
		},
	}
}

func (m *measured) world() *observe.World {
	return &observe.World{
		Observed: plan.Observed{Run: m.run, Ledger: plan.LedgerState{Experiment: m.exp}}, Analysis: m.result,
	}
}

// write writes the run's ledger to the store.
func (m *measured) write(t *testing.T, store store.Store) {
	t.Helper()
	own := observe.RunStore(store, m.run)
	for key, value := range map[string]any{ledger.ExperimentKey: m.exp, ledger.AnalysisKey(0): m.result} {
		raw, err := json.Marshal(value)
		must(t, err)
		must(t, own.Replace(t.Context(), key, raw))
	}
}

func node(name string, ready bool) *corev1.Node {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3500m")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}},
	}}
}

func leaseOf(t *testing.T, node string, holder lease.Holder) *coordinationv1.Lease {
	t.Helper()
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: leaseNamespace, Name: lease.Name(node), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
	}}
	must(t, lease.Lease{Node: node, Token: 3}.TakenBy(holder, true, time.Minute, began).Write(object))
	return object
}
