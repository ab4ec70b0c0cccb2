package explain

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Precision is how many blocks a gate on times needs, if estimate and spread stay as they are.
type Precision struct {
	Gate      string `json:"gate"`
	Candidate string `json:"candidate"`
	Point     string `json:"point,omitempty"`
	// Blocks that the gate rests on, and HalfWidth of its interval relative to the estimate; nil where there is no interval yet.
	Blocks    int      `json:"blocks"`
	HalfWidth *float64 `json:"halfWidth,omitempty"`
	// Wanted is what the half width has to become; nil where no precision is wanted and it is the decision that counts.
	Wanted *float64 `json:"wanted,omitempty"`
	// Needed are the blocks in all; nil where no number of them would do, or nothing can be said yet.
	Needed *int `json:"needed,omitempty"`
}

// Precisions are those of the gates on times, in the order of the gates: to the half width that design.stop asks for, or without
// it to a decision at the distance that was seen.
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
	e := g.Estimate
	if e == nil {
		return out
	}
	out.Blocks = e.Blocks
	if e.Low == nil || e.High == nil || e.Value == 0 || g.Bound == nil || e.Blocks < stats.MinBlocks {
		return out
	}
	out.HalfWidth = stats.Finite((*e.High - *e.Low) / 2 / math.Abs(e.Value))
	// On the scale of logarithms where all is positive, as the intervals are.
	half, distance := (*e.High-*e.Low)/2, math.Abs(e.Value-*g.Bound)
	if *e.Low > 0 && *g.Bound > 0 {
		half, distance = math.Log(*e.High / *e.Low)/2, math.Abs(math.Log(e.Value / *g.Bound))
	}
	if wanted != nil {
		if distance = *wanted * math.Abs(e.Value); *e.Low > 0 {
			distance = math.Asinh(*wanted)
		}
	}
	n := float64(e.Blocks)
	spread := half / stats.StudentQuantile((1+g.Confidence)/2, n-1) * math.Sqrt(n)
	out.Needed = stats.BlocksWithin(e.Blocks, spread, distance, (1-g.Confidence)/2)
	return out
}

// Expected is how many blocks the Blocking gates need in all, the one that needs most; nil where that is not known of any or one of
// them needs more than anybody will run.
func Expected(exp *experiment.Experiment, gates []analysis.GateResult) *int {
	var blocking []analysis.GateResult
	for _, gate := range gates {
		if gate.Severity == experiment.Blocking {
			blocking = append(blocking, gate)
		}
	}
	var most *int
	for _, p := range Precisions(exp, blocking) {
		if p.Needed == nil {
			return nil
		}
		if most == nil || *p.Needed > *most {
			most = p.Needed
		}
	}
	return most
}

// ExpectedText describes in a line how far the wanted precision is; empty where that is unknown.
func ExpectedText(exp *experiment.Experiment, found *analysis.Analysis) string {
	needed := Expected(exp, found.Gates)
	if needed == nil {
		return ""
	}
	what := "a decision at the effect found"
	if stop := exp.Plan.Design.Stop; stop != nil {
		what = "half widths of " + quantity.InPercent(stop.RelativeHalfWidth) + "%"
	}
	more := max(0, *needed-found.ValidBlocks)
	text := fmt.Sprintf("%s: about %d blocks in all, %d more", what, *needed, more)
	if seconds := found.BlockTime(); seconds != nil {
		text += ", " + quantity.Decimals(*seconds*float64(more)/60, 1) + " minutes on one node"
	}
	return text
}
