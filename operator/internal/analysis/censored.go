package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A trial that timed out says something: it took at least trialTimeout. Leaving it out would reward the arm that times out
// exactly when it is slow. Its figures are censored, as survival analysis calls it, and taken at the known end:
//
// The mean of such figures is the restricted mean (Irwin 1949, Journal of Hygiene 47:188; Royston and Parmar 2013, BMC Medical
// Research Methodology 13:152), a lower bound of the mean, and Student's interval of it is one of the restricted mean. A gate may
// fail by it and not hold by it.
//
// A percentile needs only to know that they are at the worst end: it is exact unless it falls among them.

// timedOut are a cell's trials that timed out, by block: the seconds that each took at least.
type timedOut map[cell]map[string][]float64

func (t timedOut) add(c cell, attempt *record.Attempt, timeout float64) {
	if t[c] == nil {
		t[c] = map[string][]float64{}
	}
	// A ledger written by hand may have no trialTimeout; so long the trial did run.
	if timeout <= 0 {
		timeout = attempt.DurationSeconds
	}
	t[c][attempt.Block] = append(t[c][attempt.Block], timeout)
}

// censors reports whether a timeout bounds a metric, and on which side the truth may lie: a time is higher than what is known, and a
// rate lower.
func (d *data) censors(metric string) (higher, lower bool) {
	found := d.exp.Metric(metric)
	if found == nil {
		return false, false
	}
	return found.Direction == experiment.LowerIsBetter && found.Unit == "s",
		found.Direction == experiment.HigherIsBetter && strings.HasSuffix(found.Unit, "/s")
}

// eachTimeout visits what the timed-out trials of a quantity's cell are known to have been at best, with the number of samples that
// each stands for, in the order of the blocks.
func (d *data) eachTimeout(q quantityOf, visit func(value float64, samples int64, block string)) {
	if len(d.timedOut[q.cell]) == 0 {
		return
	}
	higher, lower := d.censors(q.metric)
	if !higher && !lower {
		return
	}
	work := 1.0
	if lower {
		if work = d.mostWork(q); work == 0 {
			return
		}
	}
	samples := d.samplesPerTrial(q)
	for _, block := range slices.Sorted(maps.Keys(d.timedOut[q.cell])) {
		for _, seconds := range d.timedOut[q.cell][block] {
			if lower {
				visit(work/seconds, samples, block)
			} else if seconds > 0 {
				visit(seconds, samples, block)
			}
		}
	}
}

// mostWork is how much a trial of a rate's cell does at most: its highest rate for as long as the trial took. One that timed out
// had done less. Where none of the arm ended, the other arms of the point decide.
func (d *data) mostWork(q quantityOf) float64 {
	most := 0.0
	d.eachLike(q, func(attempt *record.Attempt, metric record.Metric) {
		d.chosen.histograms.each(metric, func(rate float64, _ int64) { most = max(most, rate*attempt.DurationSeconds) })
	})
	return most
}

// samplesPerTrial is how many samples a timed-out trial stands for: as many as samplesFrom says, else as many as the trials that
// ended had, by their median.
func (d *data) samplesPerTrial(q quantityOf) int64 {
	if from := d.exp.Metric(q.metric).SamplesFrom; from != "" {
		for _, c := range d.exp.Cells {
			if fixed, err := strconv.ParseInt(c.Parameters[from], 10, 64); (cell{c.Point, c.Arm}) == q.cell && err == nil && fixed > 0 {
				return fixed
			}
		}
	}
	var counts []float64
	d.eachLike(q, func(_ *record.Attempt, metric record.Metric) { counts = append(counts, float64(countSamples(metric))) })
	if len(counts) == 0 {
		return 1
	}
	return max(1, int64(median(counts)))
}

// eachLike visits the metric in the trials of a quantity's cell, or if it has none in those of the point.
func (d *data) eachLike(q quantityOf, visit func(*record.Attempt, record.Metric)) {
	found := false
	in := func(c cell) {
		for _, attempt := range d.trials[c] {
			if metric, ok := attempt.Metric(q.metric); ok {
				found = true
				visit(attempt, metric)
			}
		}
	}
	in(q.cell)
	for arm := 0; !found && arm < len(d.exp.Arms); arm++ {
		in(cell{q.point, arm})
	}
}

// open reports on which sides a figure is only a bound: the truth may be higher, or lower, than what was computed.
type open struct{ higher, lower bool }

// openEnds reports it of a quantity's interval at the gates' confidence. A percentile is open if an end of its interval falls among
// the trials that timed out.
func (d *data) openEnds(q quantityOf) open {
	best, any := 0.0, false
	d.eachTimeout(q, func(value float64, _ int64, _ string) {
		higher, _ := d.censors(q.metric)
		if !any || higher == (value < best) {
			best = value
		}
		any = true
	})
	if !any {
		return open{}
	}
	higher, lower := d.censors(q.metric)
	if _, percentile := experiment.Percentiles[q.statistic]; percentile {
		if found := d.level(q).at(d.gateConfidence); found.hasInterval() {
			higher, lower = higher && found.high >= best, lower && found.low <= best
		}
	}
	return open{higher, lower}
}

// over is what remains known of a ratio of two figures.
func (o open) over(baseline open) open {
	return open{o.higher || baseline.lower, o.lower || baseline.higher}
}

// settles takes back a decision that a timeout may turn: a bound is no figure. A candidate that timed out never meets a gate by it.
func (o open) settles(candidate open, atLeast bool, result *GateResult) {
	holds := result.Outcome == experiment.VerdictGo
	unsafe := o.higher
	if holds == atLeast {
		unsafe = o.lower
	}
	if !decisive(result.Outcome) || !unsafe && !(holds && candidate != open{}) {
		return
	}
	result.Message = fmt.Sprintf("%s, but trials timed out, of which only a bound is known, so this is not yet %s", result.Message,
		result.Outcome)
	result.Outcome = experiment.VerdictInconclusive
}
