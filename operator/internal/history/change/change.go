// Package change is the life of a change: a suspicion that asks for a confirming run, a change that people hear of once, and what they
// decided about it. Nothing here measures, waits or sends; it says what is to be done.
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

// States. The last four are ends.
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

// States are all of them, in the order of a change's life.
var States = []State{Suspected, Confirmed, Locating, Located, Fixed, Accepted, Invalid, Infrastructure}

// next are the states that may follow. An end may be taken back, by a person.
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

// Ended reports whether nothing more is done about a change in this state.
func (s State) Ended() bool {
	return s == Fixed || s == Accepted || s == Invalid || s == Infrastructure
}

// Event is something that happened to a change.
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
	// Series is the identity of its key.
	Series string `json:"series"`
	// LogRatio is how far its level moved, with its standard error.
	LogRatio float64 `json:"logRatio"`
	SE       float64 `json:"se"`
	// Between is the variance between builds that a confirming run was judged with; 0 where none was.
	Between float64 `json:"between,omitempty"`
	// Worse reports whether the move is for the worse: that depends on the metric.
	Worse bool `json:"worse"`
}

// Change is one cause, however many series show it.
type Change struct {
	// ID is made once, of what was known when it was first suspected, and stays.
	ID      string `json:"id"`
	Project string `json:"project"`
	// From and To bound the number of the first run after the change, and First is the most likely one. More data makes them narrower.
	From  int64 `json:"from"`
	First int64 `json:"first"`
	To    int64 `json:"to"`
	// Raised is the number of the newest run when it was last suspected.
	Raised int64 `json:"raised"`
	// Runs is how many confirming runs of this suspicion decided nothing, and Tried the number of the newest run at the last of them.
	Runs  int   `json:"runs,omitempty"`
	Tried int64 `json:"tried,omitempty"`
	// Refuted is the number of the newest run when a confirming run refuted the suspicion: what lies before is not looked at again.
	Refuted int64    `json:"refuted,omitempty"`
	State   State    `json:"state"`
	Effects []Effect `json:"effects"`
	History []Event  `json:"history"`
	// Acknowledged is who took notice, and Alerted when people were notified; nil until then.
	Acknowledged *Event     `json:"acknowledged,omitempty"`
	Alerted      *time.Time `json:"alerted,omitempty"`
	// Culprits are what was located, the most likely first.
	Culprits []string `json:"culprits,omitempty"`
}

// Move takes a change to another state, and says who did and why.
func (c Change) Move(e Event) (Change, error) {
	allowed := next[c.State]
	switch {
	case !slices.Contains(allowed, e.To):
		return c, fmt.Errorf("change %s: state: found %q, which cannot follow %s; allowed are %s", c.ID, e.To, c.State, names(allowed))
	case e.Who == "" || e.Why == "":
		return c, fmt.Errorf("change %s: who %q and why %q: both are kept with a change, name them", c.ID, e.Who, e.Why)
	case c.State.Ended() && e.To == Confirmed && !e.Person:
		return c, fmt.Errorf("change %s: state: %s is an end, which only a person takes back; %q is none", c.ID, c.State, e.Who)
	}
	c.State, c.History = e.To, append(slices.Clone(c.History), e)
	return c, nil
}

// Judged is a suspicion after a confirming run, of a series whose newest run had this number. Effects that the run measured are now what it
// measured.
func (c Change) Judged(outcome Outcome, measured []Effect, newest int64, e Event) (Change, error) {
	if c.State != Suspected {
		return c, fmt.Errorf("change %s: state: found %q; a confirming run decides about a suspicion only, and somebody decided before it", c.ID,
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

// Sought is a change that is being searched for its culprits. One that is so already stays as it is.
func (c Change) Sought(e Event) (Change, error) {
	if c.State == Locating {
		return c, nil
	}
	e.To = Locating
	return c.Move(e)
}

// Searched is a change after that search: with culprits it is Located, without any it is Confirmed as before. What a person decided
// meanwhile stands, and the culprits are kept with it all the same.
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

// Fade takes a series out of a suspicion that it gives no reason for any more. A suspicion that no series gives reason for is over: nothing
// was measured against it, so that it may be suspected again.
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

// Known reports whether the level of its series moved, as far as is known: a suspicion has shown nothing yet, and a run that refuted one
// has shown that it did not. What a person calls Invalid moved, for a reason that is of no interest.
func (c Change) Known() bool {
	return c.State != Suspected && (c.State != Invalid || c.decidedByPerson())
}

// Concerns reports whether a series is among those that it moved.
func (c Change) Concerns(series string) bool {
	return slices.ContainsFunc(c.Effects, func(e Effect) bool { return e.Series == series })
}

// Acknowledge records that somebody took notice. It stays, whatever is computed later.
func (c Change) Acknowledge(e Event) (Change, error) {
	if e.Who == "" {
		return c, fmt.Errorf("change %s: who is empty: an acknowledgement names a person", c.ID)
	}
	if c.Acknowledged == nil {
		c.Acknowledged = &e
	}
	return c, nil
}

// Open reports whether a change waits for somebody: it was confirmed, and nobody has taken notice of it or decided.
func (c Change) Open() bool {
	return c.State != Suspected && !c.State.Ended() && c.Acknowledged == nil
}

// Regression reports whether any series is worse for it. A change that is none is an improvement.
func (c Change) Regression() bool {
	return slices.ContainsFunc(c.Effects, func(e Effect) bool { return e.Worse })
}

// Direction is what people call it.
func (c Change) Direction() string {
	if c.Regression() {
		return "regression"
	}
	return "improvement"
}

// Last is its newest event; none where whoever wrote the book left all out.
func (c Change) Last() Event {
	if len(c.History) == 0 {
		return Event{}
	}
	return c.History[len(c.History)-1]
}

// decidedByPerson reports whether the state is a person's word.
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

// identity of a change that is suspected for the first time.
func identity(s Sighting) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d:%s,%s,%d,%d", len(s.Project), s.Project, s.Effect.Series, s.Newest, s.First)))
	return hex.EncodeToString(sum[:6])
}
