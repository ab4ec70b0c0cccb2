package series

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

// Kind of a record.
type Kind string

// Kinds of records.
const (
	// Measured is head over the anchor.
	Measured Kind = "Measured"
	// Bridge is a new anchor over the previous one, measured together.
	Bridge Kind = "Bridge"
	// Gap is a due run without measurements, for example because its tag was deleted, its image could not be pulled, or its verdict was
	// Invalid.
	Gap Kind = "Gap"
	// Unpaired is a value of another tool, measured without an anchor. Its ratio is the value itself.
	Unpaired Kind = "Unpaired"
)

// Estimate is a log ratio with its precision.
type Estimate struct {
	LogRatio float64 `json:"logRatio"`
	// SE is the standard error, and DF its degrees of freedom.
	SE     float64 `json:"se"`
	DF     float64 `json:"df"`
	Blocks int     `json:"blocks"`
}

// Ratio converts a log ratio. It is limited to the largest finite number, because JSON has no infinity.
func Ratio(logarithm float64) float64 { return min(math.Exp(logarithm), math.MaxFloat64) }

// Limits of an estimate. Beyond them its ratio, or a sum of variances, overflows or underflows.
const (
	mostLogRatio = 1e3
	leastSE      = 1e-60
	mostSE       = 1e3
	mostDF       = 1e9
)

// Check returns an error if an estimate is unusable. A missing estimate is a gap, never a zero.
func (e Estimate) Check() error {
	switch {
	case !(math.Abs(e.LogRatio) <= mostLogRatio):
		return fmt.Errorf("logRatio: found %g; a number from %g to %g is allowed; record a gap for a missing measurement", e.LogRatio,
			-mostLogRatio, mostLogRatio)
	case e.SE != 0 && !(leastSE <= e.SE && e.SE <= mostSE):
		return fmt.Errorf("se: found %g; a standard error is 0, or from %g to %g", e.SE, leastSE, mostSE)
	case !(1 <= e.DF && e.DF <= mostDF):
		return fmt.Errorf("df: found %g; 1 to %g degrees of freedom are allowed; measure 2 blocks or more", e.DF, mostDF)
	case e.Blocks < 2:
		return fmt.Errorf("blocks: found %d; at least 2 are needed for a standard error", e.Blocks)
	}
	return nil
}

// Record is the contribution of one run to a series. Records are immutable, and a series can be rebuilt from them in any order.
type Record struct {
	Kind Kind `json:"kind"`
	// ID is the identity of the run. Of several records with one ID, one counts.
	ID string `json:"id"`
	// Analysis is the revision of the evidence. A run that is analyzed again has the same ID and the next number.
	Analysis int64 `json:"analysis"`
	// Schedule that started the run, and the sequence number that orders the series. Time does not, because clocks jump.
	Schedule string    `json:"schedule"`
	Sequence int64     `json:"sequence"`
	At       time.Time `json:"at"`

	// Head is the measured revision, Image the digest of its image, and Anchor the reference revision.
	Head   string `json:"head,omitzero"`
	Image  string `json:"image,omitzero"`
	Anchor string `json:"anchor,omitzero"`
	// Ratio is head over anchor; for a bridge, the new anchor (Head) over the old one (Anchor). Zero for a gap.
	Ratio Estimate `json:"ratio,omitzero"`
	// Predecessor is the revision measured before head, in the same blocks, and Step is head over it; nil without one.
	Predecessor string    `json:"predecessor,omitzero"`
	Step        *Estimate `json:"step,omitzero"`

	// Machine is the fingerprint of the machine, and Workload the digest of template, parameters and design.
	Machine  string `json:"machine,omitzero"`
	Workload string `json:"workload,omitzero"`
	// Ledger is the URL of the evidence.
	Ledger string `json:"ledger,omitzero"`
	// Reason of a gap.
	Reason string `json:"reason,omitzero"`
}

// MostSequence is the highest sequence number, limited by the length of a run's name.
const MostSequence = 999_999_999

// Check returns an error if a record is invalid.
func (r *Record) Check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("record %q: %w", r.ID, fmt.Errorf(format, args...))
	}
	switch {
	case r.ID == "":
		return fail("id is empty; set it to the name and UID of the run")
	case r.Schedule == "":
		return fail("schedule is empty; name the schedule of the run")
	case r.At.IsZero():
		return fail("at is empty; set it to the start of the run")
	case r.At.Year() < 1970 || r.At.Year() > 9999:
		return fail("at: found the year %d; 1970 to 9999 are allowed", r.At.Year())
	case r.Sequence < 0 || r.Sequence > MostSequence:
		return fail("sequence: found %d; 0 to %d are allowed", r.Sequence, MostSequence)
	case r.Kind == Gap && r.Reason == "":
		return fail("reason is empty; a gap requires one")
	case r.Kind == Gap:
		return nil
	case r.Kind == Unpaired:
		if err := r.checkUnpaired(); err != nil {
			return fail("%w", err)
		}
		return nil
	case r.Kind != Measured && r.Kind != Bridge:
		return fail("kind: found %q; allowed are %s, %s, %s and %s", r.Kind, Measured, Bridge, Gap, Unpaired)
	case r.Head == "" || r.Anchor == "":
		return fail("head is %q and anchor is %q; both are required", r.Head, r.Anchor)
	case r.Kind == Bridge && r.Head == r.Anchor:
		return fail("head and anchor are both %q; a bridge connects two different anchors", r.Head)
	case r.Machine == "" || r.Workload == "":
		return fail("machine is %q and workload is %q; both are required to compare points", r.Machine, r.Workload)
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

// checkUnpaired checks the fields of a record without an anchor. A single value has no error.
func (r *Record) checkUnpaired() error {
	switch e := r.Ratio; {
	case r.Head == "" || r.Machine == "" || r.Workload == "":
		return fmt.Errorf("head is %q, machine is %q and workload is %q; all are required", r.Head, r.Machine, r.Workload)
	case r.Anchor != "" || r.Predecessor != "" || r.Step != nil:
		return errors.New("anchor, predecessor and step must be empty; an unpaired value has none")
	case e.Blocks == 1 && (e.SE != 0 || e.DF != 0):
		return fmt.Errorf("ratio: found se %g and df %g of one value; both must be 0", e.SE, e.DF)
	case e.Blocks == 1 && !(math.Abs(e.LogRatio) <= mostLogRatio):
		return fmt.Errorf("ratio.logRatio: found %g; a number from %g to %g is allowed", e.LogRatio, -mostLogRatio, mostLogRatio)
	case e.Blocks == 1:
		return nil
	default:
		if err := e.Check(); err != nil {
			return fmt.Errorf("ratio.%w", err)
		}
		return nil
	}
}

// BridgeID returns the identity of the bridge that a run measured beside its point. It sorts before the run's ID, because a point that is
// remeasured against the new anchor requires the bridge.
func BridgeID(run string) string { return "+bridge/" + run }

// inOrder is the sort order of a series. The ID breaks ties between equal numbers, so that the order is deterministic.
func inOrder(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Analysis, b.Analysis))
}
