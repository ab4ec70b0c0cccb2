// Package explain derives explanations for the readers of a verdict: warnings, resource usage, blocks to repeat, and the limits of a
// number of blocks. No verdict depends on it.
package explain

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Findings are the explanations of a run for its readers; no verdict depends on them.
type Findings struct {
	Repetition
	// Layout is a sentence, or empty.
	Layout string
	// Warnings weaken the figures, and Notes do not.
	Warnings, Notes []string
	Usage           analysis.Usage
}

// Explain derives the explanations from the measurements and the decisions about them.
func Explain(d *estimate.Data, parity *selection.Parity, ratios []analysis.RatioResult, judged *judge.Findings, evidence record.Evidence,
) Findings {
	return Findings{
		Repetition: Lost(d, evidence), Layout: Layout(d),
		Warnings: Warnings(d, parity, ratios, judged), Notes: Notes(d, parity, judged), Usage: *Usage(d.Exp, d.Chosen),
	}
}

// Warnings are the objections of a careful reviewer: findings for which a figure may be wrong. Each is one sentence that names its subject.
func Warnings(d *estimate.Data, parity *selection.Parity, ratios []analysis.RatioResult, judged *judge.Findings) []string {
	return slices.Concat(
		parityWarnings(d, parity),
		exclusionWarnings(d.Chosen),
		noiseWarnings(d.Exp, d.Chosen.Noise),
		experiment.EnvironmentWarnings(d.Exp.Plan.Requires.Require),
		lossWarnings(d),
		changedWarnings(d),
		strictWarnings(d),
		isolationWarnings(d),
		conditionWarnings(d),
		metricWarnings(d),
		ceilingWarnings(d),
		phaseWarnings(d),
		controlWarnings(judged.Controls, judged.Gates),
		nodeWarnings(ratios, d.Confidence),
		buildWarnings(d),
		selfReportWarnings(d),
		unfinishedWarnings(d.Exp, d.Chosen.Unfinished),
		clockWarnings(clocksOf(d.Chosen.Own)),
	)
}

// Notes are findings that a reader should know and for which no figure is wrong. Each is one sentence that names its subject.
func Notes(d *estimate.Data, parity *selection.Parity, judged *judge.Findings) []string {
	return slices.Concat(
		parityNotes(d),
		noiseNotes(d.Exp, d.Chosen.Noise),
		axisNotes(d),
		predictionNotes(judged.Predicted),
		rankingNotes(d, parity),
	)
}

func parityNotes(d *estimate.Data) []string {
	if d.Exp.Plan.Parity != experiment.ParityPerArm {
		return nil
	}
	return []string{"the arms have different inputs (spec.parity: PerArm): their outputs were not compared with each other"}
}

// parityWarnings reports wrong outputs, also in runs without a gate on them.
func parityWarnings(d *estimate.Data, parity *selection.Parity) []string {
	var out []string
	if parity.Baseline != "" {
		out = append(out, "outputs differ: "+parity.Baseline)
	}
	for _, name := range d.Exp.Candidates() {
		if reason := parity.Wrong[name]; reason != "" {
			out = append(out, "outputs differ: "+reason)
		}
	}
	return out
}

func exclusionWarnings(chosen *selection.Selection) []string {
	if len(chosen.Rejected) == 0 {
		return nil
	}
	counts := selection.Losses{}
	for _, r := range chosen.Rejected {
		counts[string(r.Kind)]++
	}
	return []string{"objects of the ledger that are not in the figures: " + counts.String()}
}

func isolationWarnings(d *estimate.Data) []string {
	if !d.Exp.Plan.Placement.AsksExclusiveCPUs() {
		return nil
	}
	levels, total := d.Chosen.Isolation(), 0
	var parts []string
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

// conditionWarnings name measurement conditions that differ between blocks. Ratios compare inside of blocks; levels do not.
func conditionWarnings(d *estimate.Data) []string {
	const shown = 3
	apart := selection.BlocksApart(d.Chosen.Everywhere())
	if len(apart) == 0 {
		return nil
	}
	text := "blocks were measured differently: " + strings.Join(apart[:min(shown, len(apart))], "; ")
	if more := len(apart) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return []string{text + ": make it constant during a run, and name it in spec.environment.require"}
}

// metricWarnings names required metrics that some results lack.
func metricWarnings(d *estimate.Data) []string {
	var out []string
	for _, metric := range d.Exp.Metrics() {
		if metric.Optional {
			continue
		}
		name, statistic := metric.Name, metric.Statistic
		var lacking, total int
		for point := range d.Exp.Points {
			for arm := range d.Exp.Arms {
				for _, attempt := range d.Trials[selection.At(point, arm)] {
					total++
					metric, ok := attempt.Metric(name)
					if ok && experiment.Percentiles[statistic] == 0 {
						_, ok = d.Chosen.Histograms.Statistic(metric, statistic)
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

func ceilingWarnings(d *estimate.Data) []string {
	var out []string
	for arm := range d.Exp.Arms {
		worst := estimate.Ceiling{Share: ceilingTolerance}
		where := -1
		for point := range d.Exp.Points {
			if c := d.BindingCeiling(selection.At(point, arm)); c != nil && c.Share > worst.Share {
				worst, where = *c, point
			}
		}
		if where >= 0 {
			out = append(out, fmt.Sprintf("arm %s claims %s of the ceiling %s at %s: more than the machine can do, so one of the two is "+
				"measured wrongly",
				d.Exp.Arms[arm].Name, quantity.PercentTo(worst.Share, 0), worst.Name, analysis.PointName(d.Exp.Points[where].Key)))
		}
	}
	return out
}

// phaseTolerance is the relative difference between the sum of the phases and the whole beyond which their attribution is doubtful.
const phaseTolerance = 0.05

// phaseWarnings compare the sum of the phases with the time of one iteration.
func phaseWarnings(d *estimate.Data) []string {
	metric := latencyMetric(d)
	if metric == "" {
		return nil
	}
	var out []string
	for arm := range d.Exp.Arms {
		worst, where := 0.0, -1
		for point := range d.Exp.Points {
			c := selection.At(point, arm)
			names, series := d.Phases(c)
			whole := d.PerBlock(estimate.Quantity{Cell: c, Metric: metric, Statistic: experiment.StatisticMean})
			if len(names) == 0 || len(whole) == 0 {
				continue
			}
			var sum float64
			for _, name := range names {
				sum += overBlocks(series[name].Blocks)
			}
			total := overBlocks(whole)
			if off := sum/total - 1; total > 0 && math.Abs(off) > math.Max(phaseTolerance, math.Abs(worst)) {
				worst, where = off, point
			}
		}
		if where >= 0 {
			out = append(out, fmt.Sprintf("the phases of arm %s add up to %s of %s at %s, so their attribution is doubtful",
				d.Exp.Arms[arm].Name, quantity.PercentTo(1+worst, 0), metric, analysis.PointName(d.Exp.Points[where].Key)))
		}
	}
	return out
}

// overBlocks returns the mean over blocks, summed in the order of their names.
func overBlocks(blocks map[string][]float64) float64 {
	means := estimate.BlockMeans(blocks, false)
	var sum float64
	for _, block := range slices.Sorted(maps.Keys(means)) {
		sum += means[block]
	}
	return sum / float64(len(means))
}

// latencyMetric returns the metric that the phases are parts of: latency, else the only one in seconds, else "".
func latencyMetric(d *estimate.Data) string {
	only := ""
	for _, metric := range d.Exp.Plan.Metrics {
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

func predictionNotes(predicted []analysis.PredictionResult) []string {
	var out []string
	for _, p := range predicted {
		if missed, message := judge.JudgePrediction(p.Predicted, p.Measured); missed {
			out = append(out, fmt.Sprintf("%s of %s at %s: %s", p.Metric, p.Candidate, analysis.PointName(p.Point), message))
		}
	}
	return out
}
