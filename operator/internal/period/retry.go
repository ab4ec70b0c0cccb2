package period

import "time"

// Retry is when something is tried again that failed for a reason that seldom passes by itself: each time after twice as long. The zero
// value has not failed yet.
type Retry struct {
	failed time.Time
	wait   time.Duration
}

// Due reports whether it is time to try.
func (r Retry) Due(now time.Time) bool { return r.wait == 0 || Over(r.failed, r.wait, now) }

// Failed is what follows a try that failed; it waits between first and most.
func (r Retry) Failed(now time.Time, first, most time.Duration) Retry {
	return Retry{now, min(max(2*r.wait, first), most)}
}
