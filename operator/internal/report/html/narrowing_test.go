package html

import (
	"math"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
)

func TestRunning_IntervalOfFirstBlocks(t *testing.T) {
	var ratios []float64
	for i := range 20 {
		ratios = append(ratios, math.Exp(0.1+0.02*float64(1-2*(i%2))))
	}
	found := running(ratios, 0, 0.95, logarithmic)
	if len(found) != 18 || found[0].blocks != 3 || found[17].blocks != 20 {
		t.Fatalf("%d intervals, the first of %d blocks", len(found), found[0].blocks)
	}
	// Of 20 logarithms 0.1 ± 0.02 the deviation is 0.02 √(20/19), and Student's quantile with 19 degrees of freedom 2.0930.
	last, half := found[17], 2.0930*0.02/math.Sqrt(19)
	differs := func(ratio, logarithm float64) bool { return math.Abs(math.Log(ratio)-logarithm) > 1e-5 }
	if differs(last.value, 0.1) || differs(last.high, 0.1+half) || differs(last.low, 0.1-half) {
		t.Errorf("the last interval is %+v, want ±%g around 0.1", last, half)
	}
	for i := range found[1:] {
		if before, after := found[i], found[i+1]; after.high/after.low >= before.high/before.low {
			t.Errorf("the interval of %d blocks is wider than that of %d", after.blocks, before.blocks)
		}
	}
	if got := running(ratios[:2], 0, 0.95, logarithmic); len(got) != 0 {
		t.Errorf("two blocks have the intervals %+v", got)
	}
	if got := running(ratios[:4], 3, 0.95, logarithmic); len(got) != 0 {
		t.Errorf("four blocks with three fitted terms have the intervals %+v", got)
	}
	many := running(make1000(), 0, 0.95, logarithmic)
	if len(many) > mostIntervals+1 || many[len(many)-1].blocks != 1000 {
		t.Errorf("%d intervals, the last of %d blocks", len(many), many[len(many)-1].blocks)
	}
}

func make1000() []float64 {
	out := make([]float64, 1000)
	for i := range out {
		out[i] = 1 + float64(i%7)/100
	}
	return out
}

// A page whose verdict rests on a ratio of blocks shows how its interval narrowed. A percentile of all trials has no ratio in a block.
func TestPage_IntervalNarrowsFromBlockToBlock(t *testing.T) {
	of := func(metric string, statistic assayv1alpha1.Statistic, op assayv1alpha1.GateOperator) story {
		return simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: metric, Statistic: statistic, Op: op, Bound: "1.5",
				At: assayv1alpha1.ParameterValues{"batchSize": "8"}}}
		}, nil)
	}
	for name, c := range map[string]struct {
		of    story
		drawn bool
	}{
		"a ratio of blocks": {of("throughput", "", assayv1alpha1.RatioAtLeast), true},
		"a level":           {of("throughput", "", assayv1alpha1.AtLeast), true},
		"a percentile":      {of("latency", "p95", assayv1alpha1.RatioAtMost), false},
	} {
		page := c.of.page(t)
		if drawn := strings.Contains(page, `<div class="narrowing">`) && strings.Contains(page, "blocks so far"); drawn != c.drawn {
			t.Errorf("%s: drawn %v, want %v", name, drawn, c.drawn)
		}
		if says := strings.Contains(page, "there is no interval after each block"); says == c.drawn {
			t.Errorf("%s: drawn %v, and the page gives a reason: %v", name, c.drawn, says)
		}
	}
}

func TestWithinSight_WideFirstIntervalsAreLeftOut(t *testing.T) {
	of := func(widths ...float64) (out []interval) {
		for i, width := range widths {
			out = append(out, interval{i + 3, 1, 1, math.Exp(width)})
		}
		return out
	}
	for name, c := range map[string]struct {
		all  []interval
		want int
	}{
		"none": {nil, 0}, "one": {of(1), 1}, "all are in sight": {of(0.5, 0.3, 0.1), 3}, "the first two are not": {of(9, 2, 0.3, 0.1), 2},
		"an exact last one": {of(0.1, 0), 1},
	} {
		if got := withinSight(c.all, logarithmic); len(got) != c.want {
			t.Errorf("%s: %d intervals, want %d", name, len(got), c.want)
		}
	}
}

// A bound of 1 is the line of no change: two labels would lie on each other.
func TestRulesOf_NoTwoLabelsAtOneLevel(t *testing.T) {
	if got := rulesOf(1); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if got := rulesOf(1.05); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// The last interval of a level is that of the analysis, unless that widened it.
func TestNarrowing_LastIntervalOfLevelIsThatOfAnalysis(t *testing.T) {
	s := gated(t, assayv1alpha1.Gate{Name: "g", Metric: "throughput", Op: assayv1alpha1.AtLeast, Bound: "10"}, nil)
	gate := &s.result.Gates[slices.IndexFunc(s.result.Gates, func(g analysis.GateResult) bool { return g.Gate == "g" })]
	b := newBuilder(s.exp, s.result, s.evidence)
	values, terms, on := b.byBlock(gate)
	found := running(values, terms, gate.Confidence, on)
	last := found[len(found)-1]
	near := func(a, b float64) bool { return math.Abs(a/b-1) < 1e-9 }
	if e := gate.Estimate; !near(last.value, e.Value) || !near(last.low, *e.Low) || !near(last.high, *e.High) {
		t.Errorf("the last of %d intervals is %+v, the analysis has %g [%g, %g]", len(found), last, e.Value, *e.Low, *e.High)
	}
}
