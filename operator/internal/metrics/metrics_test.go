package metrics

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/metrics/catalog"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/golden"
)

// busy returns a cluster in which every metric has a sample.
func busy(t *testing.T) *world {
	t.Helper()
	m, next := newRun(t, "scan"), waiting("next", began.Add(2*time.Hour))
	w := newWorld(t, DefaultSettings, m.run, next, node("node-a", true), node("node-b", false),
		leaseOf(t, "node-a", lease.Holder{Namespace: "lab", Name: "scan", UID: "uid-of-scan"}))
	before := m.world()
	before.Run, before.Ledger.Newest = m.run.DeepCopy(), &record.Wave{Purpose: record.Screen}
	before.Run.Status = assayv1alpha1.BenchmarkRunStatus{}
	after := m.run.Status.DeepCopy()
	after.Leases = []assayv1alpha1.LeaseStatus{{Node: "node-a", Token: 4}}
	w.metrics.Observed(m.world())
	w.metrics.Applied(next, plan.AcquireLeases{Nodes: []string{"node-b"}}, began.Add(2*time.Hour+90*time.Second))
	w.metrics.Applied(m.run, plan.RenewLeases{Nodes: []string{"node-a", "node-b"}}, began)
	w.metrics.Reported(before, after)
	w.metrics.refresh(t.Context())
	w.metrics.ledgerErrors.WithLabelValues("get", "ConnectionRefused").Inc()
	w.metrics.ledgerSeconds.WithLabelValues("get").Observe(0.004)
	return w
}

// searched returns a cluster with a run that searches.
func searched(t *testing.T) *world {
	t.Helper()
	exp, err := fixture.PairExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Gates = nil
		spec.Predictions = []assayv1alpha1.Prediction{{Metric: "time", Ratio: "0.9"}}
	})
	must(t, err)
	m := measure(t, "sought", exp, 4)
	m.exp.Plan.Search = &experiment.Search{Axis: "rate"}
	m.exp.Points = []record.Point{{Key: "rate=1k", Parameters: map[string]string{"rate": "1k"}}}
	m.result.Search = []analysis.SearchResult{{
		Arm: "old", Axis: "rate", Metric: "time", Statistic: "value", FeasibleMax: "12k", InfeasibleMin: "12600", FirstBreach: "none",
		Value: &analysis.Estimate{Value: 0.002, Unit: "s", Blocks: 4},
	}}
	w := newWorld(t, Settings{Runs: 1, SeriesPerRun: 40}, m.run)
	w.metrics.Observed(m.world())
	return w
}

func TestScrape_GoldenFile(t *testing.T) {
	golden.Check(t, "testdata/scrape.golden", busy(t).scrape(true))
}

func TestScrape_MetricsMatchTheCatalog(t *testing.T) {
	seen := map[string]bool{}
	// One of the worlds omits series, so that the metric of omitted series has a sample.
	full := searched(t)
	bounded := searched(t)
	bounded.metrics.settings.SeriesPerRun = 3
	bounded.metrics.shown = map[types.UID]*findings{}
	m := newRun(t, "sought")
	m.run.UID = "uid-of-sought"
	bounded.metrics.Observed(m.world())
	scheduled, _, _, _ := scheduledWorld(t)
	scheduled.metrics.refresh(t.Context())
	for _, w := range []*world{busy(t), full, bounded, scheduled} {
		registry := prometheus.NewPedanticRegistry()
		must(t, registry.Register(w.metrics))
		problems, err := testutil.GatherAndLint(registry)
		must(t, err)
		for _, problem := range problems {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
		families, err := registry.Gather()
		must(t, err)
		for _, family := range families {
			described := catalog.Find(family.GetName())
			seen[described.Name] = true
			if kind := strings.ToLower(family.GetType().String()); kind != string(described.Type) {
				t.Errorf("%s is a %s, but a %s in the catalog", described.Name, kind, described.Type)
			}
			for _, metric := range family.GetMetric() {
				if got, want := names(metric), slices.Sorted(slices.Values(described.Labels)); !slices.Equal(got, want) {
					t.Errorf("%s has labels %v, but %v in the catalog", described.Name, got, want)
				}
			}
		}
	}
	for _, group := range catalog.Groups {
		for _, metric := range group.Metrics {
			if !seen[metric.Name] {
				t.Errorf("%s is in the catalog, but in no scrape", metric.Name)
			}
		}
	}
}

func names(metric *dto.Metric) []string {
	var out []string
	for _, label := range metric.GetLabel() {
		out = append(out, label.GetName())
	}
	return out
}

func TestCatalog_ReferenceIsCurrent(t *testing.T) {
	written, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "metrics.md"))
	must(t, err)
	if diff := cmp.Diff(catalog.Markdown(), string(written)); diff != "" {
		t.Errorf("docs/reference/metrics.md differs from the catalog; run make generate (-catalog +file):\n%s", diff)
	}
}

func TestScrape_FollowerShowsNoRuns(t *testing.T) {
	w := busy(t)
	w.metrics.leading.Store(false)
	for line := range strings.Lines(w.scrape(false)) {
		if !strings.HasPrefix(line, "assay_ledger_operation") {
			t.Errorf("it shows %s", line)
		}
	}
}

func TestScrape_DoesNotAccessTheStore(t *testing.T) {
	w := busy(t)
	w.store.asked.Store(0)
	if w.scrape(false) == "" || w.store.asked.Load() != 0 {
		t.Errorf("the store had %d requests", w.store.asked.Load())
	}
}

func TestScrape_Limits(t *testing.T) {
	runs := func(count int) []*measured {
		var out []*measured
		for i := range count {
			m := newRun(t, fmt.Sprintf("run-%d", i))
			m.run.CreationTimestamp = metav1.NewTime(began.Add(time.Duration(i) * time.Minute))
			out = append(out, m)
		}
		return out
	}
	show := func(settings Settings, all []*measured) *world {
		w := newWorld(t, settings)
		for _, m := range all {
			must(t, w.client.Create(t.Context(), m.run))
			w.metrics.Observed(m.world())
		}
		return w
	}
	t.Run("the newest runs are shown, and the omitted ones counted", func(t *testing.T) {
		w := show(Settings{Runs: 2, SeriesPerRun: 1000}, runs(3))
		if got := len(w.with(`run="run-0"`)); got != 0 {
			t.Errorf("%d series of the oldest run", got)
		}
		if len(w.with("assay_comparison_ratio", `run="run-1"`)) == 0 || len(w.with("assay_comparison_ratio", `run="run-2"`)) == 0 {
			t.Error("the newer runs are not shown")
		}
		if got := w.with("assay_metrics_left_out_runs", " 1"); len(got) != 1 {
			t.Errorf("left out: %v", w.with("assay_metrics_left_out_runs"))
		}
		if got := w.with("assay_runs{", `phase="Succeeded"`, " 3"); len(got) != 1 {
			t.Errorf("runs are %v", w.with("assay_runs{"))
		}
	})
	t.Run("deciding series of a run are shown, and the omitted ones counted", func(t *testing.T) {
		const limit = 30
		all := len(find(newRun(t, "x").run, newRun(t, "x").exp, newRun(t, "x").result, 100000).results)
		w := show(Settings{Runs: 2, SeriesPerRun: limit}, runs(1))
		results := len(w.metrics.shown["uid-of-run-0"].results)
		if results > limit || results < limit-4 {
			t.Errorf("%d series", results)
		}
		if len(w.with("assay_gate_outcome")) == 0 || len(w.with("assay_phase_seconds")) != 0 {
			t.Errorf("the deciding series are omitted")
		}
		if got := w.with("assay_metrics_left_out_series", fmt.Sprintf(" %d", all-results)); len(got) != 1 {
			t.Errorf("left out: %v of %d", w.with("assay_metrics_left_out_series"), all)
		}
	})
	t.Run("the newest runs have results", func(t *testing.T) {
		m, out := newRun(t, "x"), make(chan prometheus.Metric, 1000)
		built := find(m.run, m.exp, m.result, 1000)
		if left := collectRun(m.run, built, len(built.results), newScrape(out)); left != 0 {
			t.Errorf("room for %d is left", left)
		}
		with := len(out)
		if left := collectRun(m.run, built, len(built.results)-1, newScrape(out)); left != len(built.results)-1 {
			t.Errorf("room for %d is left", left)
		}
		if without := len(out) - with; without != with-len(built.results)+1 {
			t.Errorf("%d series with results and %d without, one of which counts omitted series", with, without)
		}
	})
}

func TestScrape_DeletedRunIsRemoved(t *testing.T) {
	w := busy(t)
	var run assayv1alpha1.BenchmarkRun
	run.Namespace, run.Name = "lab", "scan"
	must(t, w.client.Delete(t.Context(), &run))
	if got := w.with(`run="scan"`, "assay_r"); len(got) != 0 {
		t.Errorf("series of the deleted run: %q", got)
	}
	w.metrics.refresh(t.Context())
	if len(w.metrics.shown) != 0 {
		t.Error("findings of the deleted run are retained")
	}
}

func TestFindings_NewLeaderReadsFinishedRuns(t *testing.T) {
	m, empty := newRun(t, "scan"), waiting("empty", began)
	empty.Status.Phase, empty.Status.Wave = assayv1alpha1.PhaseFailed, ptr.To[int32](0)
	empty.Status.Queue, empty.Status.CompletionTime = nil, ptr.To(metav1.NewTime(began))
	w := newWorld(t, DefaultSettings, m.run, empty)
	m.write(t, w.store)

	w.store.away.Store(true)
	w.metrics.refresh(t.Context())
	if up, unread := w.with("assay_ledger_up 0"), w.with("assay_metrics_unread_analyses 2"); len(up) != 1 || len(unread) != 1 {
		t.Errorf("with an unreachable store: %v", w.with("assay_ledger_up", ""))
	}
	w.store.away.Store(false)
	w.metrics.refresh(t.Context())
	if up, unread := w.with("assay_ledger_up 1"), w.with("assay_metrics_unread_analyses 0"); len(up) != 1 || len(unread) != 1 {
		t.Errorf("with a reachable store: %v %v", w.with("assay_ledger_up"), w.with("assay_metrics_unread"))
	}
	results := w.with(`run="scan"`, "assay_result_estimate")

	// It shows the same series as an operator that observed the end of the run.
	w.restart(DefaultSettings)
	w.metrics.Observed(m.world())
	if seen := w.with(`run="scan"`, "assay_result_estimate"); !slices.Equal(results, seen) || len(seen) == 0 {
		t.Errorf("after a restart: %d series, before: %d", len(results), len(seen))
	}

	w.restart(DefaultSettings)
	w.metrics.refresh(t.Context())
	w.store.asked.Store(0)
	w.metrics.refresh(t.Context())
	if asked := w.store.asked.Load(); asked != 1 {
		t.Errorf("without changes the store had %d requests, want only the health check", asked)
	}
}

func TestFindings_DamagedLedgerIsCounted(t *testing.T) {
	m := newRun(t, "scan")
	w := newWorld(t, DefaultSettings, m.run)
	m.write(t, w.store)
	must(t, observe.RunStore(w.store, m.run).Replace(t.Context(), ledger.AnalysisKey(0), []byte("{")))
	w.metrics.refresh(t.Context())
	if got := w.with("assay_metrics_unread_analyses 1"); len(got) != 1 {
		t.Errorf("unread: %v", w.with("assay_metrics_unread_analyses"))
	}
}

// An untrusted program may leave a rejected analysis in every ledger.
func TestFindings_RefusedAnalysisIsReadRarely(t *testing.T) {
	for sentence, tc := range map[string]struct {
		raw         string
		least, most int
	}{
		"invalid JSON":       {"{", 2, 6},
		"an invalid verdict": {`{"verdict": "Banana"}`, 2, 6},
	} {
		m := newRun(t, "scan")
		w := newWorld(t, DefaultSettings, m.run)
		m.write(t, w.store)
		own := observe.RunStore(w.store, m.run)
		must(t, own.Replace(t.Context(), ledger.AnalysisKey(0), []byte(tc.raw)))
		now, reads := w.metrics.from.Clock.(*testingclock.FakeClock), 0
		refresh := func() {
			before := w.store.asked.Load()
			w.metrics.refresh(t.Context())
			if reads += int(w.store.asked.Load()-before) - 1; len(w.with("assay_metrics_unread_analyses 1")) != 1 {
				t.Fatalf("%s: unread: %v", sentence, w.with("assay_metrics_unread_analyses"))
			}
			now.Step(refreshEvery)
		}
		for range 30 {
			refresh()
		}
		if reads < tc.least || reads > tc.most {
			t.Errorf("%s: within a quarter of an hour %d objects were read, want %d to %d", sentence, reads, tc.least, tc.most)
		}
		m.write(t, w.store)
		now.Step(ledger.RefusedMost)
		if w.metrics.refresh(t.Context()); len(w.with("assay_metrics_unread_analyses 0")) != 1 || len(w.metrics.refused) > 0 {
			t.Errorf("%s: the corrected analysis is not shown", sentence)
		}
	}
}

// A store that fails during reads causes no backoff of analyses; they are read as soon as it answers.
func TestFindings_FailedReadIsRetriedAtOnce(t *testing.T) {
	m := newRun(t, "scan")
	w := newWorld(t, DefaultSettings, m.run)
	m.write(t, w.store)
	healthy := w.metrics.from.Store
	w.metrics.from.Store = failing{healthy}
	for range 20 {
		w.metrics.refresh(t.Context())
		w.metrics.from.Clock.(*testingclock.FakeClock).Step(refreshEvery)
	}
	w.metrics.from.Store = healthy
	if w.metrics.refresh(t.Context()); len(w.with("assay_metrics_unread_analyses 0")) != 1 {
		t.Error("the store answers, but the analysis is not read")
	}
}

// failing answers health checks only.
type failing struct{ store.Store }

func (failing) Get(context.Context, string) ([]byte, error) { return nil, store.ErrUnreachable }

func TestFindings_NewAnalysisReplacesTheOld(t *testing.T) {
	w, m := busy(t), newRun(t, "scan")
	m.result.Wave, m.result.Ratios = 1, m.result.Ratios[:1]
	w.metrics.Observed(m.world())
	if got := w.with("assay_comparison_ratio{"); len(got) != 1 {
		t.Errorf("%d ratios are shown, want 1", len(got))
	}
}

func TestScrape_DuplicateSeriesIsShownOnce(t *testing.T) {
	w, m := busy(t), newRun(t, "scan")
	m.result.Wave = 1
	m.result.Ratios = append(m.result.Ratios, m.result.Ratios...)
	m.result.Gates = append(m.result.Gates, m.result.Gates...)
	before := len(w.with("assay_comparison_ratio{"))
	w.metrics.Observed(m.world())
	if after := len(w.with("assay_comparison_ratio{")); after != before {
		t.Errorf("%d ratios, want %d", after, before)
	}
}

func TestScrape_UnjudgedGateHasNoEstimate(t *testing.T) {
	w, m := busy(t), newRun(t, "scan")
	m.result.Wave = 1
	m.result.Gates = []analysis.GateResult{{
		Gate: "slo", Candidate: "fused-m4r", Metric: "latency", Statistic: "p99", Op: experiment.AtMost, Bound: ptr.To(0.02),
		Severity: experiment.Blocking, Outcome: experiment.VerdictInvalid, Estimate: &analysis.Estimate{Unit: "s", Blocks: 4},
	}}
	w.metrics.Observed(m.world())
	if got := w.with("assay_gate_estimate{"); len(got) != 0 {
		t.Errorf("estimate: %q", got)
	}
	if bound, outcome := w.with("assay_gate_bound{", " 0.02"), w.with("assay_gate_outcome{", `outcome="Invalid"`); len(bound) != 1 ||
		len(outcome) != 1 {
		t.Errorf("bound %q, outcome %q", bound, outcome)
	}
}

func TestCounters_FinishedRunIsCountedOnce(t *testing.T) {
	w, m := busy(t), newRun(t, "scan")
	trials, gates := w.with("assay_trials_finished_total"), w.with("assay_gates_judged_total")
	// Its node is released after the end, which is another status update.
	after := m.run.Status.DeepCopy()
	m.run.Status.Leases = []assayv1alpha1.LeaseStatus{{Node: "node-a", Token: 1}}
	w.metrics.Reported(m.world(), after)
	if got := w.with("assay_runs_finished_total", " 1"); len(got) != 1 {
		t.Errorf("finished: %q", w.with("assay_runs_finished_total"))
	}
	if got := w.with("assay_trials_finished_total"); !slices.Equal(got, trials) {
		t.Errorf("trials were %q and are %q", trials, got)
	}
	if got := w.with("assay_gates_judged_total"); !slices.Equal(got, gates) {
		t.Errorf("gates were %q and are %q", gates, got)
	}
	if got := w.with("assay_lease_events_total", `event="released"`, " 1"); len(got) != 1 {
		t.Errorf("leases: %q", w.with("assay_lease_events_total"))
	}
}

func TestWaited_Duration(t *testing.T) {
	cases := map[string]struct {
		queue *assayv1alpha1.QueueStatus
		want  time.Duration
	}{
		"in the queue for two minutes":  {&assayv1alpha1.QueueStatus{Since: metav1.NewTime(began)}, 2 * time.Minute},
		"not in the queue":              {nil, 0},
		"with a clock that jumped back": {&assayv1alpha1.QueueStatus{Since: metav1.NewTime(began.Add(time.Hour))}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := &assayv1alpha1.BenchmarkRun{}
			run.Status.Queue = tc.queue
			if got := waited(run, began.Add(2*time.Minute)); got != tc.want {
				t.Errorf("waited %s, want %s", got, tc.want)
			}
		})
	}
}

func TestStore_OperationsAndFailures(t *testing.T) {
	folder, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	must(t, err)
	gone := goneStore{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		store store.Store
		do    func(store.Store) error
		// operation and cause of the counted failure; empty if none is counted.
		operation, cause string
	}{
		"a missing object is no failure": {folder, func(s store.Store) error { _, err := s.Get(t.Context(), "none"); return err }, "get", ""},
		"an existing object is no failure": {folder, func(s store.Store) error {
			_ = s.Create(t.Context(), "a", nil)
			return s.Create(t.Context(), "a", []byte("b"))
		}, "create", ""},
		"an oversized object of an untrusted writer is no failure": {folder, func(s store.Store) error {
			_ = s.Replace(t.Context(), "large", make([]byte, 9))
			_, err := store.GetAtMost(t.Context(), s, "large", 8)
			return err
		}, "get", ""},
		"a write":                           {folder, func(s store.Store) error { return s.Replace(t.Context(), "b", nil) }, "replace", ""},
		"a listing":                         {folder, func(s store.Store) error { _, err := s.List(t.Context(), "b"); return err }, "list", ""},
		"an unreachable store":              {gone, func(s store.Store) error { _, err := s.Get(t.Context(), "a"); return err }, "get", "ConnectionRefused"},
		"a listing of an unreachable store": {gone, func(s store.Store) error { _, err := s.List(t.Context(), "a"); return err }, "list", "ConnectionRefused"},
		"a cancelled request is no failure": {gone, func(s store.Store) error { _, err := s.Get(ended, "a"); return err }, "get", ""},
		"an error without a known cause":    {folder, func(s store.Store) error { _, err := s.Get(t.Context(), "../a"); return err }, "get", "Other"},
		"a prefix of an unreachable store":  {gone, func(s store.Store) error { _, err := store.WithPrefix(s, "runs").Get(t.Context(), "a"); return err }, "get", "ConnectionRefused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := New(DefaultSettings)
			_ = tc.do(m.Store(tc.store))
			if n := testutil.CollectAndCount(m.ledgerSeconds); n == 0 {
				t.Errorf("%d operations were timed", n)
			}
			if tc.cause == "" {
				if n := testutil.CollectAndCount(m.ledgerErrors); n != 0 {
					t.Errorf("%d failures were counted", n)
				}
				return
			}
			if n := testutil.ToFloat64(m.ledgerErrors.WithLabelValues(tc.operation, tc.cause)); n != 1 ||
				testutil.CollectAndCount(m.ledgerErrors) != 1 {
				t.Errorf("%v of %s/%s were counted", n, tc.operation, tc.cause)
			}
		})
	}
}

// heap returns the bytes in use after a garbage collection.
func heap(t *testing.T) int {
	t.Helper()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// The memory of results is bounded for any analyses; the memory limit of the operator in the chart is 256 MiB.
func TestFindings_MemoryIsBounded(t *testing.T) {
	m := newRun(t, "scan")
	m.result.Arms = nil
	for i := range 10000 {
		e := analysis.Estimate{Value: float64(i), Unit: "s", Low: ptr.To(1.0), High: ptr.To(2.0), Blocks: 3}
		m.result.Arms = append(m.result.Arms,
			analysis.ArmResult{Point: fmt.Sprintf("batchSize=%d", i), Arm: "fused-m4r", Metric: "latency", Statistic: "p95", Estimate: e})
	}
	before := heap(t)
	var kept []*findings
	for range catalog.Series / catalog.SeriesPerRun {
		kept = append(kept, find(m.run, m.exp, m.result, catalog.SeriesPerRun))
	}
	const most = 32 << 20
	if grown := heap(t) - before; grown > most {
		t.Errorf("%d series take %d MiB, want at most %d", catalog.Series, grown>>20, most>>20)
	}
	runtime.KeepAlive(kept)
}

// BenchmarkScrape measures the largest possible scrape, at the limits of series.
func BenchmarkScrape(b *testing.B) {
	m := New(DefaultSettings)
	run := &assayv1alpha1.BenchmarkRun{}
	run.Namespace, run.Name = "lab", "scan"
	result := &analysis.Analysis{}
	for i := range 2000 {
		e := analysis.Estimate{Value: float64(i), Unit: "s", Low: ptr.To(1.0), High: ptr.To(2.0), Blocks: 3}
		result.Arms = append(result.Arms,
			analysis.ArmResult{Point: fmt.Sprintf("batchSize=%d", i), Arm: "fused-m4r", Metric: "latency", Statistic: "p95", Estimate: e})
	}
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		b.Fatal(err)
	}
	var all []*findings
	for i := range 25 {
		run.Name = fmt.Sprint("scan-", i)
		all = append(all, find(run, exp, result, m.settings.SeriesPerRun))
	}
	b.ReportAllocs()
	for b.Loop() {
		out, done := make(chan prometheus.Metric, 100), make(chan int)
		go func() {
			count := 0
			for metric := range out {
				_ = metric.Write(&dto.Metric{})
				count++
			}
			done <- count
		}()
		left, s := catalog.Series, newScrape(out)
		for i, shown := range all {
			named := run.DeepCopy()
			named.Name = fmt.Sprint("scan-", i)
			left = collectRun(named, shown, left, s)
		}
		close(out)
		if count := <-done; count < catalog.Series*9/10 {
			b.Fatalf("%d series", count)
		}
	}
}
