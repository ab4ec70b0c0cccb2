package explain

import (
	"math"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

func ratioOf(value, low, high float64) *analysis.Estimate {
	return &analysis.Estimate{Value: value, Ratio: true, Low: &low, High: &high, Blocks: 10}
}

func TestControlWarnings_ControlThatMovedOrCannotBeComparedIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		control analysis.ControlResult
		named   bool
	}{
		"it did not move":          {analysis.ControlResult{Estimate: ratioOf(1, 0.99, 1.01)}, false},
		"it moved":                 {analysis.ControlResult{Estimate: ratioOf(1.1, 1.05, 1.15), Moved: true}, true},
		"too little data":          {analysis.ControlResult{Estimate: ratioOf(1, 0.99, 1.01), Missing: true}, true},
		"no estimate":              {analysis.ControlResult{}, true},
		"an estimate, no interval": {analysis.ControlResult{Estimate: &analysis.Estimate{Value: 1, Ratio: true}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.control.Message = "the control"
			if got := controlWarnings([]analysis.ControlResult{tc.control}, nil); (len(got) == 1) != tc.named {
				t.Errorf("got %q, named %v is wanted", got, tc.named)
			}
		})
	}
}

type (
	gateResult    = analysis.GateResult
	controlResult = analysis.ControlResult
)

func TestControlWarnings_EffectNoLargerThanNullArmIsNamed(t *testing.T) {
	gate := analysis.GateResult{
		Candidate: "new", Metric: "latency", Statistic: "mean", Point: "size=1", Outcome: experiment.VerdictGo,
		Estimate: ratioOf(0.98, 0.97, 0.99),
	}
	control := analysis.ControlResult{
		Arm: "null", Metric: "latency", Statistic: "mean", Point: "size=1", Estimate: ratioOf(1.03, 0.99, 1.07),
	}
	for name, tc := range map[string]struct {
		edit  func(*gateResult, *controlResult)
		named bool
	}{
		"the null arm differs more":     {func(*gateResult, *controlResult) {}, true},
		"the null arm differs as much":  {func(_ *gateResult, c *controlResult) { c.Estimate = ratioOf(0.98, 0.9, 1.1) }, true},
		"the null arm differs less":     {func(_ *gateResult, c *controlResult) { c.Estimate = ratioOf(1.01, 0.9, 1.1) }, false},
		"a NoGo counts like a Go":       {func(g *gateResult, _ *controlResult) { g.Outcome = experiment.VerdictNoGo }, true},
		"a slower candidate too":        {func(g *gateResult, _ *controlResult) { g.Estimate = ratioOf(1.02, 1.01, 1.03) }, true},
		"the gate is not decided":       {func(g *gateResult, _ *controlResult) { g.Outcome = experiment.VerdictInconclusive }, false},
		"the gate may have no effect":   {func(g *gateResult, _ *controlResult) { g.Estimate = ratioOf(0.99, 0.97, 1.01) }, false},
		"the gate's interval ends at 1": {func(g *gateResult, _ *controlResult) { g.Estimate = ratioOf(0.99, 0.98, 1) }, false},
		"its interval begins at 1":      {func(g *gateResult, _ *controlResult) { g.Estimate = ratioOf(1.01, 1, 1.02) }, false},
		"the gate has no interval":      {func(g *gateResult, _ *controlResult) { g.Estimate.Low, g.Estimate.High = nil, nil }, false},
		"the gate has no estimate":      {func(g *gateResult, _ *controlResult) { g.Estimate = nil }, false},
		"the gate is on an absolute":    {func(g *gateResult, _ *controlResult) { g.Estimate.Ratio = false }, false},
		"the gate's ratio is 0":         {func(g *gateResult, _ *controlResult) { g.Estimate = ratioOf(0, -1, 0.5) }, false},
		"another point":                 {func(_ *gateResult, c *controlResult) { c.Point = "size=2" }, false},
		"another metric":                {func(_ *gateResult, c *controlResult) { c.Metric = "memory" }, false},
		"another statistic":             {func(_ *gateResult, c *controlResult) { c.Statistic = "p99" }, false},
		"a control phase":               {func(_ *gateResult, c *controlResult) { c.Phase = "parse" }, false},
		"a null arm without estimate":   {func(_ *gateResult, c *controlResult) { c.Estimate = nil }, false},
		"a difference of the null arm":  {func(_ *gateResult, c *controlResult) { c.Estimate.Ratio = false }, false},
		"a ratio of 0 of the null arm":  {func(_ *gateResult, c *controlResult) { c.Estimate = ratioOf(0, -1, 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, c := gate, control
			g.Estimate, c.Estimate = ptr.To(*gate.Estimate), ptr.To(*control.Estimate)
			tc.edit(&g, &c)
			got := strings.Join(controlWarnings([]analysis.ControlResult{c}, []analysis.GateResult{g}), "\n")
			if strings.Contains(got, "is no larger than that without a change") != tc.named {
				t.Errorf("got %q, named %v is wanted", got, tc.named)
			}
		})
	}
}

// nodeOf has the interval at 99.5 % of n blocks whose logarithms have a standard deviation of 1 %.
func nodeOf(name string, value float64, n int) analysis.NodeResult {
	out := analysis.NodeResult{Node: name, Estimate: analysis.Estimate{Value: value, Ratio: true, Blocks: n}}
	if n > 1 {
		half := stats.StudentQuantile(0.9975, float64(n-1)) * 0.01 / math.Sqrt(float64(n))
		out.Estimate.Low, out.Estimate.High = ptr.To(value*math.Exp(-half)), ptr.To(value*math.Exp(half))
	}
	return out
}

func TestNodeWarnings_TextStatesTheBasisOfTheInterval(t *testing.T) {
	a, b, c := nodeOf("a", 1, 10), nodeOf("b", 1.5, 10), nodeOf("c", 1.2, 10)
	single, near := nodeOf("d", 1.5, 1), nodeOf("d", 1.005, 1)
	unknown := nodeOf("d", 0, 1)
	for name, tc := range map[string]struct {
		nodes  []analysis.NodeResult
		differ bool
		want   string
	}{
		"nodes agree":                          {[]analysis.NodeResult{a, c}, false, ""},
		"two nodes differ":                     {[]analysis.NodeResult{a, b}, true, "two nodes cannot show how much nodes vary"},
		"three nodes differ":                   {[]analysis.NodeResult{a, b, c}, true, "the interval rests on the nodes"},
		"a single block apart":                 {[]analysis.NodeResult{a, single}, false, "one block of a second node decides nothing"},
		"the same, listed first":               {[]analysis.NodeResult{single, a}, false, "one block of a second node decides nothing"},
		"a single block apart that counts too": {[]analysis.NodeResult{a, single}, true, "two nodes cannot show how much nodes vary"},
		"a single block nearby":                {[]analysis.NodeResult{a, near}, false, ""},
		"a single block without a ratio":       {[]analysis.NodeResult{a, unknown}, false, ""},
		"a block on each of two nodes":         {[]analysis.NodeResult{single, near}, false, ""},
		"a single block and two more nodes":    {[]analysis.NodeResult{a, c, single}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := nodeWarnings([]analysis.RatioResult{{
				Candidate: "new", Metric: "latency", Statistic: "mean", PerNode: tc.nodes, NodesDiffer: tc.differ,
			}}, 0.995)
			if tc.want == "" && len(got) != 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The prediction interval of a further block is wider than that of the mean by sqrt(n+1), and the level is shared by all ratios.
func TestAloneApart_LimitIsThePredictionInterval(t *testing.T) {
	many := nodeOf("a", 1, 8)
	limit := stats.StudentQuantile(1-aloneLevel/2, 7) * 0.01 / math.Sqrt(8) * math.Sqrt(9)
	for _, sign := range []float64{-1, 1} {
		for factor, want := range map[float64]bool{0.99: false, 1.01: true} {
			one := nodeOf("b", math.Exp(sign*factor*limit), 1)
			if got := aloneApart([]analysis.NodeResult{many, one}, 0.995, aloneLevel); got != want {
				t.Errorf("%v of the limit in direction %v: got %v", factor, sign, got)
			}
			if aloneApart([]analysis.NodeResult{many, one}, 0.995, aloneLevel/10) {
				t.Errorf("%v of the limit in direction %v is named among ten ratios", factor, sign)
			}
		}
	}
}
