package judge_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

// report is the way in which the results of an arm have the metric time.
type report struct{ metric, unit, shape, benchmark, field, toolUnit string }

// write rewrites the metric time of a result in the form of the report. Its statistic is the same in each form.
func (r report) write(t *testing.T, a *record.Attempt) {
	value := *a.Result.Metrics["time"].Value
	metric := &record.Metric{Unit: r.unit}
	switch r.shape {
	case "one value":
		metric.Value = &value
	case "samples":
		metric.Samples = []float64{value, value}
	case "histogram":
		h := hdrhistogram.New(1, 1e12, 3)
		if err := h.RecordValue(int64(value * 1e9)); err != nil {
			t.Fatal(err)
		}
		data, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		metric.Histogram = &record.Histogram{Data: string(data), Count: 1, Scale: 1e-9}
	}
	a.Result.Metrics = map[string]*record.Metric{r.metric: metric}
	a.Result.Effective = map[string]any{"time.benchmark": r.benchmark, "time.field": r.field, "time.unit": r.toolUnit}
}

// Pairs of reports that differ in one property are never compared, the property is named with both values, and the difference of the
// figures does not matter. Equal pairs, and benchmarks that from.benchmark maps, are judged as ever.
func TestReports_ArmsThatMeasuredDifferentThingsAreInvalid(t *testing.T) {
	t.Parallel()
	choose := func(random *rand.Rand, not string, among ...string) string {
		for {
			if one := among[random.IntN(len(among))]; one != not {
				return one
			}
		}
	}
	// change returns another report and the words that the verdict must say. Unit and metric are those of the template in one arm.
	properties := map[string]struct {
		tool   bool
		change func(*rand.Rand, report) (report, []string)
	}{
		"metric": {false, func(random *rand.Rand, r report) (report, []string) {
			r.metric = choose(random, "", "timeMs", "latency", "times")
			return r, []string{`"time"`, fmt.Sprintf("%q", r.metric)}
		}},
		"unit": {false, func(random *rand.Rand, r report) (report, []string) {
			r.unit = choose(random, "", "ms", "us", "1", "s/op")
			return r, []string{`"s"`, fmt.Sprintf("%q", r.unit)}
		}},
		"shape": {false, func(random *rand.Rand, r report) (report, []string) {
			before := r.shape
			r.shape = choose(random, before, "one value", "samples", "histogram")
			return r, []string{fmt.Sprintf("%q", before), fmt.Sprintf("%q", r.shape)}
		}},
		"benchmark": {true, func(random *rand.Rand, r report) (report, []string) {
			before := r.benchmark
			r.benchmark = choose(random, before, "BenchmarkA", "BenchmarkB-2", "BenchmarkA-2", "BenchmarkA/8-2")
			return r, []string{fmt.Sprintf("%q", before), fmt.Sprintf("%q", r.benchmark), "from.benchmark"}
		}},
		"field": {true, func(random *rand.Rand, r report) (report, []string) {
			before := r.field
			r.field = choose(random, before, "sample", "median", "slope")
			return r, []string{fmt.Sprintf("%q", before), fmt.Sprintf("%q", r.field)}
		}},
		"unit of the tool": {true, func(random *rand.Rand, r report) (report, []string) {
			before := r.toolUnit
			r.toolUnit = choose(random, before, "rows/s", "krows/s", "")
			return r, []string{fmt.Sprintf("%q", before), fmt.Sprintf("%q", r.toolUnit)}
		}},
	}
	gates := []assayv1alpha1.Gate{
		{Name: "faster", Metric: "time", Op: assayv1alpha1.RatioAtMost, Bound: "1"},
		{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "3600s"},
	}
	rounds := uint64(4)
	if testing.Short() {
		rounds = 1
	}
	for property, of := range properties {
		for round := range rounds {
			random := rand.New(rand.NewPCG(round, 54))
			base := report{"time", "s", choose(random, "", "one value", "samples", "histogram"),
				choose(random, "", "BenchmarkA", "BenchmarkA-2"), choose(random, "", "sample", "median"), choose(random, "", "rows/s", "")}
			changed, words := of.change(random, base)
			gate, factor := gates[random.IntN(2)], []float64{0.5, 0.94, 1, 2}[random.IntN(4)]
			analyze := func(old, new report, tool, mapped bool) *analysis.Analysis {
				l := analyzed.SimulatePair(t, factor, func(spec *assayv1alpha1.BenchmarkRunSpec) {
					spec.Gates = []assayv1alpha1.Gate{gate}
					spec.Gates[0].Statistic = assayv1alpha1.StatisticMean
				})
				if tool {
					from := record.MetricSource{Name: "time", Unit: "s"}
					if mapped {
						from.Benchmark = "Benchmark$(version)"
					}
					l.Exp.Plan.Workload.Output = record.Output{Format: "GoBench", Metrics: []record.MetricSource{from}}
				}
				for i := range l.Attempts {
					r := old
					if l.Attempts[i].Arm == "new" {
						r = new
					}
					r.write(t, &l.Attempts[i])
				}
				got := l.Analyze()
				fixture.CheckInvariants(t, got)
				return got
			}
			t.Run(fmt.Sprintf("%s, round %d", property, round), func(t *testing.T) {
				equal := analyze(base, base, of.tool, false).Candidates[0]
				if equal.Verdict == experiment.VerdictInvalid {
					t.Errorf("equal reports: %s: %s", equal.Verdict, equal.Reason)
				}
				for _, pair := range [][2]report{{base, changed}, {changed, base}} {
					got := analyze(pair[0], pair[1], of.tool, false)
					found := got.Candidates[0]
					for _, word := range words {
						if found.Verdict != experiment.VerdictInvalid || !strings.Contains(found.Reason, word) {
							t.Errorf("%+v against %+v: %s: %s\nwant Invalid, with %s", pair[0], pair[1], found.Verdict, found.Reason, word)
						}
					}
					doubted := slices.ContainsFunc(got.Doubts, func(doubt analysis.Doubt) bool {
						return doubt.Reason == analysis.DoubtOtherThing && doubt.Metric == "time" && strings.Contains(doubt.Detail, words[0])
					})
					if !doubted {
						t.Errorf("%+v against %+v: doubts %+v\nwant %s", pair[0], pair[1], got.Doubts, analysis.DoubtOtherThing)
					}
					if len(got.Ratios) > 0 {
						t.Errorf("%+v against %+v: ratios of different things: %+v", pair[0], pair[1], got.Ratios)
					}
				}
				if property == "benchmark" {
					if mapped := analyze(base, changed, true, true).Candidates[0]; mapped.Verdict != equal.Verdict {
						t.Errorf("mapped by from.benchmark: %s: %s\nwant %s", mapped.Verdict, mapped.Reason, equal.Verdict)
					}
				}
				if of.tool {
					if own := analyze(base, changed, false, false).Candidates[0]; own.Verdict != equal.Verdict {
						t.Errorf("effective of a program that reports itself: %s: %s\nwant %s", own.Verdict, own.Reason, equal.Verdict)
					}
				}
			})
		}
	}
}

// Tools append the number of CPUs to a name, which may differ between the nodes of blocks and not inside of a block.
func TestReports_NamesAreComparedWithinBlocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name func(a *record.Attempt, block int) string
		want experiment.Verdict
	}{
		"one name in each block": {func(_ *record.Attempt, block int) string { return fmt.Sprintf("BenchmarkA-%d", 2+block%2) }, experiment.VerdictGo},
		"another name in one trial of a candidate": {func(a *record.Attempt, block int) string {
			if block == 7 && a.Arm == "new" && a.Slot > 1 {
				return "BenchmarkB-2"
			}
			return "BenchmarkA-2"
		}, experiment.VerdictInvalid},
		"another name in one trial of the baseline": {func(a *record.Attempt, block int) string {
			if block == 7 && a.Arm == "old" && a.Slot > 1 {
				return "BenchmarkB-2"
			}
			return "BenchmarkA-2"
		}, experiment.VerdictInvalid},
		"no names recorded": {func(*record.Attempt, int) string { return "" }, experiment.VerdictGo},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.5, nil)
			l.Exp.Plan.Workload.Output = record.Output{Format: "GoBench", Metrics: []record.MetricSource{{Name: "time", Unit: "s"}}}
			for i := range l.Attempts {
				a := &l.Attempts[i]
				a.Result.Effective = map[string]any{}
				if name := c.name(a, fixture.BlockNumber(t, a)); name != "" {
					a.Result.Effective["time.benchmark"] = name
				}
			}
			if got := l.Analyze().Candidates[0]; got.Verdict != c.want {
				t.Errorf("%s: %s\nwant %s", got.Verdict, got.Reason, c.want)
			}
		})
	}
}

// An optional metric may be missing in an arm, and metrics that the template does not have are not compared.
func TestReports_OptionalMetricsAndOtherMetricsDoNotDiffer(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulatePair(t, 0.5, nil)
	l.Exp.Plan.Metrics = append(l.Exp.Plan.Metrics, experiment.Metric{Name: "rate", Unit: "1/s", Direction: experiment.HigherIsBetter,
		Statistic: experiment.StatisticValue, Optional: true})
	for i := range l.Attempts {
		if a := &l.Attempts[i]; a.Arm == "old" {
			a.Result.Metrics["rate"] = &record.Metric{Unit: "1/s", Value: ptr.To(5.0)}
		} else {
			a.Result.Metrics["hits"] = &record.Metric{Unit: "1", Value: ptr.To(7.0)}
		}
	}
	if got := l.Analyze().Candidates[0]; got.Verdict != experiment.VerdictGo {
		t.Errorf("%s: %s\nwant Go", got.Verdict, got.Reason)
	}
}
