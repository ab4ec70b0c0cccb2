package main

import (
	"reflect"
	"testing"
	"time"
)

var someKinds = []Kind{
	{Name: "at-once"}, {Name: "frozen", Least: time.Second, Most: 4 * time.Second}, {Name: "away", Least: 2 * time.Second, Most: 2 * time.Second},
}

func TestSchedule_SameSeedGivesSameFaults(t *testing.T) {
	first := Schedule(7, someKinds, 50, time.Second)
	if again := Schedule(7, someKinds, 50, time.Second); !reflect.DeepEqual(first, again) {
		t.Errorf("two schedules of one seed differ:\n%v\n%v", first, again)
	}
	if other := Schedule(8, someKinds, 50, time.Second); reflect.DeepEqual(first, other) {
		t.Error("two seeds give one schedule")
	}
	if shorter := Schedule(7, someKinds, 20, time.Second); !reflect.DeepEqual(first[:20], shorter) {
		t.Error("fewer faults are not the first of more")
	}
}

func TestSchedule_IsFairAndWithinBounds(t *testing.T) {
	for seed := range uint64(200) {
		counts := map[string]int{}
		for i, event := range Schedule(seed, someKinds, 3*len(someKinds)+1, time.Second) {
			if i < 3*len(someKinds) {
				counts[event.Kind]++
			}
			for _, kind := range someKinds {
				if kind.Name == event.Kind && (event.Hold < kind.Least || event.Hold > kind.Most) {
					t.Errorf("seed %d: %s lasts %s, and may from %s to %s", seed, event.Kind, event.Hold, kind.Least, kind.Most)
				}
			}
			if event.After < time.Second/2 || event.After >= 3*time.Second/2 {
				t.Errorf("seed %d: a pause of %s", seed, event.After)
			}
		}
		for _, kind := range someKinds {
			if counts[kind.Name] != 3 {
				t.Errorf("seed %d: %s comes %d times in three rounds", seed, kind.Name, counts[kind.Name])
			}
		}
	}
}

func TestSchedule_NoKindsGiveNoFaults(t *testing.T) {
	if got := Schedule(1, nil, 10, time.Second); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
