package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// warnings are what a careful reviewer would raise. Each is one sentence that names what it speaks of.
// Own are the attempts of this experiment, whether they count or not.
func warnings(d *data, parity *parityReport, found *Analysis, own []*record.Attempt) []string {
	return slices.Concat(
		parityWarnings(d, parity),
		exclusionWarnings(d.chosen),
		noiseWarnings(d.exp, d.chosen.noise),
		experiment.EnvironmentWarnings(d.exp.Plan.Requires.Require),
		lossWarnings(d),
		strictWarnings(d),
		isolationWarnings(d, found.Isolation),
		metricWarnings(d),
		ceilingWarnings(d),
		phaseWarnings(d),
		axisWarnings(d),
		predictionWarnings(found.Predicted),
		rankingWarnings(d, parity),
		controlWarnings(found),
		nodeWarnings(found.Ratios),
		buildWarnings(d),
		selfReportWarnings(d),
		unfinishedWarnings(d.exp, d.chosen.unended),
		clockWarnings(clocksOf(own)),
	)
}

// parityWarnings make sure that a wrong output is seen also where no gate turns it into a verdict.
func parityWarnings(d *data, parity *parityReport) []string {
	var out []string
	if parity.baseline != "" {
		out = append(out, "outputs differ: "+parity.baseline)
	}
	if d.exp.Plan.Parity == experiment.ParityPerArm {
		out = append(out, "the arms have different inputs (spec.parity: PerArm): their outputs were not compared with each other")
	}
	for _, name := range d.exp.Candidates() {
		if reason := parity.wrong[name]; reason != "" {
			out = append(out, "outputs differ: "+reason)
		}
	}
	return out
}

func exclusionWarnings(chosen *selection) []string {
	if len(chosen.rejected) == 0 {
		return nil
	}
	counts := map[rejection]int{}
	for _, r := range chosen.rejected {
		counts[r.kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return []string{"objects of the ledger that are not in the figures: " + strings.Join(parts, ", ")}
}

func isolationWarnings(d *data, levels map[string]int) []string {
	if !d.exp.Plan.Placement.AsksExclusiveCPUs() {
		return nil
	}
	var parts []string
	total := 0
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		total += levels[level]
		if level != "ExclusiveCPUs" {
			parts = append(parts, fmt.Sprintf("%d had isolation %s", levels[level], level))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the run asks for exclusive CPUs; of %d attempts used %s", total, strings.Join(parts, ", "))}
}

// metricWarnings name metrics that some results lack and none should.
func metricWarnings(d *data) []string {
	var out []string
	for _, metric := range d.exp.Metrics() {
		if metric.Optional {
			continue
		}
		name, statistic := metric.Name, metric.Statistic
		var lacking, total int
		for point := range d.exp.Points {
			for arm := range d.exp.Arms {
				for _, attempt := range d.trials[cell{point, arm}] {
					total++
					metric, ok := attempt.Metric(name)
					if ok && experiment.Percentiles[statistic] == 0 {
						_, ok = d.chosen.histograms.statistic(metric, statistic)
					}
					if !ok {
						lacking++
					}
				}
			}
		}
		if lacking > 0 {
			out = append(out, fmt.Sprintf("metric %s has no %s in %d of %d results", name, statistic, lacking, total))
		}
	}
	return out
}

// ceilingTolerance allows for the error of the probe that measured the limit.
const ceilingTolerance = 1.02

func ceilingWarnings(d *data) []string {
	var out []string
	for arm := range d.exp.Arms {
		worst := ceiling{share: ceilingTolerance}
		where := -1
		for point := range d.exp.Points {
			if c := d.bindingCeiling(cell{point, arm}); c != nil && c.share > worst.share {
				worst, where = *c, point
			}
		}
		if where >= 0 {
			out = append(out, fmt.Sprintf("arm %s claims %.0f %% of the ceiling %s at %s: more than the machine can do, so one of the two is "+
				"measured wrongly",
				d.exp.Arms[arm].Name, 100*worst.share, worst.name, PointName(d.exp.Points[where].Key)))
		}
	}
	return out
}

// phaseTolerance is how far the phases may be from the whole before an attribution to them is doubtful.
const phaseTolerance = 0.05

// phaseWarnings compare the sum of the phases with the time of one iteration.
func phaseWarnings(d *data) []string {
	metric := latencyMetric(d)
	if metric == "" {
		return nil
	}
	var out []string
	for arm := range d.exp.Arms {
		worst, where := 0.0, -1
		for point := range d.exp.Points {
			c := cell{point, arm}
			names, series := d.phases(c)
			whole := d.perBlock(quantityOf{c, metric, experiment.StatisticMean})
			if len(names) == 0 || len(whole) == 0 {
				continue
			}
			var sum float64
			for _, name := range names {
				sum += overBlocks(series[name].blocks)
			}
			total := overBlocks(whole)
			if off := sum/total - 1; total > 0 && math.Abs(off) > math.Max(phaseTolerance, math.Abs(worst)) {
				worst, where = off, point
			}
		}
		if where >= 0 {
			out = append(out, fmt.Sprintf("the phases of arm %s add up to %.0f %% of %s at %s: what they are blamed for is doubtful",
				d.exp.Arms[arm].Name, 100*(1+worst), metric, PointName(d.exp.Points[where].Key)))
		}
	}
	return out
}

// overBlocks is the mean over blocks, added up in the order of their names.
func overBlocks(blocks map[string][]float64) float64 {
	means := blockMeans(blocks, false)
	var sum float64
	for _, block := range slices.Sorted(maps.Keys(means)) {
		sum += means[block]
	}
	return sum / float64(len(means))
}

// latencyMetric is the metric that phases are parts of: the one called latency, else the only one in seconds.
func latencyMetric(d *data) string {
	only := ""
	for _, metric := range d.exp.Plan.Metrics {
		if metric.Unit != "s" {
			continue
		}
		if metric.Name == "latency" {
			return metric.Name
		}
		if only != "" {
			return ""
		}
		only = metric.Name
	}
	return only
}

func predictionWarnings(predicted []PredictionResult) []string {
	var out []string
	for _, p := range predicted {
		if missed, message := judgePrediction(p.Predicted, p.Measured); missed {
			out = append(out, fmt.Sprintf("%s of %s at %s: %s", p.Metric, p.Candidate, PointName(p.Point), message))
		}
	}
	return out
}
