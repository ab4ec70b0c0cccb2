package change

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Outcome of a confirming run.
type Outcome string

// Outcomes.
const (
	// Holds: the old and the new revisions differ.
	Holds Outcome = "Holds"
	// Refuted: the difference is smaller than suspected.
	Refuted Outcome = "Refuted"
	// Undecided: neither of the two; another run may decide.
	Undecided Outcome = "Undecided"
)

// Confirmation judges confirming runs.
type Confirmation struct {
	// Alpha is the probability that a false suspicion is confirmed, over all its runs together.
	Alpha float64
	// Runs is the maximum number of runs; the last one decides.
	Runs int
	// Searched is the number of points that the detector searches for each suspicion. The layout of a build persists in all of its runs,
	// the confirming one included, and a suspicion selects the builds in which it is largest.
	Searched float64
}

// Measured is the result of a confirming run: log ratio of new over old in fresh blocks.
type Measured struct {
	LogRatio, SE, DF float64
	// Between is the variance between runs of the series beyond their errors, and Revisions the number of old and new revisions in the
	// ratio. Two builds also differ by their layout, and a difference within that variance cannot be attributed to the commit.
	Between  float64
	Old, New int
}

// Wants returns the number of new revisions, at most most, that must exist before the run with this number, from 1. The first run needs
// one revision, each later run twice as many, and the last run all of them, because several builds average out the layout of a single one.
func (c Confirmation) Wants(run, most int) int {
	if run >= c.Runs && run > 1 {
		return most
	}
	return min(most, 1<<(run-1))
}

// Judge decides the run with this number, from 1. The level is divided among the runs, and for the variance between builds also among the
// points that were searched (Dunn 1961, Journal of the American Statistical Association 56:52), which corrects for repetition and for
// selection. A suspicion is refuted when not even half of the suspected shift lies in the 95 % interval, or when no run confirmed it.
func (c Confirmation) Judge(suspected float64, m Measured, run int) Outcome {
	student := distuv.StudentsT{Sigma: 1, Nu: m.DF}
	between := math.Sqrt(m.Between * (1/float64(m.Old) + 1/float64(m.New)))
	alpha := c.Alpha / 2 / float64(c.Runs)
	reach := math.Hypot(student.Quantile(1-alpha)*m.SE, distuv.UnitNormal.Quantile(1-alpha/c.Searched)*between)
	along := m.LogRatio
	if suspected < 0 {
		along = -along
	}
	switch {
	case along > reach:
		return Holds
	case run >= c.Runs || along+student.Quantile(0.975)*math.Hypot(m.SE, between) < math.Abs(suspected)/2:
		return Refuted
	default:
		return Undecided
	}
}
