package analysis

import (
	"strconv"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Analyze judges the evidence of the waves up to and including wave. It is pure: the same experiment and evidence give the
// same bytes, in whatever order the evidence comes.
func Analyze(exp *experiment.Experiment, evidence record.Evidence, wave int) *Analysis {
	chosen := selectTrials(exp, evidence, wave)
	parity := checkParity(exp, chosen.genuine)
	d := newData(exp, chosen)

	out := &Analysis{
		Schema: Schema, Run: exp.Run, Experiment: exp.Digest, Wave: wave,
		Evidence: chosen.digest, Confidence: d.confidence, Seed: exp.Spec.Design.Seed,
		Trials: chosen.trials, Excluded: chosen.excluded(), Environment: chosen.hard, Isolation: chosen.isolation,
	}
	out.Arms = armResults(d, parity)
	out.Ratios = ratioResults(d, parity)
	out.Phases = phaseResults(d, parity)
	out.Gates = judgeGates(d, parity)
	out.Predicted = comparePredictions(d, parity)
	out.Candidates = judgeCandidates(exp, out.Gates, parity)
	out.Verdict = judgeRun(out.Candidates)
	out.Best = bestCandidate(exp, out.Candidates)
	out.Warnings = warnings(d, chosen, parity, out)
	return out
}

// cell is one arm at one point, as indices into the experiment.
type cell struct{ point, arm int }

// data gives access to the trials that count. Everything in it is deterministic: blocks are in the order of their names
// and trials in the order of their slots.
type data struct {
	exp        *experiment.Experiment
	confidence float64
	trials     map[cell][]*record.Attempt
	lost       map[cell]loss
	histograms map[*record.Histogram][]bar

	series      map[quantity]map[string][]float64
	comparisons map[comparison]inference
	levels      map[quantity]inference
}

// quantity is one statistic of one metric of an arm at a point.
type quantity struct {
	cell
	metric    string
	statistic assayv1alpha1.Statistic
}

// comparison is a quantity of a candidate over the same quantity of the baseline.
type comparison struct {
	quantity
	baseline int
}

func newData(exp *experiment.Experiment, chosen *selection) *data {
	d := &data{
		exp: exp, confidence: confidence(exp),
		trials: map[cell][]*record.Attempt{}, lost: chosen.lost, histograms: chosen.histograms,
		series: map[quantity]map[string][]float64{}, comparisons: map[comparison]inference{}, levels: map[quantity]inference{},
	}
	for _, attempt := range chosen.used {
		c := chosen.cells[attempt]
		d.trials[c] = append(d.trials[c], attempt)
	}
	return d
}

// confidence is the level of every interval. Reading a ledger has checked the text already.
func confidence(exp *experiment.Experiment) float64 {
	level, err := strconv.ParseFloat(exp.Spec.Design.Confidence, 64)
	if err != nil || level < 0.5 || level >= 1 {
		return 0.95
	}
	return level
}

// statistics are those of a metric that the results show: its own, those that gates ask for, and p95 where less is better,
// because a median hides what people wait for.
func statistics(exp *experiment.Experiment, metric *assayv1alpha1.Metric) []assayv1alpha1.Statistic {
	out := []assayv1alpha1.Statistic{metric.Statistic}
	add := func(statistic assayv1alpha1.Statistic) {
		for _, have := range out {
			if have == statistic {
				return
			}
		}
		out = append(out, statistic)
	}
	for _, gate := range exp.Spec.Gates {
		if gate.Metric == metric.Name && gate.Statistic != "" {
			add(gate.Statistic)
		}
	}
	if metric.Direction == assayv1alpha1.LowerIsBetter {
		add(assayv1alpha1.StatisticP95)
	}
	return out
}
