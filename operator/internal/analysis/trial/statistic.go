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

// DecodeHistogram unpacks an HdrHistogram. Every value stands for its bucket as HdrHistogram's own percentiles do: by the
// highest value that the bucket does not distinguish.
func DecodeHistogram(histogram *record.Histogram) ([]bar, error) {
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

// Histograms are those that were decoded.
type Histograms map[*record.Histogram][]bar

// Each visits the values of a metric as reported, with how often each was seen.
func (h Histograms) Each(metric record.Metric, visit func(value float64, count int64)) {
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

// Statistic is a trial's one number, or false when the metric as reported has none.
func (h Histograms) Statistic(metric record.Metric, statistic experiment.Statistic) (float64, bool) {
	if metric.Value != nil {
		return *metric.Value, true
	}
	if metric.Histogram != nil {
		return barStatistic(h[metric.Histogram], statistic)
	}
	return sampleStatistic(metric.Samples, statistic)
}

// At is a statistic of one histogram, percentiles too; false where it has none.
func (h Histograms) At(histogram *record.Histogram, statistic experiment.Statistic) (float64, bool) {
	bars := h[histogram]
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

// Precision is how finely a histogram distinguishes values: to so many significant digits, and no finer than a unit.
type Precision struct{ unit, half, scale float64 }

// PrecisionOf reads it from a histogram that can be decoded.
func PrecisionOf(histogram *record.Histogram) Precision {
	decoded, err := hdrhistogram.Decode([]byte(histogram.Data))
	if err != nil {
		return Precision{}
	}
	// Twice as many values as the digits have are distinguished, rounded up to a power of two, and of these the upper half in each
	// doubling (Tene, HdrHistogram).
	distinguished := math.Exp2(math.Ceil(math.Log2(2 * math.Pow10(int(decoded.SignificantFigures())))))
	unit := math.Exp2(math.Floor(math.Log2(math.Max(1, float64(decoded.LowestTrackableValue())))))
	return Precision{unit, distinguished / 2, histogram.Scale}
}

// Width is that of the bucket in which a value lies.
func (p Precision) Width(value float64) float64 {
	if p.half == 0 || !(value > 0) {
		return 0
	}
	return p.scale * math.Max(p.unit, math.Exp2(math.Floor(math.Log2(value/p.scale)))/p.half)
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
	decoded := Histograms{}
	if metric.Histogram != nil {
		if decoded[metric.Histogram], err = DecodeHistogram(metric.Histogram); err != nil {
			return nil, 0, err
		}
	}
	for _, statistic := range []experiment.Statistic{
		experiment.StatisticValue, experiment.StatisticMedian, experiment.StatisticMean, experiment.StatisticMin, experiment.StatisticMax,
	} {
		if value, ok := decoded.Statistic(metric, statistic); ok {
			statistics = append(statistics, Statistic{statistic, value})
		}
	}
	return statistics, Samples(metric), nil
}
