package estimate

import (
	"maps"
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A trial that timed out took at least trialTimeout. Excluding it would favour an arm that times out when it is slow. Its figures are
// censored in the sense of survival analysis, and enter at the known bound.
//
// The mean of such figures is the restricted mean (Irwin 1949, Journal of Hygiene 47:188; Royston and Parmar 2013, BMC Medical
// Research Methodology 13:152), a lower bound of the mean, and Student's interval of it is one of the restricted mean. A gate may
// fail by it and not hold by it.
//
// A percentile is exact unless it falls among the censored values, because these are at the worst end.

// timedOut holds the lower bound of the duration of each timed-out trial in seconds, by cell and block.
type timedOut map[selection.Cell]map[string][]float64

func (t timedOut) add(c selection.Cell, attempt *record.Attempt, timeout float64) {
	// A ledger written by hand may have no trialTimeout; so long the trial did run.
	if timeout <= 0 {
		timeout = attempt.DurationSeconds
	}
	blocks := selection.Inner(t, c)
	blocks[attempt.Block] = append(blocks[attempt.Block], timeout)
}

// Censors reports whether a timeout bounds a metric, and on which side the true value may lie: a time during the trial is higher than its
// bound, and a rate lower.
func (d *Data) Censors(metric string) (higher, lower bool) {
	found := d.Exp.Metric(metric)
	if found == nil || !trial.Elapses(metric) {
		return false, false
	}
	_, time := experiment.InSeconds(found.Unit)
	return time && found.Direction == experiment.LowerIsBetter, experiment.PerTime(found.Unit) && found.Direction == experiment.HigherIsBetter
}

// eachTimeout visits the best possible values of the timed-out trials of a quantity's cell, with the number of samples that each
// represents, in the order of the blocks.
func (d *Data) eachTimeout(q Quantity, visit func(value float64, samples int64, block string)) {
	if len(d.TimedOut[q.Cell]) == 0 {
		return
	}
	higher, lower := d.Censors(q.Metric)
	if !higher && !lower {
		return
	}
	work := 1.0
	if lower {
		if work = d.mostWork(q); work == 0 {
			return
		}
	}
	unit, _ := experiment.InSeconds(d.Exp.Metric(q.Metric).Unit)
	samples := d.samplesPerTrial(q)
	for _, block := range slices.Sorted(maps.Keys(d.TimedOut[q.Cell])) {
		for _, seconds := range d.TimedOut[q.Cell][block] {
			if lower {
				visit(work/seconds, samples, block)
			} else if seconds > 0 {
				visit(seconds/unit, samples, block)
			}
		}
	}
}

// mostWork returns the largest amount of work of a trial of a rate's cell: its highest rate times its duration. A timed-out trial did less.
// If no trial of the arm ended, it uses the other arms of the point.
func (d *Data) mostWork(q Quantity) float64 {
	most := 0.0
	d.eachLike(q, func(attempt *record.Attempt, metric record.Metric) {
		d.Chosen.Histograms.Each(metric, func(rate float64, _ int64) { most = max(most, rate*attempt.DurationSeconds) })
	})
	return most
}

// samplesPerTrial returns the number of samples that a timed-out trial represents: that of samplesFrom, else the median of the trials that
// ended.
func (d *Data) samplesPerTrial(q Quantity) int64 {
	if from := d.Exp.Metric(q.Metric).SamplesFrom; from != "" {
		for _, c := range d.Exp.Cells {
			if fixed, err := strconv.ParseInt(c.Parameters[from], 10, 64); selection.At(c.Point, c.Arm) == q.Cell && err == nil && fixed > 0 {
				return min(fixed, trial.MostValues) // An author wrote it, and a pool adds it up.
			}
		}
	}
	var counts []float64
	d.eachLike(q, func(_ *record.Attempt, metric record.Metric) { counts = append(counts, float64(trial.Samples(metric))) })
	if len(counts) == 0 {
		return 1
	}
	return max(1, int64(stats.Median(counts)))
}

// eachLike visits the metric in the trials of a quantity's cell, or if it has none in those of the point.
func (d *Data) eachLike(q Quantity, visit func(*record.Attempt, record.Metric)) {
	found := false
	in := func(c selection.Cell) {
		for attempt, metric := range d.reported(c, q.Metric) {
			found = true
			visit(attempt, metric)
		}
	}
	in(q.Cell)
	for arm := 0; !found && arm < len(d.Exp.Arms); arm++ {
		in(selection.At(q.Point, arm))
	}
}

// Open reports on which sides a figure is only a bound, so that the true value may be higher, or lower.
type Open struct{ Higher, Lower bool }

// OpenEnds reports it of a quantity's interval at the gates' confidence. A percentile is open if an end of its interval falls among
// the trials that timed out.
func (d *Data) OpenEnds(q Quantity) Open {
	best, any := 0.0, false
	d.eachTimeout(q, func(value float64, _ int64, _ string) {
		higher, _ := d.Censors(q.Metric)
		if !any || higher == (value < best) {
			best = value
		}
		any = true
	})
	if !any {
		return Open{}
	}
	higher, lower := d.Censors(q.Metric)
	if _, percentile := experiment.Percentiles[q.Statistic]; percentile {
		if found := d.Level(q).At(d.GateConfidence); found.HasInterval() {
			higher, lower = higher && found.High >= best, lower && found.Low <= best
		}
	}
	return Open{higher, lower}
}

// Over combines the open ends of two figures into those of their ratio.
func (o Open) Over(baseline Open) Open {
	return Open{o.Higher || baseline.Lower, o.Lower || baseline.Higher}
}
