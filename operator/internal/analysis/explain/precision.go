package explain

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Precision estimates the number of blocks that a gate on times needs, for the present estimate and spread.
type Precision struct {
	Gate      string `json:"gate"`
	Candidate string `json:"candidate"`
	Point     string `json:"point,omitempty"`
	// Blocks that the gate rests on, and HalfWidth of its interval relative to the estimate; nil where there is no interval yet.
	Blocks    int      `json:"blocks"`
	HalfWidth *float64 `json:"halfWidth,omitempty"`
	// Wanted is the half width to reach; nil where the design wants no precision, and a decision counts.
	Wanted *float64 `json:"wanted,omitempty"`
	// Needed is the total number of blocks; nil if no number is enough, or without an interval.
	Needed *int `json:"needed,omitempty"`
}

// Precisions returns the precision of each gate on times, in the order of the gates. The goal is the half width of design.stop, or without
// it a decision at the observed distance from the bound.
func Precisions(exp *experiment.Experiment, gates []analysis.GateResult) []Precision {
	var wanted *float64
	if stop := exp.Plan.Design.Stop; stop != nil {
		wanted = &stop.RelativeHalfWidth
	}
	var out []Precision
	for i := range gates {
		if gate := &gates[i]; gate.Op.Timed() {
			out = append(out, precision(gate, wanted))
		}
	}
	return out
}

func precision(g *analysis.GateResult, wanted *float64) Precision {
	out := Precision{Gate: g.Gate, Candidate: g.Candidate, Point: g.Point, Wanted: wanted}
	if g.Estimate == nil {
		return out
	}
	out.Blocks = g.Estimate.Blocks
	half, distance, known := reach(g, wanted)
	if !known {
		return out
	}
	e := g.Estimate
	out.HalfWidth = stats.Finite((*e.High - *e.Low) / 2 / math.Abs(e.Value))
	out.Needed = stats.BlocksWithin(e.Blocks, half*unitsOf(g), distance, (1-g.Confidence)/2)
	return out
}

// reach returns the half width of a gate's interval and the half width to reach, as logarithms if all values are positive. It returns
// false without an interval of enough blocks.
func reach(g *analysis.GateResult, wanted *float64) (half, distance float64, known bool) {
	e := g.Estimate
	if e == nil || e.Low == nil || e.High == nil || e.Value == 0 && !g.Op.OfDifference() || g.Bound == nil || e.Blocks < stats.MinBlocks {
		return 0, 0, false
	}
	bound := g.Condition().Region().Nearest(e.Value)
	half, distance = (*e.High-*e.Low)/2, math.Abs(e.Value-bound)
	if *e.Low > 0 && bound > 0 {
		half, distance = math.Log(*e.High / *e.Low)/2, math.Abs(math.Log(e.Value/bound))
	}
	if wanted != nil && !g.Op.OfDifference() { // The half width to reach is relative, and a difference may be 0.
		if distance = *wanted * math.Abs(e.Value); *e.Low > 0 {
			distance = math.Asinh(*wanted)
		}
	}
	return half, distance, true
}

// unitsOf returns the factor from a half width to the standard deviation of blocks.
func unitsOf(g *analysis.GateResult) float64 {
	n := float64(g.Estimate.Blocks)
	return math.Sqrt(n) / stats.StudentQuantile((1+g.Confidence)/2, n-1)
}

// mostKinds bounds the pairs of block count and confidence among the gates of an analysis. Assay's own analyses have few. Each pair
// costs a quantile of Student's distribution in every reconcile that shows the run.
const mostKinds = 100

// Expected returns the largest total number of blocks that a Blocking gate needs; nil if it is unknown for a gate or beyond the limit of
// stats.BlocksWithin.
func Expected(exp *experiment.Experiment, gates []analysis.GateResult) *int {
	var wanted *float64
	if stop := exp.Plan.Design.Stop; stop != nil {
		wanted = &stop.RelativeHalfWidth
	}
	type kind struct {
		blocks     int
		confidence float64
	}
	type hardest struct{ spread, distance float64 }
	// Among gates with the same blocks and confidence, the one with the largest ratio of spread to distance needs most.
	kinds, units := map[kind]hardest{}, map[kind]float64{}
	for i := range gates {
		g := &gates[i]
		exact := judge.Decisive(g.Outcome) && (g.Estimate == nil || g.Estimate.Exact())
		if g.Severity != experiment.Blocking || !g.Op.Timed() || exact {
			continue
		}
		half, distance, known := reach(g, wanted)
		if !known {
			return nil
		}
		of := kind{g.Estimate.Blocks, g.Confidence}
		if _, ok := units[of]; !ok {
			if len(units) == mostKinds {
				return nil
			}
			units[of] = unitsOf(g)
		}
		spread := half * units[of]
		if before, ok := kinds[of]; !ok || spread*before.distance > before.spread*distance {
			kinds[of] = hardest{spread, distance}
		}
	}
	var most *int
	for of, h := range kinds {
		needed := stats.BlocksWithin(of.blocks, h.spread, h.distance, (1-of.confidence)/2)
		if needed == nil {
			return nil
		}
		if most == nil || *needed > *most {
			most = needed
		}
	}
	return most
}

// ExpectedText describes in one line the blocks and the time to the wanted precision; "" if they are unknown.
func ExpectedText(exp *experiment.Experiment, found *analysis.Analysis) string {
	needed := Expected(exp, found.Gates)
	if needed == nil {
		return ""
	}
	goal := "a decision at the effect found"
	if stop := exp.Plan.Design.Stop; stop != nil {
		goal = "half widths of " + quantity.InPercent(stop.RelativeHalfWidth) + "%"
	}
	more := max(0, *needed-found.ValidBlocks)
	text := fmt.Sprintf("%s: about %d blocks in all, %d more", goal, *needed, more)
	if used := found.Usage; used.Blocks > 0 {
		seconds := stats.Round(used.BlockSeconds / float64(used.Blocks))
		text += ", " + quantity.Decimals(seconds*float64(more)/60, 1) + " minutes on one node"
	}
	return text
}
