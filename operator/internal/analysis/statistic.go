package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// bar is a value and how often it was seen.
type bar struct {
	value float64
	count int64
}

// decodeHistogram unpacks an HdrHistogram. Every value stands for its bucket as HdrHistogram's own percentiles do: by the
// highest value that the bucket does not distinguish.
func decodeHistogram(histogram *record.Histogram) ([]bar, error) {
	decoded, err := hdrhistogram.Decode([]byte(histogram.Data))
	if err != nil {
		return nil, fmt.Errorf("histogram cannot be decoded: %w", err)
	}
	if decoded.TotalCount() != histogram.Count {
		return nil, fmt.Errorf("invalid histogram: it holds %d values and its count is %d", decoded.TotalCount(), histogram.Count)
	}
	var bars []bar
	for _, b := range decoded.Distribution() {
		if b.Count > 0 {
			bars = append(bars, bar{float64(b.To) * histogram.Scale, b.Count})
		}
	}
	return bars, nil
}

// histograms are those that were decoded.
type histograms map[*record.Histogram][]bar

// each visits the values of a metric as reported, with how often each was seen.
func (h histograms) each(metric record.Metric, visit func(value float64, count int64)) {
	if metric.Value != nil {
		visit(*metric.Value, 1)
	}
	for _, value := range metric.Samples {
		visit(value, 1)
	}
	if metric.Histogram != nil {
		for _, b := range h[metric.Histogram] {
			visit(b.value, b.count)
		}
	}
}

// statistic is a trial's one number, or false when the metric as reported has none.
func (h histograms) statistic(metric record.Metric, statistic experiment.Statistic) (float64, bool) {
	if metric.Value != nil {
		return *metric.Value, true
	}
	if metric.Histogram != nil {
		return barStatistic(h[metric.Histogram], statistic)
	}
	return sampleStatistic(metric.Samples, statistic)
}

// positivePercentile reports whether a percentile of one trial's samples is positive. If it is in every trial, it is in all of them
// merged, whatever the weights of the blocks.
func (h histograms) positivePercentile(metric record.Metric, share float64) bool {
	var total, others int64
	h.each(metric, func(value float64, n int64) {
		total += n
		if !(value > 0) {
			others += n
		}
	})
	return others < nearestRank(share, total)
}

// countSamples is how many samples a trial has of a metric.
func countSamples(metric record.Metric) int64 {
	switch {
	case metric.Value != nil:
		return 1
	case metric.Histogram != nil:
		return metric.Histogram.Count
	default:
		return int64(len(metric.Samples))
	}
}

func sampleStatistic(samples []float64, statistic experiment.Statistic) (float64, bool) {
	if len(samples) == 0 {
		return 0, false
	}
	switch statistic {
	case experiment.StatisticValue:
		return samples[0], len(samples) == 1
	case experiment.StatisticMean:
		return mean(samples), true
	case experiment.StatisticMin:
		return slices.Min(samples), true
	case experiment.StatisticMax:
		return slices.Max(samples), true
	case experiment.StatisticMedian:
		return median(samples), true
	default:
		return 0, false
	}
}

func barStatistic(bars []bar, statistic experiment.Statistic) (float64, bool) {
	if len(bars) == 0 {
		return 0, false
	}
	var total, sum float64
	for _, b := range bars {
		total += float64(b.count)
		sum += b.value * float64(b.count)
	}
	switch statistic {
	case experiment.StatisticMean:
		return sum / total, true
	case experiment.StatisticMin:
		return bars[0].value, true
	case experiment.StatisticMax:
		return bars[len(bars)-1].value, true
	case experiment.StatisticMedian:
		var below float64
		for _, b := range bars {
			if below += float64(b.count); below >= total/2 {
				return b.value, true
			}
		}
	}
	return 0, false
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// perBlock are the trial statistics of a quantity by block, and how many samples they rest on.
func (d *data) perBlock(q quantityOf) map[string][]float64 {
	if known, ok := d.series[q]; ok {
		return known
	}
	out := map[string][]float64{}
	for _, attempt := range d.trials[q.cell] {
		if metric, ok := attempt.Metric(q.metric); ok {
			if value, ok := d.chosen.histograms.statistic(metric, q.statistic); ok {
				out[attempt.Block] = append(out[attempt.Block], value)
			}
		}
	}
	d.eachTimeout(q, func(value float64, _ int64, block string) { out[block] = append(out[block], value) })
	d.series[q] = out
	return out
}

// samples counts the in-process samples of a metric in an arm at a point.
func (d *data) samples(c cell, metric string) int {
	var count int64
	for _, attempt := range d.trials[c] {
		if reported, ok := attempt.Metric(metric); ok {
			count += countSamples(reported)
		}
	}
	d.eachTimeout(quantityOf{cell: c, metric: metric}, func(_ float64, samples int64, _ string) { count += samples })
	return int(count)
}

// without explains that a quantity is not known of any trial that counts.
func (d *data) without(q quantityOf) string {
	n := len(d.trials[q.cell])
	text := fmt.Sprintf("%s has no value in any of the %d trials of arm %s that count", q.metric, n, d.exp.Arms[q.arm].Name)
	if role, quantity := record.FindProcessQuantity(q.metric); n > 0 && quantity != nil && quantity.Unit == "By" && role == "" {
		text += "; of a process that uses less memory than the runner no peak is known"
	}
	return text
}

// noRatio explains why a metric with values that are not positive has no ratio, and how to judge it.
func noRatio(metric string, groups ...map[string][]float64) string {
	bad, all := 0, 0
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
	return fmt.Sprintf("%s has values that are not positive (in %d of %d trials), and a ratio needs positive ones: judge the figure itself, "+
		"with AtMost or AtLeast", metric, bad, all)
}

// allPositive reports whether logarithms can be taken.
func allPositive(groups ...map[string][]float64) bool {
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
