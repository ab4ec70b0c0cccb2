package report

import (
	"cmp"
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
)

// Names has the names of series and of the revisions of their runs. The zero value has none.
type Names struct {
	series    map[string]string
	revisions map[string]map[int64]string
}

// NamesOf reads the names from series.
func NamesOf(all []*series.Series) Names {
	out := Names{map[string]string{}, map[string]map[int64]string{}}
	for _, s := range all {
		id := s.Key.ID()
		revisions := map[int64]string{}
		for _, gap := range s.Gaps {
			revisions[gap.Sequence] = gap.Head
		}
		for _, segment := range s.Segments {
			for i := range segment.Points {
				revisions[segment.Points[i].Sequence] = segment.Points[i].Revision
			}
		}
		out.series[id], out.revisions[id] = s.Key.String(), revisions
	}
	return out
}

// Series returns the name of a series by its identity, which is returned without one.
func (n Names) Series(identity string) string { return cmp.Or(n.series[identity], identity) }

// Has reports whether a series is known.
func (n Names) Has(identity string) bool { return n.series[identity] != "" }

// Revision returns the revision of a run of a change's series; "" if no record of it is left.
func (n Names) Revision(c *change.Change, run int64) string {
	for _, e := range c.Effects {
		if revision := n.revisions[e.Series][run]; revision != "" {
			return revision
		}
	}
	return ""
}

const (
	shownDigits  = 10
	longestShown = 256
)

var commitName = regexp.MustCompile("^([0-9a-f]{40}|[0-9a-f]{64})$")

// ShortRevision shortens the name of a commit to its first digits, and any name that is too long to show.
func ShortRevision(name string) string {
	if commitName.MatchString(name) {
		return name[:shownDigits]
	}
	if len(name) > longestShown {
		return strings.ToValidUTF8(name[:longestShown], "") + "…"
	}
	return name
}
