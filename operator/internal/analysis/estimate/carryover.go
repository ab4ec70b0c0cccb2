package estimate

import (
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
)

// A trial that follows another arm's starts on the machine as that arm left it: its page cache, its heat, its open connections. Figures
// rest on trials that follow their own arm, as in use. The first trials of the visits, which do not, show the effect of one arm on the next
// (the first-order carry-over of crossover trials: Jones and Kenward 2014, Design and Analysis of Cross-Over Trials, chapter 2).

// entries are the logarithms of an arm's trials after other arms over the mean of its trials after itself in the same block, by block.
// After limits them to one preceding arm; -1 is any.
func (d *Data) entries(q Quantity, after int) map[string][]float64 {
	settled, out := d.PerBlock(q), map[string][]float64{}
	for _, attempt := range d.Entering[q.Cell] {
		metric, ok := attempt.Metric(q.Metric)
		if !ok || after >= 0 && d.Chosen.Entered[attempt].After.Arm != after || len(settled[attempt.Block]) == 0 {
			continue
		}
		value, ok := d.Chosen.Histograms.Statistic(metric, q.Statistic)
		if ok && value > 0 && AllPositive(map[string][]float64{"": settled[attempt.Block]}) {
			own := stats.Mean(scaled(settled[attempt.Block], true))
			out[attempt.Block] = append(out[attempt.Block], math.Log(value)-own)
		}
	}
	return out
}

// After is the effect of an arm on the trial of another arm that follows it: its figure over the figure of the same arm after itself.
func (d *Data) After(point, arm int, metric string, statistic experiment.Statistic) Inference {
	blocks := map[string][]float64{}
	for other := range d.Exp.Arms {
		if other != arm {
			for block, values := range d.entries(Quantity{selection.At(point, other), metric, statistic}, arm) {
				blocks[block] = append(blocks[block], values...)
			}
		}
	}
	return studentInference(BlockMeans(blocks, false), d.GateConfidence, true)
}

// CarryOver returns the effect of every arm on the trials that follow it.
func CarryOver(d *Data, parity *selection.Parity) []analysis.CarryOverResult {
	var out []analysis.CarryOverResult
	for point := range d.Exp.Points {
		for arm := range d.Exp.Arms {
			if parity.Wrong[d.Exp.Arms[arm].Name] != "" {
				continue
			}
			for _, metric := range d.Exp.Metrics() {
				for _, statistic := range d.Exp.Statistics(metric) {
					if experiment.Percentiles[statistic] != 0 {
						continue
					}
					if found := d.After(point, arm, metric.Name, statistic).Ratio(); found != nil && found.Low != nil {
						out = append(out, analysis.CarryOverResult{Point: d.Exp.Points[point].Key, Arm: d.Exp.Arms[arm].Name, Metric: metric.Name,
							Statistic: statistic, Estimate: *found})
					}
				}
			}
		}
	}
	return out
}

// AtEqualPredecessors returns the ratio of two quantities whose trials follow the same arms, from their ratio after themselves, and whether
// the two ratios differ significantly. With k arms that enter after all others equally often, and additive effects of arm and predecessor,
// it is the ratio after themselves times the (k-1)/k-th power of the ratio of their effects of entering.
func (d *Data) AtEqualPredecessors(itself Inference, mine, theirs Quantity) (equal Inference, differs bool) {
	difference, entering, ok := d.enteringDifference(mine, theirs)
	if !itself.HasInterval() || !itself.logarithmic || !ok {
		return Inference{}, false
	}
	k := float64(len(d.Exp.Arms))
	all := Spread{itself.SE * itself.SE, itself.DF}.plus(entering.times((k - 1) / k))
	differs = entering.excludes(difference, d.GateConfidence)
	equal = studentAround(math.Log(itself.Value)+(k-1)/k*difference, math.Sqrt(all.variance), all.df, itself)
	equal.Value, equal.Blocks = math.Exp(math.Log(itself.Value)+(k-1)/k*difference), itself.Blocks
	return equal.At(d.GateConfidence), differs
}

// enteringDifference is the difference of two arms in the effect of entering after another arm, with its variance; false without both.
func (d *Data) enteringDifference(mine, theirs Quantity) (float64, Spread, bool) {
	return d.unpaired(d.entries(mine, -1), d.entries(theirs, -1))
}

// unpaired is the difference of the means over the blocks of two arms, with its variance; false without both.
func (d *Data) unpaired(mine, theirs map[string][]float64) (float64, Spread, bool) {
	a := studentInference(BlockMeans(mine, false), d.GateConfidence, false)
	b := studentInference(BlockMeans(theirs, false), d.GateConfidence, false)
	spread := Spread{a.SE * a.SE, a.DF}.plus(Spread{b.SE * b.SE, b.DF})
	return a.Value - b.Value, spread, a.HasInterval() && b.HasInterval() && spread.df > 0
}

// excludes reports whether Student's interval of a difference with this variance does not contain 0.
func (s Spread) excludes(difference, confidence float64) bool {
	return math.Abs(difference) > stats.StudentQuantile((1+confidence)/2, s.df)*math.Sqrt(s.variance)
}

// entersDifferently is the confidence at which arms differ in the effect of entering after another arm. Accidents cost a decision in one
// run of a hundred.
const entersDifferently = 0.99

// Lingering returns the largest bias, as a logarithm, that the rest of an effect on the trial of entering may have in the ratio of two
// arms, at a one-sided confidence of 95 %; 0 where the arms do not differ in the effect of entering. Significant reports whether the rest
// itself is.
//
// An effect that falls by a factor r from trial to trial is c, r·c and r²·c in a visit of three. The difference f of the first trial from
// the mean of the others and the change g from the second to the third have the ratio g/f = r/(1+r/2), and the mean of the others, which
// is the bias, is f·r(1+r)/(2(1-r)(1+r/2)).
func (d *Data) Lingering(mine, theirs Quantity, comparisons float64) (bias float64, significant bool) {
	entered, spread, ok := d.enteringDifference(mine, theirs)
	if !ok || !spread.excludes(entered, entersDifferently) {
		return 0, false
	}
	rest := studentInference(blockDifferences(d.changes(mine), d.changes(theirs), false), d.GateConfidence, false)
	if !rest.HasInterval() {
		return 0, false
	}
	change := Spread{rest.SE * rest.SE, rest.DF}
	significant = entered*rest.Value > 0 && change.excludes(rest.Value, 1-(1-d.GateConfidence)/comparisons)
	return lingeringBias(entered, rest.Value, change), significant
}

// slowestDecay is the largest factor from trial to trial that is allowed for. An effect that hardly decays cannot be told from one of the
// arm itself.
const slowestDecay = 0.9

// lingeringBias returns the largest bias of an effect on the trial of entering, by the change of the later trials of a visit.
func lingeringBias(entered, change float64, spread Spread) float64 {
	const level = 0.95
	share := (change*math.Copysign(1, entered) + stats.StudentQuantile(level, spread.df)*math.Sqrt(spread.variance)) / math.Abs(entered)
	if share <= 0 {
		return 0
	}
	r := slowestDecay
	if share < 2 {
		r = min(r, share/(1-share/2))
	}
	return math.Abs(entered) * r * (1 + r) / (2 * (1 - r) * (1 + r/2))
}

// changes are the logarithms of the first over the mean of the later trials after themselves in a visit, by block.
func (d *Data) changes(q Quantity) map[string][]float64 {
	type trial struct {
		slot  int
		value float64
	}
	blocks := map[string][]trial{}
	for attempt, metric := range d.reported(q.Cell, q.Metric) {
		if value, ok := d.Chosen.Histograms.Statistic(metric, q.Statistic); ok && value > 0 {
			blocks[attempt.Block] = append(blocks[attempt.Block], trial{attempt.Slot, math.Log(value)})
		}
	}
	out := map[string][]float64{}
	for block, trials := range blocks {
		// Every arm has one visit in a block, and the attempts are in the order of their slots.
		first, later := trials[0], trials[1:]
		if len(later) == 0 {
			continue
		}
		sum := 0.0
		for _, t := range later {
			sum += t.value
		}
		out[block] = []float64{first.value - sum/float64(len(later))}
	}
	return out
}
