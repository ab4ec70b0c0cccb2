package period

import (
	"math/rand/v2"
	"testing"
	"time"
)

var eight = time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)

func TestLeft_OfAMinute(t *testing.T) {
	for sentence, tc := range map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"it begins":                            {eight, time.Minute},
		"it has lasted for a while":            {eight.Add(40 * time.Second), 20 * time.Second},
		"it ends":                              {eight.Add(time.Minute), 0},
		"it is over":                           {eight.Add(time.Hour), -59 * time.Minute},
		"the clock was set back by a little":   {eight.Add(-10 * time.Second), 50 * time.Second},
		"the clock was set back by its length": {eight.Add(-time.Minute), 0},
		"the clock was set back by years":      {eight.AddDate(-3, 0, 0), time.Minute - eight.Sub(eight.AddDate(-3, 0, 0))},
	} {
		if got := Left(eight, time.Minute, tc.now); got != tc.want || Over(eight, time.Minute, tc.now) != (tc.want <= 0) {
			t.Errorf("%s: %s is left, want %s", sentence, got, tc.want)
		}
	}
	if !Over(time.Time{}, time.Hour, eight) || !Over(eight, time.Hour, time.Time{}) {
		t.Error("a period that began at no time is not over")
	}
}

// Polling after the remaining time finds the period over within twice its length, for any setting of the clock at its beginning.
func TestPeriod_EndsDespiteClockSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		const length = time.Minute
		began := eight.Add(time.Duration(random.Int64N(int64(48*time.Hour))) - 24*time.Hour)
		if random.IntN(2) == 0 {
			began = eight.Add(time.Duration(random.Int64N(int64(2*length))) - length)
		}
		now, looks := eight, 0
		for !Over(began, length, now) {
			now = now.Add(Left(began, length, now))
			if looks++; looks > 100 || now.Sub(eight) > 2*length {
				t.Fatalf("a minute that began at %s is not over at %s", began, now)
			}
		}
	}
}
