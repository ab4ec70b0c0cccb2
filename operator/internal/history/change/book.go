package change

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Sighting is a detector's result for one series. Dates are sequence numbers of the schedule's runs.
type Sighting struct {
	Project string
	Effect  Effect
	// From, First and To date the change, and Newest is the newest run in the data.
	From, First, To, Newest int64
}

// Book holds the changes of a project.
type Book struct {
	Changes []Change `json:"changes"`
}

// longestID is the maximum length of a change's name in a status and in metrics.
const longestID = 64

// Check rejects a change whose dates are not in order, because no points could lie on both sides of it, and a negative number of runs.
func (b Book) Check() error {
	for i := range b.Changes {
		switch c := &b.Changes[i]; {
		case len(c.ID) > longestID:
			return fmt.Errorf("changes[%d]: id: found %d bytes; at most %d are allowed", i, len(c.ID), longestID)
		case c.From > c.To:
			return fmt.Errorf("change %q: from is run %d and to is run %d; from may not exceed to", c.ID, c.From, c.To)
		case c.Runs < 0:
			return fmt.Errorf("change %q: runs: found %d; 0 or more are allowed", c.ID, c.Runs)
		}
	}
	return nil
}

// See adds sightings. A sighting whose dates overlap with those of a change belongs to that change, so that it retains its identity, state
// and acknowledgement when more data changes its dates, and several series that move together are one change. The order of sightings is
// irrelevant, and repeating one is a no-op.
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

// match returns the index of the change that a sighting belongs to. If several overlap, the nearest date wins.
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

// seen adds a sighting to a change.
func (c Change) seen(s Sighting, at time.Time) Change {
	c.Effects = slices.Clone(c.Effects)
	switch i := slices.IndexFunc(c.Effects, func(e Effect) bool { return e.Series == s.Effect.Series }); {
	case i < 0:
		c.Effects = append(c.Effects, s.Effect)
	case !c.Known(): // The estimate of a confirming run is more precise than that of points.
		c.Effects[i] = s.Effect
	}
	slices.SortFunc(c.Effects, func(a, b Effect) int { return cmp.Compare(a.Series, b.Series) })
	// Use the intersection, so that a chain of overlapping sightings does not widen the interval.
	c.From, c.To = max(c.From, s.From), min(c.To, s.To)
	c.First = min(max(s.First, c.From), c.To)
	// A refuted change is suspected again if there is newer data. A person's decision is not overridden.
	if c.State == Invalid && s.Newest > c.Raised && !c.decidedByPerson() {
		c.State, c.Raised = Suspected, s.Newest
		again := Event{At: at, Who: "detector", Why: "the level of " + s.Effect.Series + " moved again", To: Suspected}
		c.History = append(slices.Clone(c.History), again)
	}
	return c
}

// Replace replaces the change with the same identity.
func (b Book) Replace(c Change) Book {
	out := Book{slices.Clone(b.Changes)}
	for i := range out.Changes {
		if out.Changes[i].ID == c.ID {
			out.Changes[i] = c
		}
	}
	return out
}

// Alert is a notification.
type Alert struct {
	// Change is the identity; empty for a series without recent points.
	Change string
	Series []string
	// Improvement marks an alert about an improvement instead of a regression.
	Improvement bool
	// Why describes size and direction of the change and the run that found it, as text.
	Why string `json:"-"`
	// Since is the time of the last point of a series without recent points.
	Since time.Time
}

// Pending returns the due alerts. Only confirmed changes without an acknowledgement are alerted.
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

// MarkSent returns the book with these alerts marked as sent. Callers send idempotently before they store the book, so that no alert is
// lost on a crash.
func (b Book) MarkSent(alerts []Alert, at time.Time) Book {
	out := Book{slices.Clone(b.Changes)}
	for i := range out.Changes {
		c := &out.Changes[i]
		if c.Alerted == nil && slices.ContainsFunc(alerts, func(a Alert) bool { return a.Change == c.ID }) {
			c.Alerted = &at
		}
	}
	return out
}

// Alerts returns the due alerts, and the book in which they are marked as sent.
func (b Book) Alerts(at time.Time) ([]Alert, Book) {
	due := b.Pending()
	return due, b.MarkSent(due, at)
}

// Silence returns an alert if a series has had no point for three times its interval, otherwise nil. A last point in the future, caused by
// clock skew, raises no alert.
func Silence(series string, last time.Time, every time.Duration, now time.Time) *Alert {
	const missed = 3
	if every > math.MaxInt64/missed || now.Sub(last) <= missed*every {
		return nil
	}
	return &Alert{Series: []string{series}, Since: last}
}
