// Package change implements the life cycle of a change: a suspicion that requires a confirming run, a confirmed change that is alerted
// once, and the decisions of people about it. The package is pure and returns the actions to take.
package change

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State of a change.
type State string

// States. The last four are final.
const (
	Suspected      State = "Suspected"
	Confirmed      State = "Confirmed"
	Locating       State = "Locating"
	Located        State = "Located"
	Fixed          State = "Fixed"
	Accepted       State = "Accepted"
	Invalid        State = "Invalid"
	Infrastructure State = "Infrastructure"
)

// States lists all states in the order of a change's life cycle.
var States = []State{Suspected, Confirmed, Locating, Located, Fixed, Accepted, Invalid, Infrastructure}

// next lists the allowed transitions. A person may revert a final state.
var next = map[State][]State{
	Suspected:      {Confirmed, Invalid},
	Confirmed:      {Locating, Located, Fixed, Accepted, Invalid, Infrastructure},
	Locating:       {Confirmed, Located, Fixed, Accepted, Invalid, Infrastructure},
	Located:        {Fixed, Accepted, Invalid, Infrastructure},
	Fixed:          {Confirmed},
	Accepted:       {Confirmed},
	Invalid:        {Confirmed, Suspected},
	Infrastructure: {Confirmed},
}

// Ended reports whether the state is final.
func (s State) Ended() bool {
	return s == Fixed || s == Accepted || s == Invalid || s == Infrastructure
}

// Event is an entry in the history of a change.
type Event struct {
	At time.Time `json:"at"`
	// Who is a person, or the run that decided; Person distinguishes them.
	Who    string `json:"who"`
	Person bool   `json:"person,omitempty"`
	Why    string `json:"why,omitempty"`
	To     State  `json:"to,omitempty"`
}

// Effect of a change on one series.
type Effect struct {
	// Series is the identity of the series' key.
	Series string `json:"series"`
	// LogRatio is the shift of the level, with its standard error.
	LogRatio float64 `json:"logRatio"`
	SE       float64 `json:"se"`
	// Between is the variance between builds that was used for a confirming run; 0 without one.
	Between float64 `json:"between,omitempty"`
	// Worse reports whether the shift is a regression, which depends on the metric.
	Worse bool `json:"worse"`
}

// Change is one cause. Several series may show it.
type Change struct {
	// ID is derived from the first suspicion and never changes.
	ID      string `json:"id"`
	Project string `json:"project"`
	// From and To bound the number of the first run after the change, and First is the most likely one. More data narrows the interval.
	From  int64 `json:"from"`
	First int64 `json:"first"`
	To    int64 `json:"to"`
	// Raised is the number of the newest run at the latest suspicion.
	Raised int64 `json:"raised"`
	// Runs counts the undecided confirming runs of this suspicion, and Tried is the number of the newest run at the last of them.
	Runs  int   `json:"runs,omitempty"`
	Tried int64 `json:"tried,omitempty"`
	// Refuted is the number of the newest run when a confirming run refuted the suspicion. Earlier points are not searched again.
	Refuted int64    `json:"refuted,omitempty"`
	State   State    `json:"state"`
	Effects []Effect `json:"effects"`
	History []Event  `json:"history"`
	// Acknowledged is the acknowledgement, and Alerted the time of the notification; nil before that.
	Acknowledged *Event     `json:"acknowledged,omitempty"`
	Alerted      *time.Time `json:"alerted,omitempty"`
	// Culprits are the located revisions, most likely first.
	Culprits []string `json:"culprits,omitempty"`
}

// Move changes the state, and records author and reason.
func (c Change) Move(e Event) (Change, error) {
	allowed := next[c.State]
	switch {
	case !slices.Contains(allowed, e.To):
		return c, fmt.Errorf("change %s: state: found %q, which cannot follow %s; allowed are %s", c.ID, e.To, c.State, names(allowed))
	case e.Who == "" || e.Why == "":
		return c, fmt.Errorf("change %s: who is %q and why is %q; both are required", c.ID, e.Who, e.Why)
	case c.State.Ended() && e.To == Confirmed && !e.Person:
		return c, fmt.Errorf("change %s: state: %s is final; only a person may revert it, and %q is not a person", c.ID, c.State, e.Who)
	}
	c.State, c.History = e.To, append(slices.Clone(c.History), e)
	return c, nil
}

// Judged applies the outcome of a confirming run of a series whose newest run has the given number. Measured effects replace those of the
// detector.
func (c Change) Judged(outcome Outcome, measured []Effect, newest int64, e Event) (Change, error) {
	if c.State != Suspected {
		return c, fmt.Errorf("change %s: state: found %q; a confirming run applies to a suspicion only, and this one was decided "+
			"before", c.ID,
			c.State)
	}
	switch outcome {
	case Holds:
		e.To = Confirmed
	case Refuted:
		e.To = Invalid
	case Undecided:
		c.Runs, c.Tried = c.Runs+1, newest
		e.To = Suspected
		c.History = append(slices.Clone(c.History), e)
		return c, nil
	}
	out, err := c.Move(e)
	if err != nil {
		return c, err
	}
	if out.Runs = 0; outcome == Refuted {
		out.Refuted = newest
		return out, nil
	}
	out.Effects = slices.Clone(measured)
	return out, nil
}

// Sought moves a change to Locating. It is a no-op if the change is in that state already.
func (c Change) Sought(e Event) (Change, error) {
	if c.State == Locating {
		return c, nil
	}
	e.To = Locating
	return c.Move(e)
}

// Searched applies the result of the search. With culprits the change is Located, without any it returns to Confirmed. A decision that a
// person made meanwhile is retained, and the culprits are stored with it.
func (c Change) Searched(culprits []string, e Event) (Change, error) {
	if len(culprits) > 0 {
		c.Culprits = slices.Clone(culprits)
	}
	if c.State != Locating {
		return c, nil
	}
	if e.To = Located; len(culprits) == 0 {
		e.To = Confirmed
	}
	return c.Move(e)
}

// Fade removes a series that no longer supports a suspicion. A suspicion without any series ends. It can be raised again, because it was
// not refuted by a measurement.
func (c Change) Fade(series, why string, at time.Time) (Change, error) {
	if c.State != Suspected {
		return c, nil
	}
	left := slices.DeleteFunc(slices.Clone(c.Effects), func(e Effect) bool { return e.Series == series })
	if len(left) > 0 {
		c.Effects = left
		return c, nil
	}
	c.Runs = 0
	return c.Move(Event{At: at, Who: "detector", Why: why, To: Invalid})
}

// Known reports whether the shift of the level is established. It is false for suspicions and for refuted ones. It is true for changes
// that a person marked Invalid, because the level did shift.
func (c Change) Known() bool {
	return c.State != Suspected && (c.State != Invalid || c.decidedByPerson())
}

// Concerns reports whether the change affects a series.
func (c Change) Concerns(series string) bool {
	return slices.ContainsFunc(c.Effects, func(e Effect) bool { return e.Series == series })
}

// Acknowledge records an acknowledgement, which later computations retain.
func (c Change) Acknowledge(e Event) (Change, error) {
	if e.Who == "" {
		return c, fmt.Errorf("change %s: who is empty; an acknowledgement must name a person", c.ID)
	}
	if c.Acknowledged == nil {
		c.Acknowledged = &e
	}
	return c, nil
}

// Open reports whether a change awaits a person: it is confirmed, but neither acknowledged nor decided.
func (c Change) Open() bool {
	return c.State != Suspected && !c.State.Ended() && c.Acknowledged == nil
}

// Regression reports whether any series regressed. Otherwise the change is an improvement.
func (c Change) Regression() bool {
	return slices.ContainsFunc(c.Effects, func(e Effect) bool { return e.Worse })
}

// Direction returns "regression" or "improvement" as text.
func (c Change) Direction() string {
	if c.Regression() {
		return "regression"
	}
	return "improvement"
}

// Last returns the newest event, or the zero value if the book has no events.
func (c Change) Last() Event {
	if len(c.History) == 0 {
		return Event{}
	}
	return c.History[len(c.History)-1]
}

// Latest returns the newest event, the acknowledgement included.
func (c Change) Latest() Event {
	if last := c.Last(); c.Acknowledged == nil || !c.Acknowledged.At.After(last.At) {
		return last
	}
	return *c.Acknowledged
}

// decidedByPerson reports whether a person set the present state.
func (c Change) decidedByPerson() bool {
	return c.Last().Person
}

func names(states []State) string {
	var out []string
	for _, s := range states {
		out = append(out, string(s))
	}
	return strings.Join(out, ", ")
}

// identity derives the ID of a change from its first suspicion.
func identity(s Sighting) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d:%s,%s,%d,%d", len(s.Project), s.Project, s.Effect.Series, s.Newest, s.First)))
	return hex.EncodeToString(sum[:6])
}
