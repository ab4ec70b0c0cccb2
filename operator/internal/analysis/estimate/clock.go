package estimate

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

type clockOf struct {
	point  int
	metric string
}

const (
	// dithered is the spread of readings, in steps, from which on their mean is unbiased: half a step of true spread, and what
	// the steps themselves add. Readings of two neighbouring steps never reach it.
	dithered = 0.5774
	// finestStep, relative to the values, is the finest that can be distinguished from noise of the last binary digits.
	finestStep = 1e-6
	// mostReadings bounds how many different readings are looked at: a clock so fine does not matter.
	mostReadings = 20000
)

// byClock reports whether a metric is measured by a clock: a time, or a rate that is made of one. Counts and sizes are not, and
// may be known without any error.
func byClock(unit string) (is, rate bool) {
	switch unit {
	case "s", "ms", "us", "µs", "μs", "ns", "min", "h", "seconds":
		return true, false
	}
	of, per, ok := strings.Cut(unit, "/")
	if !ok {
		return unit == "Hz", unit == "Hz"
	}
	if is, _ = byClock(of); is {
		return true, false
	}
	is, _ = byClock(per)
	return is, is
}

// onClock widens the interval of a quantity, or of the ratio of several, by what their clock cannot resolve.
func (d *Data) onClock(found Inference, of ...Quantity) Inference {
	metric := d.Exp.Metric(of[0].Metric)
	if metric == nil || !found.HasInterval() {
		return found
	}
	is, rate := byClock(metric.Unit)
	if !is {
		return found
	}
	resolution := d.clock(clockOf{of[0].Point, metric.Name}, rate)
	if resolution.Step == 0 {
		return found
	}
	coarsest := math.Inf(1)
	for _, q := range of {
		readings, averaged := d.readings(q, rate)
		if len(readings) == 0 {
			return found
		}
		center := stats.Mean(readings)
		coarsest = min(coarsest, math.Abs(center))
		deviation := math.Sqrt(stats.Squares(readings, center) / float64(max(1, len(readings)-1)))
		if !averaged || deviation < dithered*resolution.Step {
			resolution.Widened = true
		}
	}
	resolution.Relative = stats.Round(resolution.Step / coarsest)
	found.Resolution = &resolution
	if !resolution.Widened {
		return found
	}
	width := math.Log1p(resolution.Relative)
	if !found.logarithmic {
		width = resolution.Relative * math.Abs(found.Value)
	}
	return found.moved(width, width).At(d.Confidence)
}

// clock finds the step of a metric's clock at a point: arms share the clock.
func (d *Data) clock(key clockOf, rate bool) analysis.Resolution {
	if known, ok := d.clocks[key]; ok {
		return known
	}
	different := map[float64]bool{}
	for arm := range d.Exp.Arms {
		for _, attempt := range d.Trials[selection.At(key.point, arm)] {
			for _, value := range raw(attempt, key.metric) {
				if len(different) < mostReadings && value > 0 {
					different[reading(value, rate)] = true
				}
			}
		}
	}
	var out analysis.Resolution
	switch values := slices.Sorted(maps.Keys(different)); {
	case len(values) == 1:
		out = analysis.Resolution{Step: lastDigit(values[0], rate), Assumed: true}
	case len(values) > 1 && len(values) < mostReadings:
		out.Step = commonStep(values)
	}
	out.Step = stats.Round(out.Step)
	d.clocks[key] = out
	return out
}

// reading is what the clock measured: of a rate, the time that one takes.
func reading(value float64, rate bool) float64 {
	if rate {
		return 1 / value
	}
	return value
}

// raw are the values as reported; a histogram's are its buckets', which have steps of their own.
func raw(attempt *record.Attempt, metric string) []float64 {
	reported, ok := attempt.Metric(metric)
	switch {
	case !ok || reported.Histogram != nil:
		return nil
	case reported.Value != nil:
		return []float64{*reported.Value}
	default:
		return reported.Samples
	}
}

// readings are the numbers whose spread carries a statistic over the steps: all values where they are averaged, and one of
// every trial where a single value stands for it. A percentile is one value, and no average.
func (d *Data) readings(q Quantity, rate bool) (out []float64, averaged bool) {
	add := func(values []float64) {
		for _, value := range values {
			out = append(out, reading(value, rate))
		}
	}
	switch {
	case q.Statistic == experiment.StatisticMean || q.Statistic == experiment.StatisticValue || experiment.Percentiles[q.Statistic] != 0:
		for _, attempt := range d.Trials[q.Cell] {
			add(raw(attempt, q.Metric))
		}
	default:
		blocks := d.PerBlock(q)
		for _, block := range slices.Sorted(maps.Keys(blocks)) {
			add(blocks[block])
		}
	}
	return out, experiment.Percentiles[q.Statistic] == 0
}

// commonStep is the largest step of which all values are multiples, by Euclid's algorithm for numbers known up to a tolerance;
// 0 when there is none. Times are often differences of large numbers, which have a fine step of their own, so that a coarse one is
// looked for first and with more tolerance.
func commonStep(values []float64) float64 {
	largest := values[len(values)-1]
	for _, tolerance := range []float64{1e-3, 1e-4, 1e-5, 1e-7, 1e-9} {
		// A few values have some step by accident, if they need not fit it well.
		if tolerance > 1e-9 && len(values) < 4 {
			continue
		}
		step := 0.0
		for _, value := range values {
			if step = commonDivisor(step, value, tolerance*largest); step < finestStep*largest || step < 30*tolerance*largest {
				step = 0
				break
			}
		}
		if step > 0 && fits(values, &step) {
			return step
		}
	}
	return 0
}

func commonDivisor(a, b, tolerance float64) float64 {
	for b > tolerance {
		rest := math.Mod(a, b)
		if b-rest <= tolerance {
			rest = 0
		}
		a, b = b, rest
	}
	return a
}

// fits reports whether the values are multiples of the step, and makes the step the one that fits them best.
func fits(values []float64, step *float64) bool {
	var products, squares float64
	for _, value := range values {
		multiple := math.Round(value / *step)
		products += multiple * value
		squares += multiple * multiple
	}
	*step = products / squares
	for _, value := range values {
		if off := math.Abs(value/(*step) - math.Round(value/(*step))); off > 0.02 {
			return false
		}
	}
	return true
}

// lastDigit is the step of the last digit that a number is written with, of those that are known. Of a rate nobody knows how many digits
// its time had.
func lastDigit(value float64, rate bool) float64 {
	if rate {
		value = 1 / value
	}
	text := strconv.FormatFloat(stats.Round(value), 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	power, err := strconv.Atoi(exponent)
	if err != nil {
		return 0
	}
	_, decimals, _ := strings.Cut(mantissa, ".")
	digit := math.Pow10(power - len(decimals))
	if rate {
		return digit / value / value
	}
	return digit
}
