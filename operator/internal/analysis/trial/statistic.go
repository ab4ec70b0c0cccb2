package trial

import (
	"fmt"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// bar is a value and how often it was seen.
type bar struct {
	value float64
	count int64
}

// decoded is what a histogram holds, and how finely it distinguishes values: to so many significant digits, and no finer than a unit.
type decoded struct {
	bars              []bar
	unit, half, scale float64
}

// mostBars is how many different values a histogram may have: as many as a list has samples. Eight kilobytes of what a program prints may
// say six million.
const mostBars = 100_000

// MostValues is how many values the histogram of a trial may hold in all: those of a hundred thousand trials together are fewer than
// an analysis may count, and can be added up.
const MostValues = 1 << 36

// Histograms are those that were decoded.
type Histograms map[*record.Histogram]decoded

// Decode unpacks an HdrHistogram. Every value stands for its bucket as HdrHistogram's own percentiles do: by the highest value that the
// bucket does not distinguish.
func (h Histograms) Decode(histogram *record.Histogram) error {
	found, err := hdrhistogram.Decode([]byte(histogram.Data))
	if err != nil {
		return fmt.Errorf("histogram cannot be decoded: %w", err)
	}
	switch {
	case found.TotalCount() != histogram.Count:
		return fmt.Errorf("invalid histogram: it holds %d values and its count is %d", found.TotalCount(), histogram.Count)
	case histogram.Count > MostValues:
		return fmt.Errorf("invalid histogram: it holds %d values, and at most %d are allowed", histogram.Count, MostValues)
	}
	// Twice as many values as the digits have are distinguished, rounded up to a power of two, and of these the upper half in each
	// doubling (Tene, HdrHistogram).
	distinguished := math.Exp2(math.Ceil(math.Log2(2 * math.Pow10(int(found.SignificantFigures())))))
	unit := math.Exp2(math.Floor(math.Log2(math.Max(1, float64(found.LowestTrackableValue())))))
	out := decoded{unit: unit, half: distinguished / 2, scale: histogram.Scale}
	// A list of all buckets would take a gigabyte: the widest histogram has six million, and all but a few of them are empty.
	half, width := int(out.half), int64(unit)
	for i, count := range found.Export().Counts {
		switch {
		case count <= 0:
			continue
		case len(out.bars) == mostBars:
			return fmt.Errorf("invalid histogram: it has values in more than %d buckets, and a list has no more samples; record fewer significant "+
				"digits", mostBars)
		}
		// The buckets of the first two halves are a unit wide, those of each half after them twice as wide as those before.
		doubled := max(0, i/half-1)
		highest := int64(i-doubled*half+1)*(width<<doubled) - 1
		out.bars = append(out.bars, bar{float64(highest) * histogram.Scale, count})
	}
	h[histogram] = out
	return nil
}

// Each visits the values of a metric as reported, with how often each was seen.
func (h Histograms) Each(metric record.Metric, visit func(value float64, count int64)) {
	if metric.Value != nil {
		visit(*metric.Value, 1)
	}
	for _, value := range metric.Samples {
		visit(value, 1)
	}
	if metric.Histogram != nil {
		for _, b := range h[metric.Histogram].bars {
			visit(b.value, b.count)
		}
	}
}

// Statistic is a trial's one number, or false when the metric as reported has none.
func (h Histograms) Statistic(metric record.Metric, statistic experiment.Statistic) (float64, bool) {
	if metric.Value != nil {
		return *metric.Value, true
	}
	if metric.Histogram != nil {
		return barStatistic(h[metric.Histogram].bars, statistic)
	}
	return sampleStatistic(metric.Samples, statistic)
}

// At is a statistic of one histogram, percentiles too; false where it has none.
func (h Histograms) At(histogram *record.Histogram, statistic experiment.Statistic) (float64, bool) {
	bars := h[histogram].bars
	share, percentile := experiment.Percentiles[statistic]
	if !percentile {
		return barStatistic(bars, statistic)
	}
	rank, below := stats.NearestRank(share, histogram.Count), int64(0)
	for _, b := range bars {
		if below += b.count; below >= rank {
			return b.value, true
		}
	}
	return 0, false
}

// Distinct is how many different values a metric has as reported, at most.
func (h Histograms) Distinct(metric record.Metric) int {
	return max(1, len(metric.Samples), len(h[metric.Histogram].bars))
}

// Width is that of the bucket of a histogram in which a value lies.
func (h Histograms) Width(histogram *record.Histogram, value float64) float64 {
	of := h[histogram]
	if of.half == 0 {
		return 0
	}
	return of.scale * math.Max(of.unit, math.Exp2(math.Floor(math.Log2(value/of.scale)))/of.half)
}

// PositivePercentile reports whether a percentile of one trial's samples is positive. If it is in every trial, it is in all of them
// merged, whatever the weights of the blocks.
func (h Histograms) PositivePercentile(metric record.Metric, share float64) bool {
	var total, others int64
	h.Each(metric, func(value float64, n int64) {
		total += n
		if !(value > 0) {
			others += n
		}
	})
	return others < stats.NearestRank(share, total)
}

// Samples is how many samples a trial has of a metric.
func Samples(metric record.Metric) int64 {
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
		return stats.Mean(samples), true
	case experiment.StatisticMin:
		return slices.Min(samples), true
	case experiment.StatisticMax:
		return slices.Max(samples), true
	case experiment.StatisticMedian:
		return stats.Median(samples), true
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

// Statistic is one statistic of one trial.
type Statistic struct {
	Statistic experiment.Statistic
	Value     float64
}

// Statistics are all statistics that one trial has of a metric, and how many samples they rest on. Percentiles are not
// among them: they are of all trials of an arm, merged.
func Statistics(metric record.Metric) (statistics []Statistic, samples int64, err error) {
	if metric.Value != nil {
		return []Statistic{{experiment.StatisticValue, *metric.Value}}, 1, nil
	}
	histograms := Histograms{}
	if metric.Histogram != nil {
		if err := histograms.Decode(metric.Histogram); err != nil {
			return nil, 0, err
		}
	}
	for _, statistic := range []experiment.Statistic{
		experiment.StatisticValue, experiment.StatisticMedian, experiment.StatisticMean, experiment.StatisticMin, experiment.StatisticMax,
	} {
		if value, ok := histograms.Statistic(metric, statistic); ok {
			statistics = append(statistics, Statistic{statistic, value})
		}
	}
	return statistics, Samples(metric), nil
}
