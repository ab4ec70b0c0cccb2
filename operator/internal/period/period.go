// Package period computes the remaining time of a period with clocks that may be set during the period or belong to another machine.
package period

import "time"

// Left returns the time remaining of a period of the given length; zero or less once the period is over. A beginning that is further away
// than the length, in the past or in the future, ends the period. It is in the future if the clock was set back, or is behind the clock
// that the beginning was read from, and waiting for it could take any time. A period therefore lasts at most twice its length.
func Left(began time.Time, length time.Duration, now time.Time) time.Duration {
	// Sub saturates at the limits of a Duration, so the sign of each difference is right.
	return length - max(now.Sub(began), began.Sub(now))
}

// Over reports whether the period has ended.
func Over(began time.Time, length time.Duration, now time.Time) bool {
	return Left(began, length, now) <= 0
}
