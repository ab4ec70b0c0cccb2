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

// bar is a value and its count.
type bar struct {
	value float64
	count int64
}

// decoded holds the values of a histogram and its resolution. Up to 2*half units a bucket has the width unit; above that the width
// doubles with the value, so that every power of two has half buckets. Values are in units of scale.
type decoded struct {
	bars              []bar
	unit, half, scale float64
}

// mostBars limits the different values of a histogram to the length of a list of samples. Eight kilobytes of output can encode six million.
const mostBars = 100_000

// MostValues limits the number of values in the histogram of a trial, so that the sum over a hundred thousand trials does not overflow the
// counters of an analysis.
const MostValues = 1 << 36

// Histograms are decoded histograms.
type Histograms map[*record.Histogram]decoded

// Decode decodes an HdrHistogram and adds it. Every value is represented by the highest value of its bucket, as in HdrHistogram's
// percentiles. It returns an error for data that cannot be decoded, that contradicts its count, or that exceeds MostValues or mostBars.
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
	// The number of distinguished values is twice the number that the digits have, rounded up to a power of two. Each further doubling of the
	// range adds half as many buckets (Tene, HdrHistogram).
	distinguished := math.Exp2(math.Ceil(math.Log2(2 * math.Pow10(int(found.SignificantFigures())))))
	unit := math.Exp2(math.Floor(math.Log2(math.Max(1, float64(found.LowestTrackableValue())))))
	out := decoded{unit: unit, half: distinguished / 2, scale: histogram.Scale}
	// Empty buckets are skipped: the widest histogram has six million, and a list of them would need a gigabyte.
	half, width := int(out.half), int64(unit)
	for i, count := range found.Export().Counts {
		switch {
		case count <= 0:
			continue
		case len(out.bars) == mostBars:
			return fmt.Errorf("invalid histogram: it has values in more than %d buckets, and a list has no more samples; record fewer significant "+
				"digits", mostBars)
		}
		// The buckets of the first two halves are one unit wide, and those of each later half twice as wide as in the half before.
		doubled := max(0, i/half-1)
		highest := int64(i-doubled*half+1)*(width<<doubled) - 1
		out.bars = append(out.bars, bar{float64(highest) * histogram.Scale, count})
	}
	h[histogram] = out
	return nil
}

// Each visits the values of a reported metric with their counts.
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

// Statistic returns a statistic of a reported metric over one trial; false if the metric does not have it.
func (h Histograms) Statistic(metric record.Metric, statistic experiment.Statistic) (float64, bool) {
	if metric.Value != nil {
		return *metric.Value, true
	}
	if metric.Histogram != nil {
		return barStatistic(h[metric.Histogram].bars, statistic)
	}
	return sampleStatistic(metric.Samples, statistic)
}

// At returns a statistic of one histogram, which may be a percentile; false if the histogram does not have it.
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

// Distinct returns an upper bound of the number of different values of a reported metric.
func (h Histograms) Distinct(metric record.Metric) int {
	return max(1, len(metric.Samples), len(h[metric.Histogram].bars))
}

// Width returns the width of the bucket of a value; 0 if the histogram was not decoded.
func (h Histograms) Width(histogram *record.Histogram, value float64) float64 {
	of := h[histogram]
	if of.half == 0 {
		return 0
	}
	return of.scale * math.Max(of.unit, math.Exp2(math.Floor(math.Log2(value/of.scale)))/of.half)
}

// PositivePercentile reports whether a percentile of one trial's samples is positive. If it is positive in every trial, it is positive in
// their merged samples, with any weights of the blocks.
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

// Samples returns the number of samples of a reported metric.
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
	default: // One number per trial, and percentiles of merged samples.
	}
	return 0, false
}

// Statistic is the value of a statistic of one trial.
type Statistic struct {
	Statistic experiment.Statistic
	Value     float64
}

// Statistics returns all statistics of a metric over one trial, and the number of its samples. Percentiles are not included because they
// are computed over the merged trials of an arm. It returns an error if the histogram cannot be decoded.
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
