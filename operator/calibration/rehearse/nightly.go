package rehearse

import (
	"context"
	"math"
	"slices"

	"k8s.io/client-go/util/workqueue"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/detect"
	"assay.dev/assay/operator/internal/history/watch"
)

// alert is a confirmed change: night, revisions and direction.
type alert struct {
	night    int
	old, new []int
	up       bool
}

// watched is the outcome of a year.
type watched struct {
	alerts        []alert
	confirmations int
	// ratios and bare are the same year as points and as unpaired values; NaN for a missing night.
	ratios, bare []float64
	// dated contains the dated changes at the end of a year on one machine.
	dated []detect.Dated
	// nightOf maps points to nights at the end of the year.
	nightOf []int
}

// watch simulates a year night by night, with the policy of schedules.
func (t *truth) watch() watched {
	p := watch.Default()
	var out watched
	var points []detect.Observation
	var nightOf []int // Of the points.
	var all []detect.Observation
	from, run := 0, 0
	for night := range nights {
		if night > 0 && t.machine[night] != t.machine[night-1] {
			points, nightOf, all, out.nightOf, from, run = nil, nil, nil, nil, 0, 0
		}
		point, bare := t.night(night)
		if t.missing[night] {
			out.ratios, out.bare = append(out.ratios, math.NaN()), append(out.bare, math.NaN())
			continue
		}
		out.ratios, out.bare = append(out.ratios, point.Y), append(out.bare, bare)
		points, nightOf = append(points, point), append(nightOf, night)
		all, out.nightOf = append(all, point), append(out.nightOf, night)
		s := p.Online.Newest(points, from)
		if !s.Raised {
			run = 0
			continue
		}
		old := nightOf[max(0, s.From-p.Sides):max(1, s.From)]
		new := nightOf[max(s.To, len(points)-p.Sides):]
		if len(new) < p.Confirmation.Wants(run+1, p.Sides) {
			continue
		}
		run++
		out.confirmations++
		difference, apart, newest := t.confirm(old, new)
		all[len(all)-1] = newest
		measured := change.Measured{
			LogRatio: difference.Y, SE: difference.SE, DF: difference.DF, Old: len(old), New: len(new),
			Between: watch.BetweenBuilds(detect.BetweenAtMost(points), apart),
		}
		points[len(points)-1] = newest
		switch p.Confirmation.Judge(s.Shift, measured, run) {
		case change.Holds:
			out.alerts = append(out.alerts, alert{night, slices.Clone(old), slices.Clone(new), difference.Y > 0})
			points, nightOf, from, run = points[s.First:], nightOf[s.First:], 0, 0
		case change.Refuted:
			from, run = len(points), 0
		case change.Undecided:
		}
	}
	out.dated = p.Offline.Changes(all)
	return out
}

// Tally counts the outcomes for years of one kind.
type Tally struct {
	Year  Year
	Years int
	// Alerts, False alerts without a change between the revisions, Misdated alerts whose change is outside the dates, and confirming runs.
	Alerts, False, Misdated, Confirmations int
	// Changes is the number of changes, and Found the number alerted within a month.
	Changes, Found int
	// Delay is the number of runs to the alert, the confirming run included.
	Delay Mean
	// Dated counts intervals, DatedFalse those without a change, and Dates the changes with an interval.
	Dated, DatedFalse, Dates int
}

// soon is the number of nights within which an alert counts as found.
const soon = 30

func (y *Tally) add(t *truth, w watched) {
	y.Years++
	y.Alerts += len(w.alerts)
	y.Confirmations += w.confirmations
	y.Changes += len(t.changed)
	for _, a := range w.alerts {
		switch last := a.new[len(a.new)-1]; {
		case t.level[a.old[0]] == t.level[last] && t.level[a.old[len(a.old)-1]] == t.level[a.new[0]]:
			y.False++
		case t.level[a.old[len(a.old)-1]] == t.level[a.new[0]]:
			y.Misdated++
		}
	}
	for _, at := range t.changed {
		up := t.level[at] > t.level[at-1]
		for _, a := range w.alerts {
			if a.night >= at && a.night < at+soon && a.old[0] < at && a.up == up {
				y.Found++
				y.Delay.Add(float64(a.night - at + 1)) // Plus the confirming run.
				break
			}
		}
	}
	y.Dated += len(w.dated)
	for _, d := range w.dated {
		low, high := w.nightOf[d.From-1], w.nightOf[d.To]
		if t.level[low] == t.level[high] {
			y.DatedFalse++
		}
		for _, at := range t.changed {
			if low < at && at <= high {
				y.Dates++
			}
		}
	}
}

// Watch simulates the given number of years of a kind. Counts depend on the seed only, not on the number of workers. each is called with
// every year's measured values.
func Watch(year Year, years, workers int, seed uint64, each func(i int, changed []int, ratios, bare []float64)) Tally {
	truths, results := make([]*truth, years), make([]watched, years)
	Parallel(years, workers, func(i int) {
		truths[i] = draw(year, seed+uint64(i))
		results[i] = truths[i].watch()
	})
	out := Tally{Year: year}
	for i := range truths {
		out.add(truths[i], results[i])
		if each != nil {
			each(i, truths[i].changed, results[i].ratios, results[i].bare)
		}
	}
	return out
}

// Parallel runs n tasks on the given number of workers.
func Parallel(n, workers int, do func(i int)) {
	workqueue.ParallelizeUntil(context.Background(), max(1, workers), n, do)
}
