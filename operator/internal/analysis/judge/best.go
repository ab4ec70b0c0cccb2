package judge

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// Selecting the candidate with the best estimate is a comparison chosen after the data were seen. Of two equal candidates, either has the
// better estimate half of the time. So each is compared with the best of the others (multiple comparisons with the best: Hsu 1981,
// Annals of Statistics 9:1026; 1996, Multiple Comparisons), block by block, and the result lists all that may be the best.

// Best returns the Go candidates that may be the best, the better estimate first. They are compared in the figure of the first
// Blocking gate on times; the comparisons share the level of the gates (Bonferroni). Candidates that are Go by outputs alone have no
// order.
func Best(d *estimate.Data, candidates []analysis.Candidate, gates []analysis.GateResult) []string {
	type contender struct {
		name string
		gain float64
		at   estimate.Quantity
	}
	var contenders []contender
	for _, candidate := range candidates {
		if candidate.Verdict != experiment.VerdictGo {
			continue
		}
		c := contender{name: candidate.Name, at: estimate.Quantity{Cell: selection.Cell{Point: -1}}}
		for _, gate := range gates {
			if gate.Candidate == candidate.Name && gate.Severity == experiment.Blocking && gate.Metric != "" {
				at := selection.At(pointOf(d, &gate), selection.ArmIndex(d.Exp, candidate.Name))
				statistic := cmp.Or(gate.Statistic, d.Exp.Metric(gate.Metric).Statistic)
				c.at = estimate.Quantity{Cell: at, Metric: gate.Metric, Statistic: statistic}
				c.gain = gain(d, c.at)
				break
			}
		}
		contenders = append(contenders, c)
	}
	slices.SortStableFunc(contenders, func(a, b contender) int { return cmp.Compare(b.gain, a.gain) })
	var out []string
	comparisons := float64(max(1, len(contenders)-1))
	for i, c := range contenders {
		beaten := false
		for j, other := range contenders {
			beaten = beaten || j != i && beats(d, other.at, c.at, comparisons)
		}
		if !beaten {
			out = append(out, c.name)
		}
	}
	return out
}

// gain returns a quantity with its sign set so that higher is better.
func gain(d *estimate.Data, q estimate.Quantity) float64 {
	level := d.Level(q).Value
	if metric := d.Exp.Metric(q.Metric); metric.Direction == experiment.LowerIsBetter {
		return -level
	}
	return level
}

// beats reports whether a quantity is better than another, as one of several comparisons that share the level. It must hold with and
// without the trials that noise limits reject, and it is false if a rule would cap a gate between the two.
func beats(d *estimate.Data, mine, theirs estimate.Quantity, comparisons float64) bool {
	if mine.Point < 0 || mine.Point != theirs.Point || mine.Metric != theirs.Metric || mine.Statistic != theirs.Statistic {
		return false
	}
	if d.Chosen.Separated != "" || placed(d, mine.Point, mine.Arm, theirs.Arm, 1) != "" ||
		lostDifferently(d, mine.Metric, mine.Point, mine.Arm, theirs.Arm, 1) != "" ||
		unlike(d, mine.Point, mine.Arm, theirs.Arm, 1) != "" ||
		madeDifferently(d, mine.Metric, mine.Statistic, mine.Point, mine.Arm, theirs.Arm) != "" {
		return false
	}
	all := []*estimate.Data{d, d.Everything, d.Everywhere}
	if experiment.Percentiles[mine.Statistic] != 0 {
		all = append(all, d.ByTrials(mine.Point, mine.Metric, mine.Arm, theirs.Arm))
	}
	for _, counted := range all {
		if counted != nil && !ahead(counted, mine, theirs, comparisons) {
			return false
		}
	}
	return true
}

// ahead reports whether one quantity is better than another over the whole interval of their ratio.
func ahead(d *estimate.Data, mine, theirs estimate.Quantity, comparisons float64) bool {
	metric := d.Exp.Metric(mine.Metric)
	found := d.Rarely(d.Compare(mine, theirs), metric, mine.Statistic, true)
	if !found.HasInterval() || d.FewForCorrelation(found.Blocks) != "" {
		return false
	}
	if experiment.Percentiles[mine.Statistic] != 0 {
		medians := [2]estimate.Quantity{mine, theirs}
		medians[0].Statistic, medians[1].Statistic = experiment.StatisticMedian, experiment.StatisticMedian
		if series := d.Compare(medians[0], medians[1]).Series; series != nil && series.Dependent {
			return false
		}
	}
	low, high := found.Ends(1 - (1-d.GateConfidence)/comparisons)
	even := found.Scale(1)
	if metric.Direction == experiment.LowerIsBetter {
		return high < even
	}
	return low > even
}
