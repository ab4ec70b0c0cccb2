package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/metrics/catalog"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
)

// The holder of the key of a namespace's ledger can write arbitrary analyses, which may affect only the metrics of that namespace's runs.

// runIn returns an active run in a namespace.
func runIn(namespace, name string, created time.Time) *assayv1alpha1.BenchmarkRun {
	run := waiting(name, created)
	run.Namespace, run.UID = namespace, types.UID(namespace+"/"+name)
	return run
}

// says writes an analysis of a run for the operator to read.
func (w *world) says(run *assayv1alpha1.BenchmarkRun, result *analysis.Analysis) {
	m := &measured{run, &experiment.Experiment{}, result}
	w.metrics.Observed(m.world())
}

// usage returns the usage of a node with all noise readings, the newest of which has this value.
func usage(node string, newest time.Time, value float64) analysis.NodeUsage {
	out := analysis.NodeUsage{Node: node, Trials: 1, Newest: newest}
	for _, kind := range noise.Kinds {
		read := ptr.To(value)
		out.Noise = append(out.Noise, analysis.NodeNoise{Kind: kind, Limit: read, Newest: read, Median: read, Max: read, Beyond: 1})
	}
	return out
}

func TestNoise_ReadingsOfUntrustedAnalyses(t *testing.T) {
	clock := func(ahead float64, u analysis.NodeUsage) analysis.NodeUsage {
		u.Clock = &analysis.NodeClock{AheadSeconds: ahead}
		return u
	}
	far := time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)
	type claim struct {
		holds bool
		usage analysis.NodeUsage
	}
	cases := map[string]struct {
		claims []claim
		// want is the newest reading shown of node-a; empty if none is shown.
		want string
	}{
		"a node of the cluster is shown": {[]claim{{false, usage("node-a", began, 0.1)}}, "0.1"},
		"an unknown node is not shown":   {[]claim{{false, usage("node-z", began, 0.1)}}, ""},
		"the newer one of two readings is shown": {
			[]claim{{false, usage("node-a", began, 0.1)}, {false, usage("node-a", began.Add(time.Second), 0.2)}},
			"0.2",
		},
		"a trial in the future is ignored": {
			[]claim{{false, usage("node-a", began, 0.1)}, {false, usage("node-a", far, 0.2)}},
			"0.1",
		},
		"a trial in the future is ignored without other readings": {[]claim{{false, usage("node-a", far, 0.2)}}, ""},
		"a clock slightly ahead is accepted":                      {[]claim{{false, usage("node-a", began.Add(time.Minute), 0.2)}}, "0.2"},
		"a clock far ahead is accepted with its offset reading": {
			[]claim{{false, clock(86400, usage("node-a", began.Add(24*time.Hour), 0.2))}},
			"0.2",
		},
		"a clock far ahead does not make a reading newer": {
			[]claim{{false, clock(7200, usage("node-a", began.Add(time.Hour), 0.2))}, {false, usage("node-a", began, 0.1)}},
			"0.1",
		},
		"an impossible clock offset is ignored":        {[]claim{{false, clock(-1e300, usage("node-a", began, 0.2))}}, ""},
		"a clock offset that is not finite is ignored": {[]claim{{false, clock(math.NaN(), usage("node-a", began, 0.2))}}, ""},
		"a run with an observed lease precedes a claim": {
			[]claim{{true, usage("node-a", began, 0.1)}, {false, usage("node-a", began.Add(time.Second), 0.2)}},
			"0.1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, DefaultSettings, node("node-a", true))
			for i, claim := range tc.claims {
				run := runIn(fmt.Sprint("team-", i), "scan", began)
				if claim.holds {
					run.Status.Leases = []assayv1alpha1.LeaseStatus{{Node: "node-a", Token: 1}}
				}
				must(t, w.client.Create(t.Context(), run))
				w.says(run, &analysis.Analysis{Usage: analysis.Usage{Nodes: []analysis.NodeUsage{claim.usage}}})
				// The run released the node, and is not observed again.
				run.Status.Leases = nil
				w.metrics.Observed((&measured{run, nil, nil}).world())
			}
			got := ""
			for _, line := range w.with("assay_node_noise_ratio{", `kind="steal"`, `statistic="newest"`) {
				got += line[strings.LastIndex(line, " ")+1:]
			}
			if got != tc.want {
				t.Errorf("the newest reading shown is %q, want %q", got, tc.want)
			}
		})
	}
}

// Ten runs with a thousand nodes each would be 390,000 series, and the operator has 256 MiB.
func TestNoise_UnknownNodesTakeNoMemory(t *testing.T) {
	w := newWorld(t, DefaultSettings, node("node-a", true))
	before := heap(t)
	for i := range catalog.Runs {
		nodes := []analysis.NodeUsage{usage("node-a", began, 0.5)}
		for k := range 1000 {
			nodes = append(nodes, usage(fmt.Sprintf("made-up-%d-%d", i, k), began, 0.5))
		}
		run := runIn("team", fmt.Sprint("scan-", i), began)
		must(t, w.client.Create(t.Context(), run))
		w.says(run, &analysis.Analysis{Usage: analysis.Usage{Nodes: nodes}})
	}
	const most = 48 << 20
	if grown := heap(t) - before; grown > most {
		t.Errorf("the retained analyses take %d MiB, want at most %d", grown>>20, most>>20)
	}
	if got := w.with("assay_node_noise"); len(got) > 5*len(noise.Kinds)+2 {
		t.Errorf("%d series of the noise of one node", len(got))
	}
}

func TestCounters_UnknownLabelValuesAreOther(t *testing.T) {
	w, m := newWorld(t, DefaultSettings), newRun(t, "scan")
	m.result.Trials = analysis.Trials{Used: -1, Failed: 3}
	m.result.Gates = nil
	for i := range 1000 {
		m.result.Gates = append(m.result.Gates, analysis.GateResult{Severity: experiment.Severity(fmt.Sprint("severe-", i)),
			Outcome: experiment.Verdict(strings.Repeat("x", i))}, analysis.GateResult{Severity: experiment.Blocking, Outcome: experiment.VerdictGo})
	}
	before := m.world()
	before.Run, before.Ledger.Newest = m.run.DeepCopy(), &record.Wave{Purpose: record.Screen}
	before.Run.Status = assayv1alpha1.BenchmarkRunStatus{}
	after := m.run.Status.DeepCopy()
	after.Verdict = "Banana"
	w.metrics.Reported(before, after)
	want := []string{
		`assay_gates_judged_total{namespace="lab",outcome="Go",severity="Blocking"} 1000`,
		`assay_gates_judged_total{namespace="lab",outcome="None",severity="Other"} 1`,
		`assay_gates_judged_total{namespace="lab",outcome="Other",severity="Other"} 999`,
	}
	if diff := cmp.Diff(want, w.with("assay_gates_judged_total{")); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	if got := w.with("assay_runs_finished_total{", `verdict="Other"`, " 1"); len(got) != 1 {
		t.Errorf("runs: %q", w.with("assay_runs_finished_total{"))
	}
	for _, count := range []string{`"used"} 0`, `"failed"} 3`} {
		if got := w.with("assay_trials_finished_total{", count); len(got) != 1 {
			t.Errorf("trials: %q, without %s", w.with("assay_trials_finished_total{"), count)
		}
	}
}

// The first of two results of a gate may lack a field of the second, so that both bounds have equal labels.
func TestScrape_RepeatedGateIsShownOnce(t *testing.T) {
	w, run := newWorld(t, DefaultSettings), runIn("team", "scan", began)
	must(t, w.client.Create(t.Context(), run))
	gate := analysis.GateResult{Gate: "g", Candidate: "c", Op: experiment.RatioAtLeast, Bound: ptr.To(1.5), Severity: experiment.Blocking,
		Outcome: experiment.VerdictInconclusive}
	judged := gate
	judged.Outcome, judged.Estimate = experiment.VerdictGo, &analysis.Estimate{Value: 2}
	w.says(run, &analysis.Analysis{Gates: []analysis.GateResult{gate, judged}})
	if got := w.with("assay_gate_bound{"); len(got) != 1 {
		t.Errorf("bounds: %q", got)
	}
	if got := w.with("assay_gate_estimate{", " 2"); len(got) != 1 {
		t.Errorf("estimates: %q", got)
	}
}

func TestRank_OrderOfRuns(t *testing.T) {
	ended := func(run *assayv1alpha1.BenchmarkRun) *assayv1alpha1.BenchmarkRun {
		run.Status.CompletionTime = ptr.To(run.CreationTimestamp)
		return run
	}
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	cases := map[string]struct {
		runs []*assayv1alpha1.BenchmarkRun
		want []string
	}{
		"a newer run precedes an older one": {
			[]*assayv1alpha1.BenchmarkRun{runIn("a", "old", at(0)), runIn("a", "new", at(1))}, []string{"a/new", "a/old"}},
		"an active run precedes a finished one": {
			[]*assayv1alpha1.BenchmarkRun{ended(runIn("a", "over", at(9))), runIn("a", "old", at(0)), runIn("a", "new", at(1))},
			[]string{"a/new", "a/old", "a/over"}},
		"namespaces alternate, independent of their numbers of runs": {
			[]*assayv1alpha1.BenchmarkRun{runIn("a", "1", at(6)), runIn("a", "2", at(5)), runIn("a", "3", at(4)), runIn("b", "1", at(1)),
				runIn("b", "2", at(0)), ended(runIn("c", "1", at(9)))},
			[]string{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				rand.Shuffle(len(tc.runs), func(i, k int) { tc.runs[i], tc.runs[k] = tc.runs[k], tc.runs[i] })
				var got []string
				for _, run := range inTurns(tc.runs) {
					got = append(got, run.Namespace+"/"+run.Name)
				}
				if !slices.Equal(got, tc.want) {
					t.Fatalf("shown in the order %v, want %v", got, tc.want)
				}
			}
		})
	}
	t.Run("many runs of a namespace do not hide another one's", func(t *testing.T) {
		var objects []client.Object
		for i := range 3 * catalog.Runs {
			objects = append(objects, runIn("team", fmt.Sprint("held-", i), at(60+i)))
		}
		w := newWorld(t, DefaultSettings, append(objects, runIn("lab", "stuck", began))...)
		if got := w.with("assay_run_condition{", `namespace="lab"`, `run="stuck"`); len(got) != 1 {
			t.Errorf("its condition is %q", got)
		}
		if got := w.with("assay_metrics_left_out_runs 201"); len(got) != 1 {
			t.Errorf("left out: %q", w.with("assay_metrics_left_out_runs"))
		}
	})
}

// Memory is bounded between two updates of the shown runs, too, because a new operator reads all runs within seconds.
func TestFindings_OfRunsNotShownAreNotRetained(t *testing.T) {
	const runs = 4
	w := newWorld(t, Settings{Runs: runs, SeriesPerRun: 10}, runIn("lab", "shown", began))
	w.metrics.refresh(t.Context())
	for i := range 10 * runs {
		w.says(runIn("team", fmt.Sprint("scan-", i), began), &analysis.Analysis{})
	}
	w.says(runIn("lab", "shown", began), &analysis.Analysis{ValidBlocks: 7})
	if got := len(w.metrics.shown); got > 2*runs+1 {
		t.Errorf("the findings of %d runs are retained", got)
	}
	if got := w.with("assay_run_valid_blocks{", `namespace="lab"`, " 7"); len(got) != 1 {
		t.Errorf("the shown run has %q", got)
	}
}

// dice generates arbitrary analyses with few distinct names, so that many names repeat.
type dice struct{ *rand.Rand }

func (d dice) name() string {
	long := strings.Repeat("n", 1000)
	return []string{"", "a", "b", "node-a", "node-b", "Go", "\xff\xfe", "a\xff", "\x00\n\"{}\\", long, long + "x" + long, long + "y" + long,
		strings.Repeat("é", 400), strings.Repeat("\xff", 300)}[d.IntN(14)]
}

func (d dice) number() float64 {
	return []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 1e-300, 8}[d.IntN(9)]
}

func (d dice) pointer() *float64 {
	if d.IntN(3) == 0 {
		return nil
	}
	return ptr.To(d.number())
}

func (d dice) count() int { return []int{0, 1, -1, math.MaxInt, math.MinInt, 7}[d.IntN(6)] }

func (d dice) estimate() analysis.Estimate {
	return analysis.Estimate{Value: d.number(), Unit: d.name(), Low: d.pointer(), High: d.pointer(), Blocks: d.count()}
}

func (d dice) perhaps() *analysis.Estimate {
	if d.IntN(3) == 0 {
		return nil
	}
	return ptr.To(d.estimate())
}

// most is the maximum number of elements of a list.
func (d dice) analysis(most int) *analysis.Analysis {
	out := &analysis.Analysis{Wave: d.count(), Evidence: fmt.Sprint(d.Uint64()), Verdict: experiment.Verdict(d.name()), Best: d.name(),
		ValidBlocks: d.count(), RelativeHalfWidth: d.pointer(), Warnings: make([]string, d.IntN(most)),
		Environment: map[string]any{d.name(): d.name()},
		Trials:      analysis.Trials{Used: d.count(), Failed: d.count(), Invalid: d.count(), Missing: d.count(), Warmups: d.count()}}
	for range d.IntN(most) {
		statistic := experiment.Statistic(d.name())
		out.Gates = append(out.Gates, analysis.GateResult{Gate: d.name(), Candidate: d.name(), Point: d.name(), Metric: d.name(),
			Statistic: statistic, Op: experiment.Op(d.name()), Bound: d.pointer(), Severity: experiment.Severity(d.name()),
			Outcome: experiment.Verdict(d.name()), Estimate: d.perhaps()})
		out.Arms = append(out.Arms, analysis.ArmResult{Point: d.name(), Arm: d.name(), Metric: d.name(), Statistic: statistic,
			Estimate: d.estimate(), ShareOfCeiling: d.pointer(), Ceiling: d.name()})
		out.Ratios = append(out.Ratios, analysis.RatioResult{Point: d.name(), Candidate: d.name(), Metric: d.name(), Statistic: statistic,
			Estimate: d.estimate()})
		out.Phases = append(out.Phases, analysis.PhaseResult{Point: d.name(), Arm: d.name(), Phase: d.name(), Estimate: d.estimate()})
		out.Predicted = append(out.Predicted, analysis.PredictionResult{Metric: "latency", Point: d.name(), Candidate: d.name(),
			Predicted: d.number()})
		out.Search = append(out.Search, analysis.SearchResult{Arm: d.name(), Axis: d.name(), Metric: d.name(), Statistic: statistic,
			FeasibleMax: "8", InfeasibleMin: d.name(), FirstBreach: "1e400", Value: d.perhaps()})
	}
	if d.IntN(4) == 0 {
		return out
	}
	out.Usage = analysis.Usage{TrialSeconds: d.number(), BlockSeconds: d.number(), OverheadSeconds: d.pointer(),
		Excluded: map[analysis.Reason]int{}, Noisy: map[noise.Kind]int{noise.Kind(d.name()): d.count(), noise.Steal: d.count()}}
	for range d.IntN(most) {
		out.Usage.Excluded[analysis.Reason(d.name())] = d.count()
		node := usage(d.name(), time.Unix(d.Int64N(4e9)-1e9, 0), d.number())
		node.Noise = append(node.Noise, analysis.NodeNoise{Kind: noise.Kind(d.name()), Newest: d.pointer()}, node.Noise[0])
		if d.IntN(2) == 0 {
			node.Clock = &analysis.NodeClock{AheadSeconds: d.number(), UncertaintySeconds: d.number()}
		}
		out.Usage.Nodes = append(out.Usage.Nodes, node)
	}
	return out
}

// Arbitrary analyses of several runs, including those that analysis.Parse rejects, must not fail a scrape or exceed the limits of series
// and bytes.
func TestScrape_ArbitraryAnalysesStayWithinLimits(t *testing.T) {
	const (
		runs, perRun = 5, 300
		ofNodes      = 2 * (6 + 5*7)
		// ofRun is the number of series that every run has, with its reasons.
		ofRun      = 40 + mostReasons
		mostSeries = runs*(perRun+ofRun) + ofNodes + 100
		mostBytes  = mostSeries * 14 * mostLabel
	)
	exp := &experiment.Experiment{}
	exp.Plan.Metrics = []experiment.Metric{{Name: "latency", Statistic: experiment.StatisticMedian}}
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		w := newWorld(t, Settings{Runs: runs, SeriesPerRun: perRun}, node("node-a", true), node("node-b", false))
		for i := range runs {
			run := runIn([]string{"team", "lab"}[i%2], fmt.Sprint("scan-", i), began)
			run.Status.Verdict, run.Status.Best = "Banana", strings.Repeat("b", 5000)
			must(t, w.client.Create(t.Context(), run))
			result := d.analysis([]int{2, 10, 200}[d.IntN(3)])
			w.metrics.Observed((&measured{run, exp, result}).world())
			after := run.Status.DeepCopy()
			after.CompletionTime, after.Verdict = ptr.To(metav1.NewTime(began)), assayv1alpha1.Verdict(d.name())
			w.metrics.Reported((&measured{run, exp, result}).world(), after)
		}
		registry := prometheus.NewPedanticRegistry()
		must(t, registry.Register(w.metrics))
		families, err := registry.Gather()
		if err != nil {
			t.Fatalf("seed %d: %.500v", seed, err)
		}
		series, written := 0, &counting{}
		for _, family := range families {
			for _, metric := range family.Metric {
				for _, label := range metric.Label {
					if len(label.GetValue()) > mostLabel {
						t.Fatalf("seed %d: a label %s of %s has %d bytes", seed, label.GetName(), family.GetName(), len(label.GetValue()))
					}
				}
			}
			series += len(family.Metric)
			_, err := expfmt.MetricFamilyToText(written, family)
			must(t, err)
		}
		if series > mostSeries || written.bytes > mostBytes {
			t.Fatalf("seed %d: %d series in %d bytes, want at most %d in %d", seed, series, written.bytes, mostSeries, mostBytes)
		}
	}
}

// counting counts the written bytes.
type counting struct{ bytes int }

func (c *counting) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return len(p), nil
}

// Names of an analysis are truncated to their displayed length.
func TestFindings_LongNamesAreTruncated(t *testing.T) {
	w := newWorld(t, DefaultSettings)
	for i := range 20 {
		run := runIn("team", fmt.Sprint("scan-", i), began)
		raw, err := json.Marshal(map[string]any{"evidence": strings.Repeat("e", 200<<10), "arms": []any{
			map[string]any{"point": strings.Repeat("p", 200<<10), "estimate": map[string]any{"value": 1}}}})
		must(t, err)
		result, err := analysis.Parse(raw)
		must(t, err)
		w.says(run, result)
	}
	for uid, shown := range w.metrics.shown {
		if len(shown.evidence) > mostLabel {
			t.Errorf("%s: %d bytes are retained for the identity of the evidence", uid, len(shown.evidence))
		}
	}
}

func TestFind_OnlyNumericAxisValuesAreShown(t *testing.T) {
	huge := strings.Repeat("9", 400)
	for text, want := range map[string]*float64{
		"8": ptr.To(8.0), "0.5": ptr.To(0.5), "1e-3": ptr.To(0.001), "64Ki": ptr.To(65536.0), "loop": nil, "": nil, "NaN": nil, "+Inf": nil,
		huge: nil, huge + "k": nil, "1e400": nil, huge + "e99999999": nil, "-" + huge + "e2147483647": nil,
	} {
		used := cputime.Start()
		exp := &experiment.Experiment{Points: []record.Point{{Key: "a", Parameters: map[string]string{"size": text}}}}
		exp.Plan.Sweep = &experiment.Sweep{Axes: []experiment.Axis{{Name: "size"}}}
		found := find(waiting("run", began), exp, &analysis.Analysis{Search: []analysis.SearchResult{{Arm: "loop", FeasibleMax: text}}}, 10)
		shown := map[string]float64{}
		for _, one := range found.results {
			shown[one.desc.String()] = one.value
		}
		wanted := map[string]float64{}
		if want != nil {
			wanted[description("assay_point_axis_value").String()] = *want
			wanted[description("assay_search_load").String()] = *want
		}
		if diff := cmp.Diff(wanted, shown); diff != "" {
			t.Errorf("%.40q (-want +got):\n%s", text, diff)
		}
		if took := used(); took > 10*time.Second {
			t.Errorf("%.40q takes %s", text, took)
		}
	}
}
