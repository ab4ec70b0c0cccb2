package series

import (
	"fmt"
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
	}
	return nil
}

// Retain splits records into those that stay at a time and those that go. What a named change rests on stays, and so does every bridge:
// without one, the points behind it can no longer be compared with those before. Retaining twice takes nothing more away.
func (p Retention) Retain(records []Record, now time.Time, rests map[string]bool) (stay, gone []Record) {
	taken := map[int64]bool{}
	for _, r := range Merge(records, nil) {
		age := now.Sub(r.At)
		keep := rests[r.ID] || r.Kind == Bridge || p.Full == 0 || age <= p.Full
		if p.Full > 0 && r.Kind == Measured {
			// Spans are those of the calendar, not of now, and the first record stands for its span also when it is too old to stay: so the
			// record that stays today is the one that stays tomorrow.
			span := r.At.UnixNano() / int64(p.Every)
			keep = keep || !taken[span] && (p.Thinned == 0 || age <= p.Thinned)
			taken[span] = true
		}
		if keep {
			stay = append(stay, r)
		} else {
			gone = append(gone, r)
		}
	}
	return stay, gone
}
