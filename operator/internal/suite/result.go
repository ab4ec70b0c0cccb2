package suite

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Ratio is a figure of the new build over that of the old one. Low and High are absent where there are too few blocks for an interval.
type Ratio struct {
	Value  float64  `json:"value"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Blocks int      `json:"blocks"`
}

// Row is the result of one member.
type Row struct {
	Member
	Label   string  `json:"label"`
	Outcome Outcome `json:"outcome"`
	// Ratio has an interval that holds for all members together. It is absent for a member without a comparison.
	Ratio *Ratio `json:"ratio,omitempty"`
	// P is the p-value of no difference, over all looks at the member and before the correction for the other members.
	P float64 `json:"p"`
	// Blocks are those of the member.
	Blocks int `json:"blocks"`
	// Cause is why the member failed or cannot be compared; absent otherwise.
	Cause string `json:"cause,omitempty"`
	// failedNew and failedOld report the builds in which a trial failed.
	failedNew, failedOld bool
}

// Result is the answer of a suite.
type Result struct {
	Metric string `json:"metric"`
	// Unit and HigherIsBetter are those of the metric.
	Unit           string `json:"unit"`
	HigherIsBetter bool   `json:"higherIsBetter,omitempty"`
	// ErrorRate is the probability that any member without a difference is called Slower or Faster.
	ErrorRate float64 `json:"errorRate"`
	// Rows are sorted by change, the largest slowdown first; those without a comparison are last.
	Rows []Row `json:"benchmarks"`
	// Mean is the geometric mean of the members, over the blocks that all of them have, at Confidence; absent without such blocks.
	Mean       *Ratio  `json:"geometricMean,omitempty"`
	Confidence float64 `json:"confidence"`
	// Of is the number of members in Mean.
	Of int `json:"of"`
	// OnlyOld and OnlyNew are the benchmarks that the other build does not have, and Broken those that failed when they were listed.
	OnlyOld []string `json:"onlyOld,omitempty"`
	OnlyNew []string `json:"onlyNew,omitempty"`
	Broken  []string `json:"broken,omitempty"`
	// Bound of the ratio that every member must meet, and the verdict about it; absent where nothing was asked.
	Bound   float64            `json:"bound,omitempty"`
	Verdict experiment.Verdict `json:"verdict,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	// Shortfall is why the suite ended before all members were decided; empty otherwise.
	Shortfall string `json:"shortfall,omitempty"`
}

// Count returns the number of rows with an outcome.
func (r *Result) Count(outcome Outcome) int {
	n := 0
	for i := range r.Rows {
		if r.Rows[i].Outcome == outcome {
			n++
		}
	}
	return n
}

// Result returns the answer after the observed blocks. Members are those of the experiment's points.
func (c *Course) Result(members []Member) *Result {
	metric := c.exp.Metrics()[0]
	out := &Result{
		Metric: metric.Name, Unit: metric.Unit, HigherIsBetter: metric.Direction == experiment.HigherIsBetter, ErrorRate: c.rate,
		Confidence: c.exp.Plan.Design.Confidence,
	}
	labels, differs := Labels(members), c.differs()
	for i := range c.members {
		m := &c.members[i]
		row := Row{
			Member: members[i], Label: labels[i], P: min(1, m.p), Blocks: m.blocks, Outcome: NoDifference, Cause: m.doubt,
			failedNew: m.failedIn[New], failedOld: m.failedIn[Old],
		}
		if m.found != nil && m.failed == "" {
			low, high := c.interval(m.found)
			low, high = math.Exp(low), math.Exp(high)
			row.Ratio = &Ratio{Value: math.Exp(m.found.LogRatio), Low: &low, High: &high, Blocks: m.found.Blocks}
		}
		switch {
		case m.failed != "":
			row.Outcome, row.Cause = Failed, m.failed
		case m.doubt != "":
		case differs[i] && m.found != nil && (m.found.LogRatio > 0) != out.HigherIsBetter:
			row.Outcome = Slower
		case differs[i]:
			row.Outcome = Faster
		}
		out.Rows = append(out.Rows, row)
	}
	slices.SortStableFunc(out.Rows, func(a, b Row) int { return cmp.Compare(out.worse(&b), out.worse(&a)) })
	out.Mean, out.Of = c.mean()
	return out
}

// Judge sets the verdict about a bound that the ratio of every member must meet: at most the bound, or at least where higher is better. It
// is NoGo if a member misses it or fails in the new build alone, Go if all members meet it, and Inconclusive otherwise.
func (r *Result) Judge(bound float64) {
	r.Bound, r.Verdict = bound, experiment.VerdictGo
	var missed, open []string
	for i := range r.Rows {
		row := &r.Rows[i]
		switch meets, misses := r.meets(row); {
		case misses:
			missed = append(missed, row.Label)
		case !meets:
			open = append(open, row.Label)
		}
	}
	sign := "at most"
	if r.HigherIsBetter {
		sign = "at least"
	}
	what := fmt.Sprintf("a ratio of %s %s", sign, quantity.Full(bound))
	switch {
	case len(missed) > 0:
		r.Verdict, r.Reason = experiment.VerdictNoGo, fmt.Sprintf("%s missed by %s", what, first(missed))
	case len(open) > 0:
		r.Verdict, r.Reason = experiment.VerdictInconclusive, fmt.Sprintf("%s not shown for %s", what, first(open))
	default:
		r.Reason = fmt.Sprintf("%s met by all %s", what, quantity.Count(len(r.Rows), "benchmark"))
	}
}

// first names the first member, and counts the others.
func first(labels []string) string {
	if len(labels) == 1 {
		return labels[0]
	}
	return fmt.Sprintf("%s and %d more", labels[0], len(labels)-1)
}

// meets reports whether the whole interval of a row meets the bound, and whether all of it misses the bound.
func (r *Result) meets(row *Row) (meets, misses bool) {
	switch {
	case row.Outcome == Failed:
		return false, row.failedNew && !row.failedOld
	case row.Cause != "" || row.Ratio == nil || row.Ratio.Low == nil || row.Ratio.High == nil:
		return false, false
	case r.HigherIsBetter:
		return *row.Ratio.Low >= r.Bound, *row.Ratio.High < r.Bound
	default:
		return *row.Ratio.High <= r.Bound, *row.Ratio.Low > r.Bound
	}
}

// worse is the change of a row for the worse, as a logarithm; rows without a ratio are below all others.
func (r *Result) worse(row *Row) float64 {
	switch {
	case row.Ratio == nil:
		return math.Inf(-1)
	case r.HigherIsBetter:
		return -math.Log(row.Ratio.Value)
	default:
		return math.Log(row.Ratio.Value)
	}
}

// mean returns the geometric mean of the members over the blocks that all of them have, those of the first wave. Members that differ
// plainly have no later blocks, so that a mean over all blocks would depend on the results. The mean of each block is one value, because
// the members of a block share its moment.
func (c *Course) mean() (*Ratio, int) {
	if len(c.waves) == 0 {
		return nil, 0
	}
	var ids []string
	for _, block := range c.waves[0].Blocks {
		ids = append(ids, block.ID)
	}
	_, ratios := c.result.Figures()
	sums, of, terms := map[string]float64{}, 0, 0
	for i := range c.members {
		q := c.quantity(i)
		found := ratios[analysis.Figure{Point: q.Point, Arm: New, Metric: q.Metric, Statistic: q.Statistic}]
		if c.members[i].failed != "" || found == nil || !hasAll(found.PerBlock, ids) {
			continue
		}
		of, terms = of+1, max(terms, found.Terms)
		for _, id := range ids {
			sums[id] += math.Log(found.PerBlock[id])
		}
	}
	if of == 0 {
		return nil, 0
	}
	for id := range sums {
		sums[id] /= float64(of)
	}
	d := &estimate.Data{Exp: c.exp, Confidence: c.result.Confidence, GateConfidence: c.result.GateConfidence}
	found := d.OverBlocks(sums, estimate.Spread{}, true, true, terms)
	out := &Ratio{Value: found.Value, Blocks: len(ids)}
	if found.HasInterval() {
		out.Low, out.High = &found.Low, &found.High
	}
	return out, of
}

// hasAll reports whether every block has a ratio above 0.
func hasAll(perBlock map[string]float64, ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return !(perBlock[id] > 0) })
}
