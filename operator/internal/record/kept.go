package record

// Kept is what the keeper knows of an attempt and the runner does not.
type Kept struct {
	// Lease records whether the block's lease was in force after the trial had ended; empty in a block without one.
	Lease KeptLease `json:"lease,omitempty"`
	// Clock is the machine's beside that of the store, when the block began; nil where the store reports no time.
	Clock *Clock `json:"clock,omitempty"`
}

// KeptLease is what the ledger said of a lease.
type KeptLease string

// What it may have said.
const (
	LeaseHeld  KeptLease = "Held"
	LeaseEnded KeptLease = "Ended"
)

// Clock is a clock beside another one.
type Clock struct {
	// AheadSeconds is how far it is ahead; below zero, behind. UncertaintySeconds is how wrong that can be.
	AheadSeconds       float64 `json:"aheadSeconds"`
	UncertaintySeconds float64 `json:"uncertaintySeconds"`
}
