package main

import (
	"math/rand/v2"
	"time"
)

// Kind is one way to hurt the platform, as the schedule knows it.
type Kind struct {
	Name string
	// Least and Most bound how long the fault lasts. Both are zero for one that is over when it has happened.
	Least, Most time.Duration
	// Long keeps it out of the short suite, and so does OwnStore: it fills the store, whose volume has to be its own.
	Long, OwnStore bool
}

// Event is one fault of a schedule.
type Event struct {
	Kind string `json:"kind"`
	// After is the pause since the fault before was healed.
	After time.Duration `json:"after"`
	// Hold is how long the fault lasts.
	Hold time.Duration `json:"hold"`
	// Draw picks the victim among those that there are when the time comes.
	Draw uint64 `json:"draw"`
}

// Schedule draws a number of faults. The same seed gives the same faults: one kind after the other in a random order, and again
// in another order, so that none is missing from a schedule that is long enough, and none comes more often than others.
func Schedule(seed uint64, kinds []Kind, faults int, pause time.Duration) []Event {
	random := rand.New(rand.NewPCG(seed, 0x6173736179))
	var events []Event
	for len(events) < faults && len(kinds) > 0 {
		for _, at := range random.Perm(len(kinds)) {
			kind := kinds[at]
			event := Event{Kind: kind.Name, Hold: kind.Least, After: jitter(random, pause), Draw: random.Uint64()}
			if kind.Most > kind.Least {
				event.Hold += time.Duration(random.Int64N(int64(kind.Most - kind.Least)))
			}
			events = append(events, event)
		}
	}
	return events[:min(faults, len(events))]
}

// jitter is from half of a pause to one and a half of it.
func jitter(random *rand.Rand, pause time.Duration) time.Duration {
	if pause <= 0 {
		return 0
	}
	return pause/2 + time.Duration(random.Int64N(int64(pause)))
}
