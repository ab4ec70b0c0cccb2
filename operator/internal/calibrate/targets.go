package calibrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Figure is one claim of the project, as bench targets print it.
type Figure struct {
	Figure  string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Samples int     `json:"samples"`
}

// Targets of the figures.
const (
	MaxFalseRate               = 0.01
	MinPower                   = 0.90
	MinCoverage, MaxCoverage   = 0.93, 0.97
	MinFlagged                 = 0.95
	powerScenario, powerEffect = "quiet", 0.02
	layoutScenarios            = "layout-builds"
)

func figure(name string, share Share) Figure {
	return Figure{Figure: name, Value: share.Value(), Unit: "1", Low: share.Low, High: share.High, Samples: share.Of}
}

// Figures sums the tallies up. The false rate and the coverage are those of the worst scenario that the method claims to
// handle: an average would hide it. Too low a coverage makes wrong verdicts and is the figure; the highest one says how much
// too wide intervals get.
func Figures(tallies []Tally) []Figure {
	var out []Figure
	if worst := worstFalse(tallies, func(t Tally) bool { return t.Scenario.Claimed }); worst != nil {
		out = append(out, figure("verdict.aa.false_rate", *worst))
	}
	for _, t := range tallies {
		if t.Scenario.Name == powerScenario && t.Effect == powerEffect {
			out = append(out, figure("verdict.power.effect2pct", NewShare(t.Right, t.Runs)))
		}
	}
	if layout := worstFalse(tallies, func(t Tally) bool { return strings.HasPrefix(t.Scenario.Name, layoutScenarios) }); layout != nil {
		out = append(out, figure("verdict.layout.false_rate", *layout))
	}
	if shares := coverage(tallies); len(shares) > 0 {
		byValue := func(a, b Share) int { return cmp.Compare(a.Value(), b.Value()) }
		out = append(out, figure("verdict.coverage.95", slices.MinFunc(shares, byValue)), figure("verdict.coverage.95.highest", slices.MaxFunc(shares, byValue)))
	}
	return out
}

// worstFalse is the highest share of wrong verdicts among the scenarios chosen, without a true effect; nil without one.
func worstFalse(tallies []Tally, of func(Tally) bool) *Share {
	var worst *Share
	for _, t := range tallies {
		if share := NewShare(t.False(), t.Runs); t.Effect == 0 && of(t) && (worst == nil || share.Value() > worst.Value()) {
			worst = &share
		}
	}
	return worst
}

// coverage of every claimed scenario, over all effects: it does not depend on the effect.
func coverage(tallies []Tally) []Share {
	type count struct{ covered, of int }
	counts := map[string]count{}
	var names []string
	for _, t := range tallies {
		if !t.Scenario.Claimed {
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
		case "verdict.aa.false_rate", "verdict.layout.false_rate":
			high = MaxFalseRate
		case "verdict.power.effect2pct":
			low = MinPower
		case "verdict.coverage.95", "verdict.coverage.95.highest":
			low, high = MinCoverage, MaxCoverage
		case "verdict.neighbour.flagged":
			low = MinFlagged
		}
		if f.High < low || f.Low > high {
			out = append(out, fmt.Sprintf("%s is %.4f [%.4f, %.4f] of %d runs and the target is %g to %g", f.Figure, f.Value, f.Low, f.High, f.Samples, low, high))
		}
	}
	return out
}
