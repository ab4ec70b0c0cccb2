package report

import (
	"cmp"
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/quantity"
)

// ChangeWord formats the state and the direction of a change.
func ChangeWord(c *change.Change) string { return string(c.State) + " " + c.Direction() }

// ChangeSentence describes a change by its effects and runs. names maps identities of series to names; series without a name are shown by
// their identity.
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

// ChangeRuns formats the first run after a change, with the range of possible runs.
func ChangeRuns(c *change.Change) string {
	if c.From == c.To {
		return fmt.Sprintf("run %d", c.First)
	}
	return fmt.Sprintf("run %d (of runs %d to %d)", c.First, c.From, c.To)
}

// SeriesName returns the name of a series, or its identity without a name.
func SeriesName(identity string, names map[string]string) string {
	return cmp.Or(names[identity], identity)
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
