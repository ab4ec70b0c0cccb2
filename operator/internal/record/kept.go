package record

// Kept has the fields of an attempt that only the keeper knows.
type Kept struct {
	// Lease records whether the block's lease was in force after the trial had ended; empty in a block without one.
	Lease KeptLease `json:"lease,omitempty"`
	// Clock is the skew of the machine's clock against the store's at the start of the block; nil if the store reports no time.
	Clock *Clock `json:"clock,omitempty"`
}

// KeptLease is the state of a lease in the ledger.
type KeptLease string

// States of a lease.
const (
	LeaseHeld  KeptLease = "Held"
	LeaseEnded KeptLease = "Ended"
)

// Clock is the skew between two clocks.
type Clock struct {
	// AheadSeconds is the difference to the other clock, negative if behind; UncertaintySeconds bounds its error.
	AheadSeconds       float64 `json:"aheadSeconds"`
	UncertaintySeconds float64 `json:"uncertaintySeconds"`
}
