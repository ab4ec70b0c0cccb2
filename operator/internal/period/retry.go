package period

import "time"

// Retry is an exponential backoff for an operation that fails for a reason that seldom passes without intervention. The zero value has not
// failed yet.
type Retry struct {
	failed time.Time
	wait   time.Duration
}

// Due reports whether the backoff has ended.
func (r Retry) Due(now time.Time) bool { return r.wait == 0 || Over(r.failed, r.wait, now) }

// Failed returns the backoff after another failure. Each wait is twice the one before, and is limited to the range from first to most.
func (r Retry) Failed(now time.Time, first, most time.Duration) Retry {
	return Retry{now, min(max(2*r.wait, first), most)}
}
