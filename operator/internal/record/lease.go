package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// LeaseTaken is what a run's ledger holds of a lease from the moment the run has it.
type LeaseTaken struct {
	Run Run `json:"run"`
	Lease
	AcquiredAt time.Time `json:"acquiredAt"`
}

// LeaseEnd is what a run's ledger holds of the end of a lease, before anybody else can have the node. What a block measured
// later, on a machine that nobody could reach, was not alone.
type LeaseEnd struct {
	Run Run `json:"run"`
	Lease
	EndedAt time.Time `json:"endedAt"`
	// Reason is released or expired.
	Reason string `json:"reason"`
}

// Leases are a run's leases, in the order of the keys. Known is false for a ledger that keeps no record of leases: a local
// run's, or one written by hand.
type Leases struct {
	Known bool
	Taken []LeaseTaken
	Ends  []LeaseEnd
}

// ParseLeaseTaken reads the record of a lease.
func ParseLeaseTaken(raw []byte) (*LeaseTaken, error) {
	var out LeaseTaken
	return &out, parseLease(raw, &out, &out.Lease, &out.AcquiredAt, "acquiredAt")
}

// ParseLeaseEnd reads the record of a lease's end.
func ParseLeaseEnd(raw []byte) (*LeaseEnd, error) {
	var out LeaseEnd
	err := parseLease(raw, &out, &out.Lease, &out.EndedAt, "endedAt")
	if err == nil && out.Reason != "released" && out.Reason != "expired" {
		err = fmt.Errorf("invalid reason %q: allowed are released and expired", out.Reason)
	}
	return &out, err
}

// parseLease reads into a record, of which the lease and the time of the field are parts.
func parseLease(raw []byte, into any, lease *Lease, at *time.Time, field string) error {
	if err := Strictly(raw, into); err != nil {
		return err
	}
	switch {
	case lease.Node == "":
		return errors.New("node is missing")
	case lease.Token < 1:
		return fmt.Errorf("token is %d: tokens start at 1", lease.Token)
	case at.IsZero():
		return errors.New(field + " is missing")
	}
	return nil
}

// Line writes a record the same way every time, so that writing it again is no change.
func Line(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	return append(raw, '\n'), err
}
