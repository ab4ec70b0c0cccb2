package change

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

func sighting(series string, from, first, to, newest int64) Sighting {
	effect := Effect{Series: series, LogRatio: 0.02, SE: 0.003, Worse: true}
	return Sighting{Project: "search", Effect: effect, From: from, First: first, To: to, Newest: newest}
}

// states formats the states of all changes of a book for comparison.
func states(b Book) string {
	var out []string
	for _, c := range b.Changes {
		out = append(out, fmt.Sprintf("%s %d in %d..%d, %d series", c.State, c.First, c.From, c.To, len(c.Effects)))
	}
	return strings.Join(out, "; ")
}

// moved moves the first change of a book to a state.
func moved(t *testing.T, b Book, to State, person bool) Book {
	t.Helper()
	c, err := b.Changes[0].Move(Event{At: now, Who: "ada", Person: person, Why: "as measured", To: to})
	if err != nil {
		t.Fatal(err)
	}
	return b.Replace(c)
}

func TestBook_StatesAndAlertsOfAChange(t *testing.T) {
	one := sighting("time", 10, 11, 12, 12)
	for name, tt := range map[string]struct {
		steps  func(t *testing.T, b Book) Book
		states string
		alerts int
	}{
		"a suspicion sends no alert": {func(_ *testing.T, b Book) Book { return b }, "Suspected 11 in 10..12, 1 series", 0},
		"a confirmed change sends an alert": {
			func(t *testing.T, b Book) Book { return moved(t, b, Confirmed, false) }, "Confirmed 11 in 10..12, 1 series", 1,
		},
		"a refuted change sends no alert": {
			func(t *testing.T, b Book) Book { return moved(t, b, Invalid, false) }, "Invalid 11 in 10..12, 1 series", 0,
		},
		"simultaneous shifts of several series are one change": {
			func(t *testing.T, b Book) Book {
				return moved(t, b.See([]Sighting{sighting("memory", 11, 11, 14, 14), sighting("p99", 9, 12, 12, 12)}, now), Confirmed, false)
			}, "Confirmed 12 in 11..12, 3 series", 1,
		},
		"shifts of two series at different points are two changes": {
			func(_ *testing.T, b Book) Book { return b.See([]Sighting{sighting("memory", 13, 14, 15, 15)}, now) },
			"Suspected 11 in 10..12, 1 series; Suspected 14 in 13..15, 1 series", 0,
		},
		"a corrected date is the same change": {
			func(t *testing.T, b Book) Book {
				return moved(t, b, Confirmed, false).See([]Sighting{sighting("time", 12, 12, 16, 30)}, now)
			}, "Confirmed 12 in 12..12, 1 series", 1,
		},
		"a reported change sends no second alert": {
			func(t *testing.T, b Book) Book {
				_, told := moved(t, b, Confirmed, false).Alerts(now)
				return told.See([]Sighting{sighting("memory", 10, 11, 12, 40), sighting("time", 10, 10, 11, 40)}, now)
			}, "Confirmed 11 in 10..11, 2 series", 0,
		},
		"an acknowledged change sends no alert": {
			func(t *testing.T, b Book) Book {
				c, err := moved(t, b, Confirmed, false).Changes[0].Acknowledge(Event{At: now, Who: "ada", Person: true})
				if err != nil {
					t.Fatal(err)
				}
				return b.Replace(c).See([]Sighting{sighting("time", 9, 10, 12, 30)}, now)
			}, "Confirmed 10 in 10..12, 1 series", 0,
		},
		"later points do not override a person's Invalid": {
			func(t *testing.T, b Book) Book {
				return moved(t, b, Invalid, true).See([]Sighting{sighting("time", 10, 11, 12, 30)}, now)
			}, "Invalid 11 in 10..12, 1 series", 0,
		},
		"a later run may suspect a refuted change again": {
			func(t *testing.T, b Book) Book {
				return moved(t, b, Invalid, false).See([]Sighting{sighting("time", 10, 11, 12, 30)}, now)
			}, "Suspected 11 in 10..12, 1 series", 0,
		},
		"recomputation does not suspect a refuted change again": {
			func(t *testing.T, b Book) Book {
				return moved(t, b, Invalid, false).See([]Sighting{one}, now)
			}, "Invalid 11 in 10..12, 1 series", 0,
		},
		"changes of different projects are not merged": {
			func(_ *testing.T, b Book) Book {
				other := one
				other.Project = "store"
				return b.See([]Sighting{other}, now)
			}, "Suspected 11 in 10..12, 1 series; Suspected 11 in 10..12, 1 series", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := tt.steps(t, Book{}.See([]Sighting{one}, now))
			if got := states(b); got != tt.states {
				t.Errorf("%s\nwant %s", got, tt.states)
			}
			alerts, told := b.Alerts(now)
			if again, _ := told.Alerts(now.Add(time.Hour)); len(alerts) != tt.alerts || len(again) != 0 {
				t.Errorf("%d alerts, then %d", len(alerts), len(again))
			}
		})
	}
}

func TestBook_ImprovementIsAChange(t *testing.T) {
	s := sighting("time", 10, 11, 12, 12)
	s.Effect.LogRatio, s.Effect.Worse = -0.02, false
	alerts, _ := moved(t, Book{}.See([]Sighting{s}, now), Confirmed, false).Alerts(now)
	if len(alerts) != 1 || !alerts[0].Improvement {
		t.Errorf("%+v", alerts)
	}
}

// Later points, such as those of a revert, fall within the dates of a change where these are wide.
func TestBook_ConfirmedEffectIsRetained(t *testing.T) {
	book := Book{}.See([]Sighting{sighting("time", 10, 12, 16, 16)}, now)
	measured := Effect{Series: "time", LogRatio: 0.05, SE: 0.001, Between: 1e-6, Worse: true}
	c, err := book.Changes[0].Judged(Holds, []Effect{measured}, 16, Event{At: now, Who: "run-7", Why: "as measured"})
	if err != nil {
		t.Fatal(err)
	}
	undone, other := sighting("time", 14, 16, 18, 18), sighting("memory", 14, 16, 18, 18)
	undone.Effect.LogRatio, undone.Effect.Worse = -0.04, false
	book = book.Replace(c).See([]Sighting{undone, other}, now)
	want := []Effect{other.Effect, measured}
	if got := book.Changes[0]; len(book.Changes) != 1 || got.Direction() != "regression" || !slices.Equal(got.Effects, want) {
		t.Errorf("the confirmed regression is %s: %+v", got.Direction(), got)
	}
}

func TestSilence_AlertsAfterThreeMissedIntervals(t *testing.T) {
	day := 24 * time.Hour
	for name, tt := range map[string]struct {
		last time.Time
		told bool
	}{
		"a point last night":    {now.Add(-day), false},
		"two nights missed":     {now.Add(-3 * day), false},
		"three nights missed":   {now.Add(-3*day - time.Hour), true},
		"a point in the future": {now.Add(day), false},
		"no point at all":       {time.Time{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if alert := Silence("time", tt.last, day, now); (alert != nil) != tt.told {
				t.Errorf("%+v", alert)
			}
		})
	}
	// The maximum that assay changes --every accepts; three times this interval overflows a duration.
	if alert := Silence("time", now.Add(-day), 36500*day, now); alert != nil {
		t.Errorf("an interval of a century and a point last night: %+v", alert)
	}
}

func TestChange_MoveAllowsOnlyTheListedTransitions(t *testing.T) {
	all := []State{Suspected, Confirmed, Locating, Located, Fixed, Accepted, Invalid, Infrastructure}
	for _, from := range all {
		for _, to := range all {
			_, err := Change{ID: "c", State: from}.Move(Event{Who: "ada", Person: true, Why: "w", To: to})
			if allowed := slices.Contains(next[from], to); (err == nil) != allowed {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		}
	}
	for want, e := range map[string]Event{
		"cannot follow Fixed; allowed are Confirmed": {Who: "ada", Person: true, Why: "w", To: Located},
		"both are required":                          {Who: "ada", Person: true, To: Confirmed},
		"Fixed is final; only a person may revert it, and \"run\" is not a person": {Who: "run", Why: "w", To: Confirmed},
	} {
		if _, err := (Change{ID: "c", State: Fixed}).Move(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := (Change{ID: "c"}).Acknowledge(Event{}); err == nil {
		t.Error("an acknowledgement without a person was accepted")
	}
}

func TestBook_RecomputationIsIdempotent(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		var sightings []Sighting
		for range 1 + random.IntN(6) {
			first := int64(5 + random.IntN(60))
			low, high := first-int64(random.IntN(3)), first+int64(random.IntN(3))
			sightings = append(sightings, sighting(fmt.Sprint("s", random.IntN(4)), low, first, high, 70))
		}
		b := Book{}.See(sightings, now)
		shuffled := slices.Clone(sightings)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(b, Book{}.See(shuffled, now)); diff != "" {
			t.Fatalf("seed %d: the book depends on the order: %s", seed, diff)
		}
		for i := range b.Changes {
			c, err := b.Changes[i].Move(Event{At: now, Who: "run-7", Why: "as measured", To: Confirmed})
			if err != nil {
				t.Fatal(err)
			}
			b = b.Replace(c)
		}
		_, b = b.Alerts(now)
		// Recomputed dates, some of them narrower, add no change, no alert and no return to an earlier state.
		for i := range shuffled {
			if random.IntN(2) == 0 {
				shuffled[i].From, shuffled[i].To = shuffled[i].First, shuffled[i].First
			}
		}
		for range 2 {
			after := b.See(shuffled[:random.IntN(len(shuffled)+1)], now.Add(time.Hour))
			if alerts, _ := after.Alerts(now); len(alerts) > 0 && len(after.Changes) == len(b.Changes) {
				t.Fatalf("seed %d: repeated alerts: %+v", seed, alerts)
			}
			for i := range b.Changes {
				if after.Changes[i].ID != b.Changes[i].ID || after.Changes[i].State != Confirmed || after.Changes[i].Alerted == nil {
					t.Fatalf("seed %d: %+v became %+v", seed, b.Changes[i], after.Changes[i])
				}
			}
		}
	}
}

func TestConfirmation_JudgeOutcomes(t *testing.T) {
	c := Confirmation{Alpha: 0.001, Runs: 2, Searched: 100}
	for name, tt := range map[string]struct {
		suspected float64
		m         Measured
		run       int
		want      Outcome
	}{
		"a true change of 2 %":                            {0.02, Measured{0.02, 0.002, 19, 0, 1, 1}, 1, Holds},
		"a true improvement":                              {-0.02, Measured{-0.02, 0.002, 19, 0, 1, 1}, 1, Holds},
		"nothing":                                         {0.02, Measured{0.001, 0.002, 19, 0, 1, 1}, 1, Refuted},
		"a difference of the opposite sign":               {0.02, Measured{-0.02, 0.002, 19, 0, 1, 1}, 1, Refuted},
		"an uncertain difference":                         {0.02, Measured{0.006, 0.003, 19, 0, 1, 1}, 1, Undecided},
		"an uncertain difference in the last run":         {0.02, Measured{0.006, 0.003, 19, 0, 1, 1}, 2, Refuted},
		"a difference within the variance between builds": {0.02, Measured{0.01, 0.001, 19, 0.005 * 0.005, 1, 1}, 1, Undecided},
		"a difference above the variance between several builds of each side": {0.02, Measured{0.02, 0.001, 19, 0.005 * 0.005, 4, 4}, 1, Holds},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Judge(tt.suspected, tt.m, tt.run); got != tt.want {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestConfirmation_LaterRunsWantMoreRevisions(t *testing.T) {
	for name, tt := range map[string]struct {
		runs, most int
		want       []int
	}{
		"a single run has the initial number":                  {1, 6, []int{1}},
		"the last run has the maximum":                         {4, 6, []int{1, 2, 4, 6}},
		"no run exceeds the number of available revisions":     {4, 3, []int{1, 2, 3, 3}},
		"two runs have one revision, then all":                 {2, 6, []int{1, 6}},
		"one available revision of each side limits every run": {3, 1, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for run := 1; run <= tt.runs; run++ {
				got = append(got, Confirmation{Runs: tt.runs}.Wants(run, tt.most))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestConfirmation_ErrorRateIsWithinItsBound(t *testing.T) {
	const alpha, suspicions = 0.05, 4000
	c := Confirmation{Alpha: alpha, Runs: 3, Searched: 1}
	random := rand.New(rand.NewPCG(1, 1))
	wrong := 0
	for range suspicions {
		for run := 1; run <= c.Runs; run++ {
			const between = 0.003
			layouts := between * (random.NormFloat64() - random.NormFloat64())
			m := Measured{LogRatio: 0.002*random.NormFloat64() + layouts, SE: 0.002, DF: 1e6, Between: between * between, Old: 1, New: 1}
			outcome := c.Judge(0.02, m, run)
			if outcome == Holds {
				wrong++
			}
			if outcome != Undecided {
				break
			}
		}
	}
	if wrong > alpha*suspicions {
		t.Errorf("%d of %d", wrong, suspicions)
	}
}

func TestChange_SearchForCulprits(t *testing.T) {
	by := func(why string) Event { return Event{At: time.Unix(1, 0), Who: "bisect", Why: why} }
	for name, tc := range map[string]struct {
		state    State
		culprits []string
		want     State
		fails    string
	}{
		"with a culprit moves the change to Located":        {Confirmed, []string{"abc"}, Located, ""},
		"without a culprit returns the change to Confirmed": {Confirmed, nil, Confirmed, ""},
		"is not started a second time while it runs":        {Locating, []string{"abc"}, Located, ""},
		"is refused for a suspicion":                        {Suspected, nil, Suspected, "cannot follow Suspected"},
		"is refused for a change that a person closed":      {Accepted, nil, Accepted, "cannot follow Accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Change{ID: "x", State: tc.state}
			sought, err := c.Sought(by("searches 20 revisions"))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || sought.State != tc.want {
					t.Fatalf("%s, %v", sought.State, err)
				}
				return
			}
			if err != nil || sought.State != Locating {
				t.Fatalf("%s, %v", sought.State, err)
			}
			got, err := sought.Searched(tc.culprits, by("the search result"))
			if err != nil || got.State != tc.want || !slices.Equal(got.Culprits, tc.culprits) {
				t.Errorf("%+v, %v", got, err)
			}
			// A person's decision during the search has precedence.
			accepted, err := sought.Move(Event{At: time.Unix(2, 0), Who: "ada", Person: true, Why: "fine", To: Accepted})
			if err != nil {
				t.Fatal(err)
			}
			got, err = accepted.Searched(tc.culprits, by("the search result"))
			if err != nil || got.State != Accepted || !slices.Equal(got.Culprits, tc.culprits) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
