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
	At time.Time
	// Who is a person, or the run that decided; Person distinguishes them.
	Who    string
	Person bool
	Why    string
	To     State
}

// Effect of a change on one series.
type Effect struct {
	// Series is the identity of its key.
	Series string
	// LogRatio is how far its level moved, with its standard error.
	LogRatio, SE float64
	// Worse reports whether the move is for the worse: that depends on the metric.
	Worse bool
}

// Change is one cause, however many series show it.
type Change struct {
	// ID is made once, of what was known when it was first suspected, and stays.
	ID      string
	Project string
	// From and To bound the number of the first run after the change, and First is the most likely one. More data makes them narrower.
	From, First, To int64
	// Raised is the number of the newest run when it was last suspected.
	Raised  int64
	State   State
	Effects []Effect
	History []Event
	// Acknowledged is who took notice, and Alerted when people were notified; nil until then.
	Acknowledged *Event
	Alerted      *time.Time
	// Culprits are what was located, the most likely first.
	Culprits []string
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

// Regression reports whether any series is worse for it. A change that is none is an improvement.
func (c Change) Regression() bool {
	return slices.ContainsFunc(c.Effects, func(e Effect) bool { return e.Worse })
}

// decidedByPerson reports whether the state is a person's word.
func (c Change) decidedByPerson() bool {
	return len(c.History) > 0 && c.History[len(c.History)-1].Person
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
