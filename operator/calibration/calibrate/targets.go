package calibrate

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"assay.dev/assay/operator/calibration/figures"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/quantity"
)

// Figure is a published result of the project, in the format of bench targets.
type Figure = figures.Figure

// Print writes one JSON line for each figure.
func Print(out io.Writer, figures ...Figure) error {
	for _, figure := range figures {
		if err := figure.Write(out); err != nil {
			return err
		}
	}
	return nil
}

// Figures of runs on a real machine, and of candidates that disturb themselves.
const (
	SelfNoiseFigure = "verdict.selfnoise.false_go"
	RealPowerFigure = "verdict.real.power.effect2pct"
	UsedShareFigure = "verdict.real.six_arms.used_share"
	OverAllFigure   = "verdict.real.six_arms.halfwidth_over_all_trials"
)

// rates lists the figures whose value is the highest rate of wrong verdicts among their scenarios.
var rates = []string{
	fixture.AutocorrFigure, fixture.RareSlowFigure, fixture.NodeLevelsFigure, fixture.LayoutFigure, fixture.GatesFigure,
	fixture.CarryOverFigure,
}

// SimulatedFigures lists the names of all possible results of Figures.
var SimulatedFigures = append([]string{
	"verdict.aa.false_rate", "verdict.power.effect2pct", "verdict.coverage.95", "verdict.coverage.95.highest", fixture.ClockFigure,
	CarryOverCoverageFigure, fixture.CarryOverPowerFigure, fixture.StartPowerFigure, fixture.ShapesFigure, FloorsFigure,
}, rates...)

// MaxFalseRate is the target for wrong verdicts.
const MaxFalseRate = 0.01

// CarryOverCoverageFigure is the lowest coverage of 95 % intervals under carry-over.
const CarryOverCoverageFigure = "verdict.carryover.coverage95"

// FloorsFigure counts the shapes of noise with less power than their floor.
const FloorsFigure = "verdict.shapes.floors_missed"

// powers are the figures of correct verdicts, with their scenario and effect.
var powers = []struct {
	figure, scenario string
	effect           float64
}{
	{"verdict.power.effect2pct", "quiet", 0.02},
	{fixture.CarryOverPowerFigure, "carryover-power", 0.05},
	{fixture.StartPowerFigure, "start-3", 0.02},
}

// targets contains the lower and upper limit of each figure.
var targets = map[string]struct{ low, high float64 }{
	"verdict.aa.false_rate":       {0, MaxFalseRate},
	fixture.AutocorrFigure:        {0, MaxFalseRate},
	fixture.RareSlowFigure:        {0, MaxFalseRate},
	fixture.NodeLevelsFigure:      {0, MaxFalseRate},
	fixture.LayoutFigure:          {0, MaxFalseRate},
	fixture.GatesFigure:           {0, MaxFalseRate},
	fixture.ClockFigure:           {0.93, 1},
	"verdict.coverage.95":         {0.93, 0.97},
	"verdict.coverage.95.highest": {0.93, 0.97},
	"verdict.power.effect2pct":    {0.90, 1},
	fixture.CarryOverFigure:       {0, MaxFalseRate},
	CarryOverCoverageFigure:       {0.93, 1},
	fixture.CarryOverPowerFigure:  {0.80, 1},
	fixture.StartPowerFigure:      {0.93, 1},
	fixture.ShapesFigure:          {0, MaxFalseRate},
	FloorsFigure:                  {0, 0},
	RealPowerFigure:               {0.90, 1},
	UsedShareFigure:               {0.90, 1},
	"verdict.neighbour.flagged":   {0.95, 1},
	SelfNoiseFigure:               {0, 0},
	CensoredFigure:                {0, 0},
}

// Figure converts a share into a figure.
func (s Share) Figure(name string) Figure {
	return Figure{Figure: name, Value: s.Value(), Unit: "1", Low: s.Low, High: s.High, Samples: s.Of}
}

// MedianFigure returns the median of repeated measurements, with minimum and maximum as limits.
func MedianFigure(name, unit string, values []float64, note string) Figure {
	sorted := slices.Sorted(slices.Values(values))
	return Figure{
		Figure: name, Unit: unit, Value: sorted[len(sorted)/2], Low: sorted[0], High: sorted[len(sorted)-1], Samples: len(sorted), Note: note,
	}
}

// Figures summarizes the tallies. False rate and coverage are those of the worst scenario that the method claims to handle, because an
// average would hide it. The lowest coverage is a figure because it causes wrong verdicts; the highest one shows the excess width of
// intervals.
func Figures(tallies []Tally) []Figure {
	var out []Figure
	if worst, ok := worstFalse(tallies, ""); ok {
		out = append(out, worst.Figure("verdict.aa.false_rate"))
	}
	for _, power := range powers {
		for _, t := range tallies {
			if t.Scenario.Name == power.scenario && t.Effect == power.effect {
				out = append(out, NewShare(t.Right, t.Runs).Figure(power.figure))
			}
		}
	}
	if rows := coverage(tallies, ""); len(rows) > 0 {
		out = append(out, slices.MinFunc(rows, byCoverage).coverageFigure("verdict.coverage.95", len(rows)),
			slices.MaxFunc(rows, byCoverage).coverageFigure("verdict.coverage.95.highest", len(rows)))
	}
	for _, name := range rates {
		if worst, ok := worstFalse(tallies, name); ok {
			out = append(out, worst.Figure(name))
		}
	}
	// Intervals limited by a clock's resolution are as wide as its step, so only the lowest coverage is meaningful.
	for _, lowest := range [][2]string{{fixture.ClockFigure, fixture.ClockFigure}, {fixture.CarryOverFigure, CarryOverCoverageFigure}} {
		if rows := coverage(tallies, lowest[0]); len(rows) > 0 {
			out = append(out, slices.MinFunc(rows, byCoverage).coverageFigure(lowest[1], len(rows)))
		}
	}
	return append(out, shapeFigures(tallies)...)
}

// shapeFigures returns the highest rate of wrong verdicts that do not name the assumption that a shape breaks, and the number of shapes
// with a power below their floor. Low counts those that miss it with their whole interval.
func shapeFigures(tallies []Tally) []Figure {
	var worst Share
	var row string
	floors := Figure{Figure: FloorsFigure, Unit: "shapes"}
	for _, t := range tallies {
		if !t.claimedFor(fixture.ShapesFigure) {
			continue
		}
		if share := NewShare(t.Unnamed, t.Runs); t.Effect == 0 && (row == "" || share.Value() > worst.Value()) {
			worst, row = share, t.Scenario.Name
		}
		if t.Scenario.Floor == 0 {
			continue
		}
		floors.Samples++
		power := NewShare(t.Right, t.Runs)
		if power.Value() < t.Scenario.Floor {
			floors.Value++
			floors.Note += t.Scenario.Name + " " + power.String() + "; "
		}
		if power.High < t.Scenario.Floor {
			floors.Low++
		}
		if power.Low < t.Scenario.Floor {
			floors.High++
		}
	}
	if row == "" {
		return nil
	}
	out := worst.Figure(fixture.ShapesFigure)
	out.Note = "row " + row
	return []Figure{out, floors}
}

// worstFalse returns the highest rate of wrong verdicts among the claimed scenarios of a figure, without a true difference.
func worstFalse(tallies []Tally, name string) (worst Share, ok bool) {
	for _, t := range tallies {
		if share := NewShare(t.False(), t.Runs); t.claimedFor(name) && t.Effect == 0 && (!ok || share.Value() > worst.Value()) {
			worst, ok = share, true
		}
	}
	return worst, ok
}

func (t Tally) claimedFor(name string) bool { return t.Scenario.Claimed && t.Scenario.Figure == name }

func byCoverage(a, b Tally) int {
	return cmp.Compare(NewShare(a.Covered, a.Intervals).Value(), NewShare(b.Covered, b.Intervals).Value())
}

// coverageFigure returns the coverage of a row that was selected as the extreme of the given number of rows. The extreme is biased, so its
// limits hold for all rows simultaneously (Bonferroni; Dunn 1961, Journal of the American Statistical Association 56:52).
func (t Tally) coverageFigure(name string, rows int) Figure {
	out := newShareAt(t.Covered, t.Intervals, 1-0.05/float64(rows)).Figure(name)
	out.Note = fmt.Sprintf("row %s, picked from %d, with limits that hold for all of them at once; the plain interval of the same blocks: %s",
		t.Scenario.Name, rows, NewShare(t.PlainCovered, t.Intervals))
	return out
}

// coverage counts the 95 % intervals of every scenario claimed for a figure over all effects, because coverage does not depend on the
// effect.
func coverage(tallies []Tally, name string) []Tally {
	var out []Tally
	for _, t := range tallies {
		if !t.claimedFor(name) {
			continue
		}
		at := slices.IndexFunc(out, func(sum Tally) bool { return sum.Scenario.Name == t.Scenario.Name })
		if at < 0 {
			at, out = len(out), append(out, Tally{Scenario: t.Scenario})
		}
		out[at].add(t)
	}
	return out
}

// Check returns the targets that the figures miss with their whole interval, so that a short run does not fail by chance.
func Check(figures []Figure) []string {
	var out []string
	for _, f := range figures {
		target, ok := targets[f.Figure]
		if ok && (f.High < target.low || f.Low > target.high) {
			out = append(out, fmt.Sprintf("%s is %s of %d runs and the target is %g to %g", f.Figure,
				quantity.WithEnds(f.Value, f.Low, f.High, 4), f.Samples, target.low, target.high))
		}
	}
	return out
}
