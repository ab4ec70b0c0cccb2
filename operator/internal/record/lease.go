package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// LeaseTaken is the record in a run's ledger that the run has acquired a lease.
type LeaseTaken struct {
	Run Run `json:"run"`
	Lease
	AcquiredAt time.Time `json:"acquiredAt"`
}

// LeaseEnd is the record in a run's ledger of the end of a lease, written before another run can have the node. Trials that an unreachable
// machine ran after that may have shared the node.
type LeaseEnd struct {
	Run Run `json:"run"`
	Lease
	EndedAt time.Time `json:"endedAt"`
	// Reason is released or expired.
	Reason string `json:"reason"`
}

// Leases are a run's leases, in the order of the keys. Known is false for a ledger without records of leases: a local run's, or one written
// by hand.
type Leases struct {
	Known bool
	Taken []LeaseTaken
	Ends  []LeaseEnd
}

// ParseLeaseTaken parses the record of a lease.
func ParseLeaseTaken(raw []byte) (*LeaseTaken, error) {
	var out LeaseTaken
	return &out, parseLease(raw, &out, &out.Lease, &out.AcquiredAt, "acquiredAt")
}

// ParseLeaseEnd parses the record of a lease's end.
func ParseLeaseEnd(raw []byte) (*LeaseEnd, error) {
	var out LeaseEnd
	err := parseLease(raw, &out, &out.Lease, &out.EndedAt, "endedAt")
	if err == nil && out.Reason != "released" && out.Reason != "expired" {
		err = fmt.Errorf("invalid reason %q: allowed are released and expired", out.Reason)
	}
	return &out, err
}

// parseLease decodes a record into the value to which lease and at point; field is the name of the time in errors.
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

// Line encodes a record deterministically, so that writing it again changes nothing.
func Line(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	return append(raw, '\n'), err
}
