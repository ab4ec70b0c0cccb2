package report

import (
	"cmp"
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/quantity"
)

// ChangeWord is a state of a change together with its direction: what people ask first.
func ChangeWord(c *change.Change) string { return string(c.State) + " " + c.Direction() }

// ChangeSentence says a change in a sentence: by how much, in which series, and since which run. Names are those of series by their
// identity; a series without a name keeps its identity.
func ChangeSentence(c *change.Change, names map[string]string) string {
	var effects []string
	for _, e := range c.Effects {
		effects = append(effects, SeriesName(e.Series, names)+" "+Effect(e))
	}
	text := strings.Join(effects, "; ") + ", with " + ChangeRuns(c)
	if len(c.Culprits) > 0 {
		text += ", by " + strings.Join(c.Culprits, " and ")
	}
	return text
}

// ChangeRuns is the first run after a change, and of which runs it may be.
func ChangeRuns(c *change.Change) string {
	if c.From == c.To {
		return fmt.Sprintf("run %d", c.First)
	}
	return fmt.Sprintf("run %d (of runs %d to %d)", c.First, c.From, c.To)
}

// SeriesName is the name of a series by its identity.
func SeriesName(identity string, names map[string]string) string {
	return cmp.Or(names[identity], identity)
}

// Effect says how far a change moved a series. Its uncertainty is the standard error that is kept with it: how many degrees of freedom
// that has is not, so that there is no interval to give.
func Effect(e change.Effect) string {
	direction := "better"
	if e.Worse {
		direction = "worse"
	}
	moved := quantity.Short(series.Ratio(e.LogRatio), quantity.Times)
	return fmt.Sprintf("%s: %s (standard error %s)", direction, moved, quantity.Percent(e.SE, 2))
}
