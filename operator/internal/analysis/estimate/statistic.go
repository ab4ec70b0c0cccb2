package estimate

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/record"
)

// PerBlock returns the trial statistics of a quantity by block.
func (d *Data) PerBlock(q Quantity) map[string][]float64 {
	if known, ok := d.series[q]; ok {
		return known
	}
	out := map[string][]float64{}
	for attempt, metric := range d.reported(q.Cell, q.Metric) {
		if value, ok := d.Chosen.Histograms.Statistic(metric, q.Statistic); ok {
			out[attempt.Block] = append(out[attempt.Block], value)
		}
	}
	d.eachTimeout(q, func(value float64, _ int64, block string) { out[block] = append(out[block], value) })
	d.series[q] = out
	return out
}

// samples counts the in-process samples of a metric in an arm at a point.
func (d *Data) samples(c selection.Cell, metric string) int {
	var count int64
	for _, reported := range d.reported(c, metric) {
		count += trial.Samples(reported)
	}
	d.eachTimeout(Quantity{Cell: c, Metric: metric}, func(_ float64, samples int64, _ string) { count += samples })
	return int(count)
}

// without describes a quantity without a value in any trial that counts.
func (d *Data) without(q Quantity) string {
	n := len(d.Trials[q.Cell])
	text := fmt.Sprintf("%s has no value in any of the %d trials of arm %s that count", q.Metric, n, d.Exp.Arms[q.Arm].Name)
	if role, quantity := record.FindProcessQuantity(q.Metric); n > 0 && quantity != nil && quantity.Unit == "By" && role == "" {
		text += "; the peak of a process with less memory than the runner is unknown"
	}
	return text
}

// noRatio explains why a metric with values that are not positive has no ratio, and how to judge it.
func noRatio(metric string, groups ...map[string][]float64) string {
	bad, all := notPositive(groups...)
	return fmt.Sprintf("%s has values that are not positive (in %d of %d trials), and a ratio needs positive ones: judge the change "+
		"in its unit, with DifferenceAtMost or DifferenceAtLeast, or the figure itself, with AtMost or AtLeast", metric, bad, all)
}

// notPositive counts the values without a logarithm, and all values.
func notPositive(groups ...map[string][]float64) (bad, all int) {
	for _, group := range groups {
		for _, values := range group {
			for _, value := range values {
				all++
				if !(value > 0) {
					bad++
				}
			}
		}
	}
	return bad, all
}

// AllPositive reports whether logarithms can be taken.
func AllPositive(groups ...map[string][]float64) bool {
	for _, group := range groups {
		for _, values := range group {
			for _, value := range values {
				if !(value > 0) || math.IsInf(value, 0) {
					return false
				}
			}
		}
	}
	return true
}
