package change

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Sighting is what a detector says of one series, in numbers of the schedule's runs.
type Sighting struct {
	Project string
	Effect  Effect
	// From, First and To are the dates, and Newest is the newest run that it was seen with.
	From, First, To, Newest int64
}

// Book holds the changes of a project.
type Book struct {
	Changes []Change `json:"changes"`
}

// longestID is what the name of a change has room for, in a status and in metrics.
const longestID = 64

// Check reports a change whose dates are in no order: whoever looks for the points on both sides of it finds none between them. Nor is
// there one that fewer than no runs tried.
func (b Book) Check() error {
	for i := range b.Changes {
		switch c := &b.Changes[i]; {
		case len(c.ID) > longestID:
			return fmt.Errorf("changes[%d]: id: found %d bytes; at most %d are allowed", i, len(c.ID), longestID)
		case c.From > c.To:
			return fmt.Errorf("change %q: found it after run %d and by run %d; the first one is not above the second", c.ID, c.From, c.To)
		case c.Runs < 0:
			return fmt.Errorf("change %q: runs: found %d; 0 or more are allowed", c.ID, c.Runs)
		}
	}
	return nil
}

// See adds what was seen. A sighting whose dates overlap with those of a change is of that change: so it keeps its identity, state and
// acknowledgement when more data dates it anew, and several series that move at once are one change. The order of sightings does
// not matter, and seeing the same again changes nothing.
func (b Book) See(sightings []Sighting, at time.Time) Book {
	out := Book{slices.Clone(b.Changes)}
	sorted := slices.Clone(sightings)
	slices.SortFunc(sorted, func(x, y Sighting) int {
		return cmp.Or(cmp.Compare(x.Project, y.Project), cmp.Compare(x.First, y.First), cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To),
			cmp.Compare(x.Newest, y.Newest), cmp.Compare(x.Effect.Series, y.Effect.Series), cmp.Compare(x.Effect.LogRatio, y.Effect.LogRatio))
	})
	for _, s := range sorted {
		if i := out.match(s); i >= 0 {
			out.Changes[i] = out.Changes[i].seen(s, at)
		} else {
			out.Changes = append(out.Changes, suspected(s, at))
		}
	}
	return out
}

// match is the change that a sighting is of: of those it overlaps with, the one whose date is nearest.
func (b Book) match(s Sighting) int {
	best := -1
	for i := range b.Changes {
		c := &b.Changes[i]
		if c.Project != s.Project || s.From > c.To || s.To < c.From {
			continue
		}
		if best < 0 || distance(c.First, s.First) < distance(b.Changes[best].First, s.First) {
			best = i
		}
	}
	return best
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

func suspected(s Sighting, at time.Time) Change {
	return Change{
		ID: identity(s), Project: s.Project, From: s.From, First: s.First, To: s.To, Raised: s.Newest, State: Suspected,
		Effects: []Effect{s.Effect},
		History: []Event{{At: at, Who: "detector", Why: "the level of " + s.Effect.Series + " moved", To: Suspected}},
	}
}

// seen is a change with one more sighting.
func (c Change) seen(s Sighting, at time.Time) Change {
	c.Effects = slices.Clone(c.Effects)
	switch i := slices.IndexFunc(c.Effects, func(e Effect) bool { return e.Series == s.Effect.Series }); {
	case i < 0:
		c.Effects = append(c.Effects, s.Effect)
	case !c.Known(): // What a confirming run measured says more than points do.
		c.Effects[i] = s.Effect
	}
	slices.SortFunc(c.Effects, func(a, b Effect) int { return cmp.Compare(a.Series, b.Series) })
	// What all sightings agree on: a chain of overlaps does not grow.
	c.From, c.To = max(c.From, s.From), min(c.To, s.To)
	c.First = min(max(s.First, c.From), c.To)
	// A run refuted it, and a later one suspects again. A person's word stands.
	if c.State == Invalid && s.Newest > c.Raised && !c.decidedByPerson() {
		c.State, c.Raised = Suspected, s.Newest
		again := Event{At: at, Who: "detector", Why: "the level of " + s.Effect.Series + " moved again", To: Suspected}
		c.History = append(slices.Clone(c.History), again)
	}
	return c
}

// Replace puts a change in the place of the one with its identity.
func (b Book) Replace(c Change) Book {
	out := Book{slices.Clone(b.Changes)}
	for i := range out.Changes {
		if out.Changes[i].ID == c.ID {
			out.Changes[i] = c
		}
	}
	return out
}

// Alert is what people are notified of.
type Alert struct {
	// Change is its identity; empty for a series that fell silent.
	Change string
	Series []string
	// Improvement is alerted like a regression, and is none.
	Improvement bool
	// Why is what moved, by how much, and in which run that was found: for people alone.
	Why string `json:"-"`
	// Since is when a series that fell silent had its last point.
	Since time.Time
}

// Pending are the alerts that are due: a change is alerted once it is confirmed, and a suspicion never. One that somebody has acknowledged
// needs none.
func (b Book) Pending() []Alert {
	var out []Alert
	for i := range b.Changes {
		c := &b.Changes[i]
		if !c.Open() || c.Alerted != nil {
			continue
		}
		alert := Alert{Change: c.ID, Improvement: !c.Regression(), Why: c.Last().Why}
		for _, e := range c.Effects {
			alert.Series = append(alert.Series, e.Series)
		}
		out = append(out, alert)
	}
	return out
}

// Told is the book in which these alerts were given. Whoever gives an alert in a way that can be repeated does so before that: then none is
// lost, whenever they are interrupted.
func (b Book) Told(alerts []Alert, at time.Time) Book {
	out := Book{slices.Clone(b.Changes)}
	for i := range out.Changes {
		c := &out.Changes[i]
		if c.Alerted == nil && slices.ContainsFunc(alerts, func(a Alert) bool { return a.Change == c.ID }) {
			c.Alerted = &at
		}
	}
	return out
}

// Alerts are those that are due, and the book in which they were given.
func (b Book) Alerts(at time.Time) ([]Alert, Book) {
	due := b.Pending()
	return due, b.Told(due, at)
}

// Silence is the alert of a series that should have a point every so often and has had none for three times as long; nil while it has.
// A clock that says that the last point is yet to come is no reason.
func Silence(series string, last time.Time, every time.Duration, now time.Time) *Alert {
	const missed = 3
	if every > math.MaxInt64/missed || now.Sub(last) <= missed*every {
		return nil
	}
	return &Alert{Series: []string{series}, Since: last}
}
