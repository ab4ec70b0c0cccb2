package observe

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"assay.dev/assay/operator/internal/lease"
)

// Authors choose the number of waiting runs and their placements, and so the time to order the queue. It must not delay other reconciles.
func TestQueue_RecomputationIsLimitedInTime(t *testing.T) {
	for sentence, tc := range map[string]struct {
		takes time.Duration
		// set is the change of the clock in the middle.
		set         time.Duration
		least, most int
	}{
		"a few runs":                        {0, 0, 235, 241},
		"a thousand runs":                   {10 * time.Millisecond, 0, 225, 241},
		"many runs of different placements": {2 * time.Second, 0, 2, 4},
		"many, and the clock is set back":   {2 * time.Second, -time.Hour, 2, 5},
	} {
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC))
		var m Memory
		step := func(by time.Duration) { clock.SetTime(clock.Now().Add(by)) }
		computed, passed := 0, time.Duration(0)
		for passes := 0; passed < time.Minute; passes++ {
			if passes == 300 {
				step(tc.set)
			}
			if m.Queue(clock, func() *lease.Queue {
				computed++
				passed += tc.takes
				step(tc.takes)
				return lease.NewQueue(nil, nil)
			}) == nil {
				t.Fatalf("%s: no queue", sentence)
			}
			passed += 10 * time.Millisecond
			step(10 * time.Millisecond)
		}
		if computed < tc.least || computed > tc.most {
			t.Errorf("%s: in a minute it is computed %d times, want %d to %d", sentence, computed, tc.least, tc.most)
		}
	}
}
