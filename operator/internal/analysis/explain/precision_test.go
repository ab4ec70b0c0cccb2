package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/test/cputime"
)

func TestPrecision_BlocksOfAGate(t *testing.T) {
	// The interval of n blocks whose differences have a standard deviation of 2 %.
	of := func(value, bound float64, n int) analysis.GateResult {
		half := stats.StudentQuantile(0.9975, float64(n-1)) * 0.02 / math.Sqrt(float64(n))
		return analysis.GateResult{
			Gate: "faster", Candidate: "new", Op: experiment.RatioAtMost, Severity: experiment.Blocking, Bound: &bound, Confidence: 0.995,
			Estimate: &analysis.Estimate{
				Value: value, Ratio: true, Low: ptr.To(value * math.Exp(-half)), High: ptr.To(value * math.Exp(half)), Blocks: n,
			},
		}
	}
	cases := map[string]struct {
		stop   float64
		gate   analysis.GateResult
		needed *int
	}{
		"a half width of 1 %":                    {0.01, of(0.98, 1, 10), ptr.To(36)},
		"the same from more blocks":              {0.01, of(0.98, 1, 30), ptr.To(36)},
		"it is reached already":                  {0.05, of(0.98, 1, 10), ptr.To(10)},
		"a decision 2 % away":                    {0, of(0.98, 1, 5), ptr.To(12)},
		"a decision 1 % away takes more":         {0, of(0.99, 1, 5), ptr.To(36)},
		"right at the bound no number would do":  {0, of(1, 1, 5), nil},
		"without an interval there is no answer": {0.01, analysis.GateResult{Estimate: &analysis.Estimate{Value: 1, Blocks: 2}, Bound: ptr.To(1.0)}, nil},
		"nor without an estimate":                {0.01, analysis.GateResult{}, nil},
	}
	show := func(n *int) string {
		if n == nil {
			return "none"
		}
		return fmt.Sprint(*n)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp := &experiment.Experiment{}
			if tc.stop > 0 {
				exp.Plan.Design.Stop = &experiment.Stop{RelativeHalfWidth: tc.stop}
			}
			got := Precisions(exp, []analysis.GateResult{tc.gate})[0]
			if show(got.Needed) != show(tc.needed) {
				t.Errorf("%s blocks, want %s", show(got.Needed), show(tc.needed))
			}
		})
	}
}

func TestReach_DistanceFollowsTheScaleOfTheInterval(t *testing.T) {
	of := func(value, low, high, bound float64) *analysis.GateResult {
		return &analysis.GateResult{
			Op: experiment.AtMost, Bound: &bound, Confidence: 0.995,
			Estimate: &analysis.Estimate{Value: value, Low: &low, High: &high, Blocks: stats.MinBlocks},
		}
	}
	for name, tc := range map[string]struct {
		gate           *analysis.GateResult
		wanted         *float64
		half, distance float64
	}{
		"all positive, to the bound":        {of(2, 1, 4, 8), nil, math.Log(4) / 2, math.Log(4)},
		"a low end of 0, to the bound":      {of(2, 0, 4, 8), nil, 2, 6},
		"a bound of 0":                      {of(2, 1, 4, 0), nil, 1.5, 2},
		"all positive, to a half width":     {of(2, 1, 4, 8), ptr.To(0.1), math.Log(4) / 2, math.Asinh(0.1)},
		"a low end of 0, to a half width":   {of(2, 0, 4, 8), ptr.To(0.1), 2, 0.2},
		"a negative value, to a half width": {of(-2, -4, 0, 8), ptr.To(0.1), 2, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			half, distance, known := reach(tc.gate, tc.wanted)
			if !known || math.Abs(half-tc.half) > 1e-12 || math.Abs(distance-tc.distance) > 1e-12 {
				t.Errorf("got %v, %v, %v, want %v, %v", half, distance, known, tc.half, tc.distance)
			}
		})
	}
	for name, edit := range map[string]func(*analysis.GateResult){
		"no estimate":    func(g *analysis.GateResult) { g.Estimate = nil },
		"no lower end":   func(g *analysis.GateResult) { g.Estimate.Low = nil },
		"no upper end":   func(g *analysis.GateResult) { g.Estimate.High = nil },
		"a value of 0":   func(g *analysis.GateResult) { g.Estimate.Value = 0 },
		"no bound":       func(g *analysis.GateResult) { g.Bound = nil },
		"too few blocks": func(g *analysis.GateResult) { g.Estimate.Blocks = stats.MinBlocks - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			gate := of(2, 1, 4, 8)
			edit(gate)
			if _, _, known := reach(gate, nil); known {
				t.Error("the blocks it needs count as known")
			}
			exp := &experiment.Experiment{}
			gate.Severity = experiment.Blocking
			if got := Expected(exp, []analysis.GateResult{*gate}); got != nil {
				t.Errorf("got %d blocks, want none", *got)
			}
			gate.Severity = experiment.Advisory
			decided := of(2, 1.9, 2.1, 8)
			decided.Severity = experiment.Blocking
			if got := Expected(exp, []analysis.GateResult{*gate, *decided}); got == nil || *got != stats.MinBlocks {
				t.Error("an advisory gate whose blocks are unknown hides those of a blocking one")
			}
		})
	}
}

func TestPrecisions_HalfWidthIsRelativeToTheValue(t *testing.T) {
	gates := []analysis.GateResult{
		{Op: experiment.ParityEqual},
		{
			Gate: "small", Op: experiment.AtMost, Bound: ptr.To(8.0), Confidence: 0.995,
			Estimate: &analysis.Estimate{Value: -2, Low: ptr.To(-2.5), High: ptr.To(-1.5), Blocks: 10},
		},
	}
	got := Precisions(&experiment.Experiment{}, gates)
	if len(got) != 1 || got[0].Gate != "small" || got[0].HalfWidth == nil || math.Abs(*got[0].HalfWidth-0.25) > 1e-12 || got[0].Blocks != 10 {
		t.Errorf("got %+v, want a half width of 0.25 of 10 blocks for the gate on a time alone", got)
	}
}

func TestExpectedText_StatesGoalBlocksAndTime(t *testing.T) {
	half := stats.StudentQuantile(0.9975, 4) * 0.02 / math.Sqrt(5)
	found := &analysis.Analysis{ValidBlocks: 5, Gates: []analysis.GateResult{{
		Op: experiment.RatioAtMost, Severity: experiment.Blocking, Bound: ptr.To(1.0), Confidence: 0.995,
		Estimate: &analysis.Estimate{
			Value: 0.98, Ratio: true, Low: ptr.To(0.98 * math.Exp(-half)), High: ptr.To(0.98 * math.Exp(half)), Blocks: 5,
		},
	}}}
	exp := &experiment.Experiment{}
	const blocks = "a decision at the effect found: about 12 blocks in all, 7 more"
	if got := ExpectedText(exp, found); got != blocks {
		t.Errorf("got %q, want %q", got, blocks)
	}
	found.Usage.Blocks, found.Usage.BlockSeconds = 5, 300
	if got, want := ExpectedText(exp, found), blocks+", 7.0 minutes on one node"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	exp.Plan.Design.Stop = &experiment.Stop{RelativeHalfWidth: 0.01}
	if got, want := ExpectedText(exp, found), "half widths of 1%: about 36 blocks in all, 31 more, 31.0 minutes on one node"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	found.ValidBlocks = 50
	if got, want := ExpectedText(exp, found), "half widths of 1%: about 36 blocks in all, 0 more, 0.0 minutes on one node"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	found.Gates[0].Estimate = nil
	if got := ExpectedText(exp, found); got != "" {
		t.Errorf("got %q without an estimate, want nothing", got)
	}
}

// The total is that of the gate that needs most, for any number of gates.
func TestExpected_BlocksOfManyGates(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	exp := &experiment.Experiment{}
	draw := func(kinds int) (gates []analysis.GateResult) {
		for range 1 + random.IntN(40) {
			value, half := math.Exp(0.1*random.NormFloat64()), 0.05*random.Float64()
			gates = append(gates, analysis.GateResult{
				Op: experiment.RatioAtMost, Severity: experiment.Blocking, Bound: ptr.To(1.0), Confidence: 0.995,
				Estimate: &analysis.Estimate{
					Value: value, Low: ptr.To(value * math.Exp(-half)), High: ptr.To(value * math.Exp(half)), Blocks: 8 + random.IntN(kinds),
				},
			})
		}
		return gates
	}
	for range 50 {
		gates := draw(4)
		var want *int
		for _, p := range Precisions(exp, gates) {
			if p.Needed == nil {
				want = nil
				break
			}
			if want == nil || *p.Needed > *want {
				want = p.Needed
			}
		}
		if got := Expected(exp, gates); (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%v blocks, want %v", got, want)
		}
	}
	// The analysis is untrusted, and the operator shows it.
	var many []analysis.GateResult
	for len(many) < 40_000 {
		many = append(many, draw(30_000)...)
	}
	used := cputime.Start()
	if Expected(exp, many); used() > 2*time.Second {
		t.Errorf("%d gates took %s", len(many), used())
	}
}
