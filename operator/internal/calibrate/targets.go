package calibrate

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/simulate"
)

// Figure is one claim of the project, as bench targets print it.
type Figure struct {
	Figure  string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Samples int     `json:"samples"`
	// Note says under what conditions, where the name does not.
	Note string `json:"note,omitempty"`
}

// Figures of runs on a real machine, and of candidates that disturb themselves.
const (
	SelfNoiseFigure = "verdict.selfnoise.false_go"
	RealPowerFigure = "verdict.real.power.effect2pct"
	UsedShareFigure = "verdict.real.six_arms.used_share"
	OverAllFigure   = "verdict.real.six_arms.halfwidth_over_all_trials"
)

// Targets of the figures.
const (
	MaxFalseRate               = 0.01
	MinPower                   = 0.90
	MinCoverage, MaxCoverage   = 0.93, 0.97
	MinFlagged                 = 0.95
	MinUsedShare               = 0.90
	powerScenario, powerEffect = "quiet", 0.02
)

func figure(name string, share Share) Figure {
	return Figure{Figure: name, Value: share.Value(), Unit: "1", Low: share.Low, High: share.High, Samples: share.Of}
}

// Figures sums the tallies up. The false rate and the coverage are those of the worst scenario that the method claims to
// handle: an average would hide it. Too low a coverage makes wrong verdicts and is the figure; the highest one says how much
// too wide intervals get.
func Figures(tallies []Tally) []Figure {
	var out []Figure
	if worst, found := worstFalse(tallies, ""); found {
		out = append(out, figure("verdict.aa.false_rate", worst))
	}
	for _, t := range tallies {
		if t.Scenario.Name == powerScenario && t.Effect == powerEffect {
			out = append(out, figure("verdict.power.effect2pct", NewShare(t.Right, t.Runs)))
		}
	}
	byValue := func(a, b Share) int { return cmp.Compare(a.Value(), b.Value()) }
	if shares := coverage(tallies, ""); len(shares) > 0 {
		out = append(out, figure("verdict.coverage.95", slices.MinFunc(shares, byValue)), figure("verdict.coverage.95.highest", slices.MaxFunc(shares, byValue)))
	}
	for _, name := range []string{simulate.AutocorrFigure, simulate.RareSlowFigure, simulate.NodeLevelsFigure, simulate.LayoutFigure} {
		if worst, found := worstFalse(tallies, name); found {
			out = append(out, figure(name, worst))
		}
	}
	// Intervals that hold a clock's step are as wide as it, so that only too low a coverage counts.
	if shares := coverage(tallies, simulate.ClockFigure); len(shares) > 0 {
		out = append(out, figure(simulate.ClockFigure, slices.MinFunc(shares, byValue)))
	}
	return out
}

// worstFalse is the highest rate of wrong verdicts among the claimed scenarios of a figure, without a true difference.
func worstFalse(tallies []Tally, name string) (worst Share, found bool) {
	for _, t := range tallies {
		if share := NewShare(t.False(), t.Runs); t.claimedFor(name) && t.Effect == 0 && (!found || share.Value() > worst.Value()) {
			worst, found = share, true
		}
	}
	return worst, found
}

func (t Tally) claimedFor(name string) bool { return t.Scenario.Claimed && t.Scenario.Figure == name }

// coverage of every scenario claimed for a figure, over all effects: it does not depend on the effect.
func coverage(tallies []Tally, name string) []Share {
	type count struct{ covered, of int }
	counts := map[string]count{}
	var names []string
	for _, t := range tallies {
		if !t.claimedFor(name) {
			continue
		}
		c, known := counts[t.Scenario.Name]
		if !known {
			names = append(names, t.Scenario.Name)
		}
		counts[t.Scenario.Name] = count{c.covered + t.Covered, c.of + t.Intervals}
	}
	var out []Share
	for _, name := range names {
		out = append(out, NewShare(counts[name].covered, counts[name].of))
	}
	return out
}

// Check says which targets the figures miss for certain: with their whole interval, so that a short run does not fail by
// accident.
func Check(figures []Figure) []string {
	var out []string
	for _, f := range figures {
		low, high := 0.0, 1.0
		switch f.Figure {
		case "verdict.aa.false_rate", simulate.AutocorrFigure, simulate.RareSlowFigure, simulate.NodeLevelsFigure, simulate.LayoutFigure:
			high = MaxFalseRate
		case simulate.ClockFigure:
			low = MinCoverage
		case "verdict.power.effect2pct":
			low = MinPower
		case "verdict.coverage.95", "verdict.coverage.95.highest":
			low, high = MinCoverage, MaxCoverage
		case SelfNoiseFigure:
			high = 0
		case RealPowerFigure:
			low = MinPower
		case UsedShareFigure:
			low = MinUsedShare
		case "verdict.neighbour.flagged":
			low = MinFlagged
		case CensoredFigure:
			high = 0
		}
		if f.High < low || f.Low > high {
			out = append(out, fmt.Sprintf("%s is %.4f [%.4f, %.4f] of %d runs and the target is %g to %g", f.Figure, f.Value, f.Low, f.High, f.Samples, low, high))
		}
	}
	return out
}
