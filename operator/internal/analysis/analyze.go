package analysis

import (
	"time"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Analyze judges the evidence of the waves up to and including wave. It is pure: the same experiment and evidence give the
// same bytes, in whatever order the evidence comes.
func Analyze(exp *experiment.Experiment, evidence record.Evidence, wave int) *Analysis {
	chosen := selectTrials(exp, evidence, wave)
	parity := checkParity(exp, chosen.genuine)
	d := newData(exp, chosen, nil)

	out := &Analysis{
		Schema: Schema, Run: exp.Run, Experiment: exp.Digest, Wave: wave,
		Evidence: chosen.digest, Confidence: d.confidence, GateConfidence: d.gateConfidence, Seed: exp.Plan.Design.Seed,
		Noise: chosen.noise.arms, Trials: chosen.trials, Excluded: chosen.excluded(), Environment: chosen.hard, Isolation: chosen.isolation,
	}
	out.Arms = armResults(d, parity)
	out.Ratios = ratioResults(d, parity)
	out.Phases = phaseResults(d, parity)
	decideRun(out, d, parity)
	findLostBlocks(out, d, evidence)
	out.Search = searchResults(d, parity, evidence.Waves)
	out.Predicted = comparePredictions(d, parity)
	if out.BestOf = bestCandidates(d, out); len(out.BestOf) == 1 {
		out.Best, out.BestOf = out.BestOf[0], nil
	}
	out.Unseen = d.unseen(out.ValidBlocks)
	out.Layout = layoutNote(d)
	own := chosen.own(evidence, wave)
	out.Warnings = warnings(d, parity, out, own)
	out.Usage = usageOf(exp, chosen, own)
	return out
}

// decideRun judges the screening blocks, and where the design asks for it lets the verdict stand only if confirmed.
func decideRun(out *Analysis, all *data, parity *parityReport) {
	exp, chosen := all.exp, all.chosen
	screening := all
	if chosen.hasOther(record.Screen) {
		screening = newData(exp, chosen, chosen.only(record.Screen))
	}
	screened := judge(screening, parity, exp.Candidates())
	final := screened
	if exp.Plan.Design.Confirm != nil {
		var fresh *judgement
		if chosen.has(record.Confirm) {
			fresh = judge(newData(exp, chosen, chosen.only(record.Confirm)), parity, screened.contenders())
			out.ConfirmBlocks = fresh.validBlocks
		}
		final = confirm(screened, fresh, parity)
		if final != screened && decisive(screened.verdict) {
			out.Screened = screened.verdict
		}
		if final != screened && fresh != nil {
			out.Screening = screened.gates
		}
	}
	out.ValidBlocks, out.RelativeHalfWidth = screened.validBlocks, screened.relativeHalfWidth
	out.Gates, out.Controls, out.Candidates, out.Verdict = final.gates, final.controls, final.candidates, final.verdict
}

// cell is one arm at one point, as indices into the experiment.
type cell struct{ point, arm int }

// At is the cell of an arm at a point.
func At(point, arm int) cell { return cell{point, arm} }

// data gives access to the trials that count. Everything in it is deterministic: blocks are in the order of their names
// and trials in the order of their slots.
type data struct {
	exp *experiment.Experiment
	// chosen is the whole selection, whatever part of it counts here.
	chosen *selection
	// confidence of the intervals in results, and gateConfidence of those that decide.
	confidence, gateConfidence float64

	trials map[cell][]*record.Attempt
	// rejected counts the trials of a cell that noise limits took, and everything is the data with them; nil if there are none.
	rejected   map[cell]int
	everything *data
	// measured are the blocks of a cell in which a trial was measured and counts, failed ones included.
	measured map[cell]map[string]bool
	// nodes are the nodes of the blocks; empty when unknown.
	nodes map[string]string
	// started is when the first trial of a block began.
	started map[string]time.Time
	clocks  map[clockOf]Resolution
	// timedOut are the trials that a timeout ended.
	timedOut timedOut

	series      map[quantityOf]map[string][]float64
	comparisons map[comparison]inference
	levels      map[quantityOf]inference
}

// quantityOf is one statistic of one metric of an arm at a point.
type quantityOf struct {
	cell
	metric    string
	statistic experiment.Statistic
}

// comparison is a quantity of a candidate over the same quantity of the baseline.
type comparison struct {
	quantityOf
	baseline int
}

// newData indexes what was selected; a block counts if in says so, and every block if in is nil.
func newData(exp *experiment.Experiment, chosen *selection, in func(block string) bool) *data {
	d := dataOf(exp, chosen, chosen.used, in)
	for _, attempt := range chosen.judged {
		if chosen.kinds[attempt] == noisy && (in == nil || in(attempt.Block)) {
			d.rejected[chosen.cells[attempt]]++
		}
	}
	if len(d.rejected) > 0 {
		d.everything = dataOf(exp, chosen, chosen.judged, in)
	}
	return d
}

// dataOf indexes the attempts that count, be it with or without those that noise limits reject.
func dataOf(exp *experiment.Experiment, chosen *selection, attempts []*record.Attempt, in func(block string) bool) *data {
	d := &data{
		exp: exp, chosen: chosen, confidence: exp.Plan.Design.Confidence, gateConfidence: exp.Plan.Design.ConfidenceOfGates(),
		trials: map[cell][]*record.Attempt{}, rejected: map[cell]int{}, measured: map[cell]map[string]bool{}, nodes: map[string]string{},
		started: map[string]time.Time{}, clocks: map[clockOf]Resolution{}, timedOut: timedOut{},
		series: map[quantityOf]map[string][]float64{}, comparisons: map[comparison]inference{}, levels: map[quantityOf]inference{},
	}
	for _, attempt := range attempts {
		if in != nil && !in(attempt.Block) {
			continue
		}
		c := chosen.cells[attempt]
		d.trials[c] = append(d.trials[c], attempt)
		d.nodes[attempt.Block] = nodeOf(attempt)
		if first, ok := d.started[attempt.Block]; !ok || attempt.StartedAt.Before(first) {
			d.started[attempt.Block] = attempt.StartedAt
		}
		d.sawMeasured(c, attempt.Block)
	}
	for attempt, kind := range chosen.kinds {
		if c, ok := chosen.cells[attempt]; ok && (kind == failed || kind == unusable) && (in == nil || in(attempt.Block)) {
			d.sawMeasured(c, attempt.Block)
			if attempt.Outcome == record.TimedOut {
				d.timedOut.add(c, attempt, exp.Plan.Workload.TimeoutSeconds)
			}
		}
	}
	return d
}

func (d *data) sawMeasured(c cell, block string) {
	if d.measured[c] == nil {
		d.measured[c] = map[string]bool{}
	}
	d.measured[c][block] = true
}

// statistics are those of a metric that the results show: its own, those that gates ask for, and p95 where less is better,
// because a median hides what people wait for.
func statistics(exp *experiment.Experiment, metric *experiment.Metric) []experiment.Statistic {
	out := []experiment.Statistic{metric.Statistic}
	add := func(statistic experiment.Statistic) {
		for _, have := range out {
			if have == statistic {
				return
			}
		}
		out = append(out, statistic)
	}
	for _, gate := range exp.Plan.Gates {
		if gate.Metric == metric.Name && gate.Statistic != "" {
			add(gate.Statistic)
		}
	}
	if metric.Direction == experiment.LowerIsBetter {
		add(experiment.StatisticP95)
	}
	return out
}
