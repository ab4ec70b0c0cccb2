package html

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report/chart"
)

// noise draws every reading over the time of the run, for trials that count and for those that do not. Quiet are the readings that were
// never above zero, and unread those that no trial has.
func (b *builder) noise() (out panels, quiet, unread []string) {
	if len(b.all) == 0 {
		return out, nil, nil
	}
	used := map[*record.Attempt]bool{}
	for _, attempt := range b.trials {
		used[attempt] = true
	}
	first, last := b.span()
	for _, r := range noise.Panels() {
		plot := chart.Times{Title: r.Title, XLabel: "minutes since the first trial", Y: numberOf(r.Unit),
			Until: max(last.Sub(first).Minutes(), 0.1)}
		if r.Unit == "%" {
			plot.Y = func(v float64) string { return quantity.Percent(v/100, 3) }
		}
		for _, attempt := range b.all {
			if v := r.Of(attempt); v != nil {
				plot.Points = append(plot.Points, chart.Moment{
					At: attempt.StartedAt.Sub(first).Minutes(), Value: *v, Out: !used[attempt],
					Title: fmt.Sprintf("%s %s at %s", attempt.Trial, attempt.Arm, attempt.StartedAt.UTC().Format(time.TimeOnly)),
				})
			}
		}
		switch {
		case plot.Moves():
			out.add(plot.Title, plot.SVG)
		case len(plot.Points) > 0:
			quiet = append(quiet, r.Title)
		default:
			unread = append(unread, r.Title)
		}
	}
	return out, quiet, unread
}
