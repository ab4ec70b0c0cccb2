// Package period reports whether a period is over, by clocks that may be set while it lasts, or that are another machine's.
package period

import "time"

// Left is what is left of a period of some length that began at a time; zero or less once it is over. A beginning that is further away
// than the length is long ends the period, in the future as in the past: the clock was set back, or is behind the one that the beginning
// was read from, and waiting for it could take any time. So a period lasts twice its length at most, whatever is done to the clock.
func Left(began time.Time, length time.Duration, now time.Time) time.Duration {
	// Differences are limited to what a Duration holds, so that the sign of one cannot be changed afterwards.
	return length - max(now.Sub(began), began.Sub(now))
}

// Over reports whether nothing is left.
func Over(began time.Time, length time.Duration, now time.Time) bool {
	return Left(began, length, now) <= 0
}
