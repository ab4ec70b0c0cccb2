package report

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/quantity"
)

// ChangeWord formats the state and the direction of a change.
func ChangeWord(c *change.Change) string { return string(c.State) + " " + c.Direction() }

// ChangeSentence describes a change by its effects and revisions.
func ChangeSentence(c *change.Change, names Names) string {
	var effects []string
	for _, e := range c.Effects {
		effects = append(effects, names.Series(e.Series)+" "+Effect(e))
	}
	text := strings.Join(effects, "; ") + ", with " + ChangeRevisions(c, names)
	if len(c.Culprits) > 0 {
		var culprits []string
		for _, name := range c.Culprits {
			culprits = append(culprits, ShortRevision(name))
		}
		text += ", by " + strings.Join(culprits, " and ")
	}
	return text
}

// ChangeRevisions formats the first revision after a change, with the range of revisions that may be the first. A revision whose record was
// removed is shown as its run.
func ChangeRevisions(c *change.Change, names Names) string {
	of := func(run int64) string {
		if revision := names.Revision(c, run); revision != "" {
			return ShortRevision(revision)
		}
		return fmt.Sprintf("run %d", run)
	}
	first := of(c.First)
	if names.Revision(c, c.First) != "" {
		first = "revision " + first
	}
	if c.From == c.To {
		return first
	}
	return fmt.Sprintf("%s (of %s to %s)", first, of(c.From), of(c.To))
}

// Effect formats the effect of a change on a series with its standard error. The record has no degrees of freedom, so there is no interval.
func Effect(e change.Effect) string {
	direction := "better"
	if e.Worse {
		direction = "worse"
	}
	moved := quantity.Short(series.Ratio(e.LogRatio), quantity.Times)
	return fmt.Sprintf("%s: %s (standard error %s)", direction, moved, quantity.Percent(e.SE, 2))
}
