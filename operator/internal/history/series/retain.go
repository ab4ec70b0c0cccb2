package series

import (
	"fmt"
	"slices"
	"time"
)

// Retention sets how long records are retained. A zero duration means forever.
type Retention struct {
	// Full is the age up to which every record is retained. Beyond it one per Every is retained up to age Thinned, and none after that.
	Full, Thinned, Every time.Duration
}

// Check returns an error if the retention contradicts itself.
func (p Retention) Check() error {
	switch {
	case p.Full < 0 || p.Thinned < 0 || p.Every < 0:
		return fmt.Errorf("retention: found full %s, thinned %s, every %s; none may be below 0", p.Full, p.Thinned, p.Every)
	case p.Full > 0 && p.Every == 0:
		return fmt.Errorf("retention: full is %s and every is 0; set every to the interval of the older records to retain, such as "+
			"168h", p.Full)
	case p.Thinned > 0 && p.Full == 0:
		return fmt.Errorf("retention: thinned is %s and full is unlimited; set full, or omit thinned", p.Thinned)
	case p.Thinned > 0 && p.Thinned < p.Full:
		return fmt.Errorf("retention: thinned is %s, which is less than full, %s", p.Thinned, p.Full)
	case p.Thinned > p.Full && p.Thinned < p.Full+p.Every:
		// If a span's first record has expired, the second one would replace it.
		return fmt.Errorf("retention: thinned is %s, and no whole span of %s lies between full, %s, and thinned; set thinned to %s or "+
			"more, "+
			"or to full", p.Thinned, p.Every, p.Full, p.Full+p.Every)
	}
	return nil
}

// Retain splits records into retained and expired ones. Records that a change refers to are retained, and so is every bridge, since
// otherwise the points behind it could not be compared with earlier ones. Records that the next run requires are retained at any age.
// Retain is idempotent. All records of one run are treated alike, because the selection of its valid analysis must not change.
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
		case Bridge, Unpaired: // The time of an imported value may be unknown.
			keep[r.ID] = true
		case Measured:
			// Spans are aligned to the calendar instead of now, and the first record represents its span even if it has expired, so that
			// the same record is retained every day.
			at := span{r.Schedule, r.At.UnixNano() / int64(p.Every)}
			if !taken[at] && (p.Thinned == 0 || now.Sub(r.At) <= p.Thinned) {
				keep[r.ID] = true
			}
			taken[at] = true
		case Gap: // Gaps never count.
		}
	}
	for i, r := range all {
		// If no record is usable, the last one is retained as proof that the series exists.
		if keep[r.ID] || rests[r.ID] || i == len(all)-1 && len(counted) == 0 {
			stay = append(stay, r)
		} else {
			gone = append(gone, r)
		}
	}
	return stay, gone
}

// takenUp returns the IDs of the records that the next run requires: the first one, which determines the schedule of the series, the one
// with the highest number, the newest point, which is the predecessor, and the newest one that has the image of the anchor.
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
