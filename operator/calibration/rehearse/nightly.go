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

// alert is a change that a confirming run showed: on which night, of which revisions, and in which direction.
type alert struct {
	night    int
	old, new []int
	up       bool
}

// watched is what came of a year.
type watched struct {
	alerts        []alert
	confirmations int
	// ratios and bare are the same year as points and as values of the machine; NaN where a night is missing.
	ratios, bare []float64
	// dated are the changes that are dated at the end of a year on one machine.
	dated []detect.Dated
	// nightOf the points at the end of the year.
	nightOf []int
}

// watch goes through a year night by night, with the policy that schedules have.
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

// Tally counts many years of one kind.
type Tally struct {
	Year  Year
	Years int
	// Alerts, those without any change between the revisions compared, those whose change is not between the sides, and confirming runs.
	Alerts, False, Misdated, Confirmations int
	// Changes there were, and how many were alerted within a month.
	Changes, Found int
	// Delay is after how many runs, the confirming run counted in.
	Delay Mean
	// Dated intervals, and those without a change in them; Dates are the changes that have one.
	Dated, DatedFalse, Dates int
}

// soon is within how many nights a change has to be alerted to count as found.
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
				y.Delay.Add(float64(a.night - at + 1)) // The confirming run is one more.
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

// Watch rehearses so many years of a kind. The same seed gives the same counts, however many workers there are. Each is given every year's
// values as they were measured.
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

// Parallel does n things with so many workers.
func Parallel(n, workers int, do func(i int)) {
	workqueue.ParallelizeUntil(context.Background(), max(1, workers), n, do)
}
