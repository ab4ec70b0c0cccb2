package html

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report/chart"
)

// reading is one thing that the runner reads of a trial's surroundings.
type reading struct {
	title string
	unit  string
	of    func(*record.Attempt) *float64
}

var readings = []reading{
	{"CPU time taken by the hypervisor", "%", func(a *record.Attempt) *float64 { return share(a.Noise.During.StealRatio) }},
	{"other work on the trial's CPUs", "%", func(a *record.Attempt) *float64 { return share(a.Noise.During.OtherWorkRatio) }},
	{"work on the other CPUs", "%", func(a *record.Attempt) *float64 { return share(a.Noise.During.OtherCPUsRatio) }},
	{"canary: a pass over the trial's memory", "s", func(a *record.Attempt) *float64 { return a.Noise.Before.CanarySeconds }},
	{"fixed arithmetic", "s", func(a *record.Attempt) *float64 { return a.Noise.Before.SpinSeconds }},
	{"lateness of a timer", "s", func(a *record.Attempt) *float64 { return a.Noise.Before.TimerLatenessSeconds }},
	{"time waiting for a disk", "s", func(a *record.Attempt) *float64 { return a.Noise.During.PressureIOSeconds }},
	{"throttled", "s", func(a *record.Attempt) *float64 { return a.Noise.During.ThrottledSeconds }},
}

func share(ratio *float64) *float64 {
	if ratio == nil {
		return nil
	}
	out := 100 * *ratio
	return &out
}

// noise shows every reading over the time of the run: trials that count, and those that do not. Quiet are the readings that were never
// above zero, and unread those that nobody could take.
func (b *builder) noise() (out panels, quiet, unread []string) {
	if len(b.all) == 0 {
		return out, nil, nil
	}
	used := map[*record.Attempt]bool{}
	for _, attempt := range b.trials {
		used[attempt] = true
	}
	first, last := b.span()
	for _, r := range readings {
		plot := chart.Times{Title: r.title, XLabel: "minutes since the first trial", Y: numberOf(r.unit),
			Until: max(last.Sub(first).Minutes(), 0.1)}
		if r.unit == "%" {
			plot.Y = func(v float64) string { return quantity.Percent(v/100, 3) }
		}
		for _, attempt := range b.all {
			if v := r.of(attempt); v != nil {
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
			quiet = append(quiet, r.title)
		default:
			unread = append(unread, r.title)
		}
	}
	return out, quiet, unread
}
