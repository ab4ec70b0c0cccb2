package analysis

import (
	"cmp"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Best is a comparison of several candidates, picked after they were seen. The one with the best estimate need not be the best:
// of two alike, either comes out ahead half of the time. So each is compared with the best of the others (multiple comparisons
// with the best: Hsu 1981, Annals of Statistics 9:1026; 1996, Multiple Comparisons), block by block, and all that may be the
// best are named.

// bestCandidates are the Go candidates that may be the best, those with the better estimate first. They are compared in what
// the first Blocking gate on times looks at; the level of the gates is shared among the comparisons (Bonferroni). Go by
// outputs alone has no order.
func bestCandidates(d *data, found *Analysis) []string {
	type contender struct {
		name string
		gain float64
		at   quantityOf
	}
	var contenders []contender
	for _, candidate := range found.Candidates {
		if candidate.Verdict != experiment.VerdictGo {
			continue
		}
		c := contender{name: candidate.Name, at: quantityOf{cell: cell{point: -1}}}
		for _, gate := range found.Gates {
			if gate.Candidate == candidate.Name && gate.Severity == experiment.Blocking && gate.Metric != "" {
				point := slices.IndexFunc(d.exp.Points, func(p record.Point) bool { return p.Key == gate.Point })
				c.at = quantityOf{cell{point, armIndex(d.exp, candidate.Name)}, gate.Metric, cmp.Or(gate.Statistic, d.exp.Metric(gate.Metric).Statistic)}
				c.gain = d.gain(c.at)
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
			beaten = beaten || j != i && d.beats(other.at, c.at, comparisons)
		}
		if !beaten {
			out = append(out, c.name)
		}
	}
	return out
}

// gain is a quantity turned so that more is better.
func (d *data) gain(q quantityOf) float64 {
	level := d.level(q).value
	if metric := d.exp.Metric(q.metric); metric.Direction == experiment.LowerIsBetter {
		return -level
	}
	return level
}

// beats reports whether a quantity is better than another beyond doubt, as one of several comparisons.
func (d *data) beats(mine, theirs quantityOf, comparisons float64) bool {
	if mine.point < 0 || mine.point != theirs.point || mine.metric != theirs.metric || mine.statistic != theirs.statistic {
		return false
	}
	found := d.compare(mine, theirs)
	if !found.hasInterval() {
		return false
	}
	low, high := found.ends(1 - (1-d.gateConfidence)/comparisons)
	if d.exp.Metric(mine.metric).Direction == experiment.LowerIsBetter {
		return high < 0
	}
	return low > 0 && !math.IsNaN(low)
}
