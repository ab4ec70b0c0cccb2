package observe

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"assay.dev/assay/operator/internal/lease"
)

// How long it takes to order those who wait for nodes is what they choose, by how many they are and how differently each asks. It must not
// take the operator from everything else.
func TestQueue_RecomputationIsLimitedInTime(t *testing.T) {
	for sentence, tc := range map[string]struct {
		takes time.Duration
		// set is how the clock is set in the middle.
		set         time.Duration
		least, most int
	}{
		"a few wait":                         {0, 0, 235, 241},
		"a thousand wait":                    {10 * time.Millisecond, 0, 225, 241},
		"many ask for what nobody else does": {2 * time.Second, 0, 2, 4},
		"and somebody sets the clock back":   {2 * time.Second, -time.Hour, 2, 5},
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
				t.Fatalf("%s: there is none", sentence)
			}
			passed += 10 * time.Millisecond
			step(10 * time.Millisecond)
		}
		if computed < tc.least || computed > tc.most {
			t.Errorf("%s: in a minute it is computed %d times, want %d to %d", sentence, computed, tc.least, tc.most)
		}
	}
}
