package bisect

import (
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/detect"
	"assay.dev/assay/operator/internal/history/locate"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
)

// Ends is the interval of revisions that contains a change, and the series that shows it most clearly.
type Ends struct {
	Key       series.Key
	Good, Bad points.Revision
	// Inside lists the revisions measured between the ends, in the order of their points.
	Inside []points.Revision
	// Shift is the size of the change, and Between the variance between builds of the series.
	Shift, Between float64
}

// EndsOf returns the ends of a confirmed change.
func EndsOf(c *change.Change, all []*series.Series) (*Ends, error) {
	var out *Ends
	clearest := -1.0
	for _, effect := range c.Effects {
		at := slices.IndexFunc(all, func(s *series.Series) bool { return s.Key.ID() == effect.Series })
		if clear := math.Abs(effect.LogRatio) / effect.SE; at >= 0 && clear > clearest {
			if found := endsIn(c, all[at]); found != nil {
				out, clearest = found, clear
				out.Shift = effect.LogRatio
				// The confirming run measured several builds in the same blocks.
				if effect.Between > 0 {
					out.Between = min(out.Between, effect.Between)
				}
			}
		}
	}
	if out == nil {
		return nil, fmt.Errorf("change %s: no series has comparable points on both sides of runs %d to %d; name the ends explicitly",
			c.ID, c.From, c.To)
	}
	return out, nil
}

// Same returns an error if both ends are the same revision.
func (e *Ends) Same() error {
	if e.Good.Revision != e.Bad.Revision {
		return nil
	}
	return fmt.Errorf("revision %s was measured on both sides of the change, so no commit caused it", e.Good.Revision)
}

// endsIn returns the points adjacent to the dates of a change in a segment that has both.
func endsIn(c *change.Change, s *series.Series) *Ends {
	for i := range s.Segments {
		found := s.Segments[i].Points
		after := slices.IndexFunc(found, func(p series.Point) bool { return p.Sequence >= c.To })
		before := slices.IndexFunc(found, func(p series.Point) bool { return p.Sequence >= c.From }) - 1
		if after < 1 {
			continue
		}
		// If the change may be at the first point, that point is used as the lower end.
		good := max(0, before)
		out := &Ends{Key: s.Key, Good: points.RevisionOf(found[good]), Bad: points.RevisionOf(found[after]), Between: betweenBuilds(found)}
		for _, p := range found[good+1 : after] {
			out.Inside = append(out.Inside, points.RevisionOf(p))
		}
		return out
	}
	return nil
}

// betweenBuilds estimates the variance between builds from the points of a segment, or returns the rehearsals' value if there are few
// points.
func betweenBuilds(found []series.Point) float64 {
	const enough = 10
	if len(found) < enough {
		return Layout * Layout
	}
	observations := make([]detect.Observation, 0, len(found))
	for _, p := range found {
		observations = append(observations, detect.Observation{Y: p.Ratio.LogRatio, SE: p.Ratio.SE, DF: p.Ratio.DF})
	}
	return detect.BetweenAtMost(observations)
}

// BetweenBuilds estimates the variance between builds from the newest segment of a series.
func BetweenBuilds(s *series.Series) float64 {
	if s.Current() == nil {
		return Layout * Layout
	}
	return betweenBuilds(s.Current().Points)
}

// Question returns the search between the ends of a change.
func (e *Ends) Question(revisions int) locate.Question {
	out := Defaults(revisions)
	out.Shift, out.Between = e.Shift, e.Between
	return out
}
