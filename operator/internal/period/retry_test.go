package period

import (
	"testing"
	"time"
)

// An operation that fails for a day is retried a bounded number of times, also if the clock is set meanwhile.
func TestRetry_BackoffDoubles(t *testing.T) {
	for sentence, tc := range map[string]struct {
		// at sets the clock to another time after some minutes.
		at   map[int]time.Duration
		want int
	}{
		"the clock is not set":        {nil, 7 + (24*60-63)/60 + 1},
		"it is set ahead by a day":    {map[int]time.Duration{90: 24 * time.Hour}, 31},
		"it is set back by ten years": {map[int]time.Duration{90: -10 * 365 * 24 * time.Hour}, 31},
	} {
		now, tries := eight, 0
		var r Retry
		for minute := range 24 * 60 {
			now = now.Add(time.Minute + tc.at[minute])
			if r.Due(now) {
				tries++
				r = r.Failed(now, time.Minute, time.Hour)
			}
		}
		if tries < tc.want-1 || tries > tc.want+1 {
			t.Errorf("%s: %d tries in a day, want some %d", sentence, tries, tc.want)
		}
	}
	if !(Retry{}).Due(eight) {
		t.Error("an operation that never failed waits")
	}
}
