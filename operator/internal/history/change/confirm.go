package change

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Outcome of a confirming run.
type Outcome string

// Outcomes.
const (
	// Holds: the old and the new revision differ.
	Holds Outcome = "Holds"
	// Refuted: they do not differ by as much as was suspected.
	Refuted Outcome = "Refuted"
	// Undecided: neither; another run may decide.
	Undecided Outcome = "Undecided"
)

// Confirmation judges confirming runs.
type Confirmation struct {
	// Alpha is the probability that a suspicion without a change is confirmed, over all its runs together.
	Alpha float64
	// Runs is how many there may be; the last one decides.
	Runs int
	// Searched is how many points the detector looks at for each suspicion. The layout of a build is in all of its runs, so also in the
	// confirming one, and a suspicion picks the builds in which it is largest.
	Searched float64
}

// Measured is what a confirming run found: new over old on fresh blocks, as a logarithm.
type Measured struct {
	LogRatio, SE, DF float64
	// Between is the variance between runs of the series beyond their errors, and Revisions on how many old and new ones the ratio rests. Two
	// builds differ by their layout, too; a difference that is no larger than that is none of the commit's.
	Between  float64
	Old, New int
}

// Wants is how many new revisions the run with this number, from 1, wants there to be of so many at most: the first asks at once, each
// other one when there are twice as many, and the last with all of them. What one build hides, several show.
func (c Confirmation) Wants(run, most int) int {
	if run >= c.Runs && run > 1 {
		return most
	}
	return min(most, 1<<(run-1))
}

// Judge the run with this number, from 1. The level is divided among the runs, and for what differs between builds also among the points
// that were searched (Dunn 1961, Journal of the American Statistical Association 56:52): so asking again buys nothing, and neither does
// picking. A suspicion is refuted when not even half of what was suspected lies in the 95 % interval, and at last when no run confirmed it.
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
