package series

import (
	"fmt"
	"slices"
	"time"
)

// Retention sets how long records stay. A zero duration has no end.
type Retention struct {
	// Full is how long every record stays, then one of every Every does, and after Thinned none.
	Full, Thinned, Every time.Duration
}

// Check reports what a retention contradicts itself in.
func (p Retention) Check() error {
	switch {
	case p.Full < 0 || p.Thinned < 0 || p.Every < 0:
		return fmt.Errorf("retention: found full %s, thinned %s, every %s; none may be below 0", p.Full, p.Thinned, p.Every)
	case p.Full > 0 && p.Every == 0:
		return fmt.Errorf("retention: full is %s and every is 0: say which one of the older records stays, such as one of every 168h", p.Full)
	case p.Thinned > 0 && p.Full == 0:
		return fmt.Errorf("retention: thinned is %s and full has no end: set full, or leave thinned out", p.Thinned)
	case p.Thinned > 0 && p.Thinned < p.Full:
		return fmt.Errorf("retention: thinned is %s, less than full, %s", p.Thinned, p.Full)
	case p.Thinned > p.Full && p.Thinned < p.Full+p.Every:
		// Of a span whose first record has gone, the second would take its place.
		return fmt.Errorf("retention: thinned is %s, and no whole span of %s lies between full, %s, and that: set thinned to %s or more, "+
			"or to full", p.Thinned, p.Every, p.Full, p.Full+p.Every)
	}
	return nil
}

// Retain splits records into those that stay at a time and those that go. What a named change rests on stays, and so does every bridge:
// without one, the points behind it can no longer be compared with those before. What the next run takes up stays too, however old it is.
// Retaining twice takes nothing more away. All records of one run stay or go together: which of its analyses counts must not change.
func (p Retention) Retain(records []Record, now time.Time, rests map[string]bool) (stay, gone []Record) {
	all := Merge(records, nil)
	if p.Full == 0 || len(all) == 0 {
		return all, nil
	}
	s := &Series{}
	counted := s.distinct(all)
	keep := s.takenUp(slices.Clone(counted))
	for _, r := range all {
		if now.Sub(r.At) <= p.Full {
			keep[r.ID] = true
		}
	}
	type span struct {
		schedule string
		number   int64
	}
	taken := map[span]bool{}
	for _, r := range counted {
		switch r.Kind {
		case Bridge:
			keep[r.ID] = true
		case Measured:
			// Spans are those of the calendar, not of now, and the first record stands for its span also when it is too old to stay: so the
			// record that stays today is the one that stays tomorrow.
			at := span{r.Schedule, r.At.UnixNano() / int64(p.Every)}
			if !taken[at] && (p.Thinned == 0 || now.Sub(r.At) <= p.Thinned) {
				keep[r.ID] = true
			}
			taken[at] = true
		case Gap: // Never counted.
		}
	}
	for i, r := range all {
		// Of records that nobody can use the last one says that there is a series.
		if keep[r.ID] || rests[r.ID] || i == len(all)-1 && len(counted) == 0 {
			stay = append(stay, r)
		} else {
			gone = append(gone, r)
		}
	}
	return stay, gone
}

// takenUp are the identities of the records that the next run takes up: the first one, which says whose series it is, the one with the
// highest number, the newest point, which is the predecessor, and the newest one that has the image of the anchor.
func (s *Series) takenUp(counted []Record) map[string]bool {
	out := map[string]bool{}
	if len(counted) == 0 {
		return out
	}
	out[begins(counted).ID] = true
	counted = s.build(s.ofOneSchedule(counted))
	out[counted[len(counted)-1].ID] = true
	if newest := s.Newest(); newest != nil {
		out[newest.ID] = true
	}
	for _, r := range slices.Backward(counted) {
		if r.Kind != Gap && r.Head == s.Anchor && r.Image != "" {
			out[r.ID] = true
			break
		}
	}
	return out
}
