package series

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Kind is what a record holds.
type Kind string

// Kinds of records.
const (
	// Measured is head against the anchor.
	Measured Kind = "Measured"
	// Bridge is a new anchor against the one before, measured together.
	Bridge Kind = "Bridge"
	// Gap is a run that was due and measured nothing: its tag had vanished, its image could not be pulled, its verdict was Invalid.
	Gap Kind = "Gap"
)

// Estimate is a logarithm of a ratio with what it takes to decide on it.
type Estimate struct {
	LogRatio float64
	// SE is its standard error, and DF the degrees of freedom of that.
	SE, DF float64
	Blocks int
}

// Ratio of a logarithm; the largest number where none holds it: JSON, as which histories are shown, has no infinite one.
func Ratio(logarithm float64) float64 { return min(math.Exp(logarithm), math.MaxFloat64) }

// Limits of an estimate. Beyond them its ratio, or the variance of several estimates together, overflows or vanishes.
const (
	mostLogRatio = 1e3
	leastSE      = 1e-60
	mostSE       = 1e3
	mostDF       = 1e9
)

// Check reports what makes an estimate unusable. A missing one is a gap, never a zero.
func (e Estimate) Check() error {
	switch {
	case !(math.Abs(e.LogRatio) <= mostLogRatio):
		return fmt.Errorf("logRatio: found %g; a number from %g to %g is allowed: record a gap where nothing was measured", e.LogRatio,
			-mostLogRatio, mostLogRatio)
	case e.SE != 0 && !(leastSE <= e.SE && e.SE <= mostSE):
		return fmt.Errorf("se: found %g; a standard error is 0, or from %g to %g", e.SE, leastSE, mostSE)
	case !(1 <= e.DF && e.DF <= mostDF):
		return fmt.Errorf("df: found %g; a standard error rests on 1 to %g degrees of freedom: measure 2 blocks or more", e.DF, mostDF)
	case e.Blocks < 2:
		return fmt.Errorf("blocks: found %d; at least 2 are needed for a standard error", e.Blocks)
	}
	return nil
}

// Record is what one run adds to a series. Records are facts: they are never changed, and a series can be made of them again at any
// time, in any order.
type Record struct {
	Kind Kind
	// ID is the identity of the run: of two records with one ID one counts.
	ID string
	// Revision of the evidence: a run that is analyzed again has the same ID and the next number.
	Analysis int64
	// Schedule that had it measured, and the number it gave it: the order of a series. The clock is not, because it jumps.
	Schedule string
	Sequence int64
	At       time.Time

	// Head is the revision that was measured, Image the digest of its image, and Anchor the revision it is compared with.
	Head, Image, Anchor string
	// Ratio is head over anchor; of a bridge the new anchor (Head) over the old one (Anchor). A gap has none.
	Ratio Estimate
	// Predecessor is the revision measured before head, in the same blocks, and Step is head over it. Nil where there was none.
	Predecessor string
	Step        *Estimate

	// Machine is the fingerprint of where it ran, and Workload the digest of what was asked: template, parameters, design.
	Machine, Workload string
	// Ledger is the URL of the evidence.
	Ledger string
	// Reason of a gap.
	Reason string
}

// MostSequence is the highest number that a record may have: a name of a run has room for it, and a number follows it.
const MostSequence = 999_999_999

// Check reports why a record cannot be taken.
func (r *Record) Check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("record %q: %s", r.ID, fmt.Sprintf(format, args...))
	}
	switch {
	case r.ID == "":
		return fail("id is empty: name the run and its uid")
	case r.Schedule == "":
		return fail("schedule is empty: name what had it measured")
	case r.At.IsZero():
		return fail("at is empty: say when the run began")
	case r.At.Year() < 1970 || r.At.Year() > 9999:
		return fail("at: found the year %d; 1970 to 9999 are allowed", r.At.Year())
	case r.Sequence < 0 || r.Sequence > MostSequence:
		return fail("sequence: found %d; 0 to %d are allowed", r.Sequence, MostSequence)
	case r.Kind == Gap && r.Reason == "":
		return fail("reason is empty: a gap says why nothing was measured")
	case r.Kind == Gap:
		return nil
	case r.Kind != Measured && r.Kind != Bridge:
		return fail("kind: found %q; allowed are %s, %s and %s", r.Kind, Measured, Bridge, Gap)
	case r.Head == "" || r.Anchor == "":
		return fail("head %q and anchor %q: both revisions are needed", r.Head, r.Anchor)
	case r.Kind == Bridge && r.Head == r.Anchor:
		return fail("head and anchor are both %q: a bridge leads from one anchor to another", r.Head)
	case r.Machine == "" || r.Workload == "":
		return fail("machine %q and workload %q: both are needed to know with what it can be compared", r.Machine, r.Workload)
	}
	if err := r.Ratio.Check(); err != nil {
		return fail("ratio.%s", err)
	}
	if r.Step != nil {
		if err := r.Step.Check(); err != nil {
			return fail("step.%s", err)
		}
	}
	return nil
}

// BridgeID is the identity of the bridge that a run measured beside its point. It sorts before the run's own: a point that is measured anew
// against the new anchor needs the bridge.
func BridgeID(run string) string { return "+bridge/" + run }

// inOrder is the order of a series. The identity decides where two records have one number, so that the order is always the same.
func inOrder(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Analysis, b.Analysis))
}
