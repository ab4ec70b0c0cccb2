package estimate

import (
	"fmt"
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

// everyArm in the place of a cell's arm stands for all arms of a point.
const everyArm = -1

const (
	// dithered is a spread of readings, in steps, far beyond that of quantization: half a step of true spread in addition to it.
	dithered = 0.5774
	// coarsestSpread is the spread of readings, in digits, below which their last digit limits them, and not a clock.
	coarsestSpread = 3
	// finestStep, relative to the values, is the finest that can be distinguished from noise of the last binary digits.
	finestStep = 1e-6
	// accidental is how many times as large as the shared step an arm's own must be.
	accidental = 3
	// mostPerStep bounds the different readings of one step, which differ by rounding. More are noise around a few values that are a step
	// apart by accident.
	mostPerStep = 3
	// lastDigits is the share of a step within which readings are equal, and lostSeconds its upper limit: the difference of two times in
	// seconds since 1970 has a smaller error, because doubles of that size are 0.24 µs apart.
	lastDigits, lostSeconds = 1e-5, 1e-6
	// negligible is the share of an interval's half width that the bucket of a histogram may be without widening it.
	negligible = 0.1
	// fewestReadings is the smallest number of equal readings that indicates a coarse clock.
	fewestReadings = 3
	// mostReadings bounds the different readings to examine. The step of a clock with more is negligible.
	mostReadings = 20000
	// mostTicks bounds the different readings in which a known tick is searched, because a trial has few ticks of such a coarse clock.
	mostTicks = 1000
	// fewValues is the number of different repeated readings that shows the step of their clock. Equal readings differ by at most
	// roundedTwice last digits, and by the share alikeTo of their value.
	fewValues, roundedTwice, alikeTo = 3, 2.5, 1e-4
	// coarsestDigit is the share of a known tick that the last digit of readings may be.
	coarsestDigit = 0.25
)

// knownTicks are steps of widespread clocks, in seconds, that no decimal number of digits writes exactly: the timer of Windows (64 Hz;
// Microsoft's documentation of GetTickCount64 has it as 10 to 16 ms), and of a program that waits for a screen (60 Hz). The readings show
// all others.
var knownTicks = []float64{1.0 / 60, 1.0 / 64}

// onClock widens the interval of a quantity, or of the ratio of several, by the resolution of the clocks of their arms. The readings of
// arms on one platform share a clock and err in one direction. The error of an arm with a coarser clock is independent.
func (d *Data) onClock(found Inference, of ...Quantity) Inference {
	if !found.HasInterval() {
		return found
	}
	name := of[0].Metric
	_, rate := experiment.ByClock(d.unitOf(name))
	var out analysis.Resolution
	var together, apart, left float64
	low, high := found.Ends(d.GateConfidence)
	for _, q := range of {
		read := d.readBy(q)
		switch {
		case read.silent:
			found.Reason = fmt.Sprintf("every reading of %s is 0, so its clock is too coarse for it", name)
			return found
		case read.step == 0:
			continue
		}
		relative := read.step / read.near // Infinite where it reads 0 beside the steps of others.
		half := (high - low) / 2
		if !found.logarithmic {
			half /= math.Abs(found.Value)
		}
		if read.bucket && NegligibleBucket(relative, half) {
			continue
		}
		if out.Step == 0 || relative > out.Relative {
			out.Step, out.Relative, out.Assumed = stats.Round(read.step), relative, read.assumed
		}
		if read.left == 0 {
			continue
		}
		out.Widened = true
		left = max(left, read.left)
		if read.together {
			together = max(together, relative*read.left)
		} else {
			apart += math.Log1p(relative)
		}
	}
	if out.Step == 0 {
		return found
	}
	width := math.Log1p(together) + apart
	if !found.logarithmic {
		if width = out.Step * left; rate && !math.IsInf(out.Relative, 0) {
			width = out.Relative * left * math.Abs(found.Value)
		}
	}
	if out.Relative = stats.Round(out.Relative); math.IsInf(out.Relative, 0) {
		out.Relative = 1 // A step is all of a reading of 0.
	}
	found.Resolution = &out
	if !out.Widened {
		return found
	}
	return found.moved(width, width).At(d.Confidence)
}

// NegligibleBucket reports whether a bucket of a histogram, relative to the values, is too narrow to widen an interval of such a half
// width.
func NegligibleBucket(relative, half float64) bool { return relative < negligible*half }

// Unresolved is the clock's error of a quantity, by the rules of onClock; nil without an error, and for percentiles, which are not
// compared by block.
func (d *Data) Unresolved(q Quantity) *analysis.ClockResolution {
	if experiment.Percentiles[q.Statistic] != 0 {
		return nil
	}
	read := d.readBy(q)
	if read.step == 0 || read.left == 0 || read.near == 0 {
		return nil
	}
	return &analysis.ClockResolution{Relative: stats.Round(read.step / read.near * read.left), Own: !read.together, Bucket: read.bucket}
}

// readBy describes the clock readings of a quantity.
type readBy struct {
	// step of the clock, and near which reading the statistic is.
	step, near float64
	// bucket reports whether the step is that of a histogram.
	bucket bool
	// left is the share of the step by which a mean of the readings may err: 0 if they spread over enough steps, 1 if their error does not
	// average out.
	left float64
	// assumed reports whether the readings do not show the step, together whether the readings of the other arms err in the same direction,
	// and silent whether all readings are 0 and no other arm's readings show a step.
	assumed, together, silent bool
}

// readBy determines the step of a quantity's readings: the shared step of all arms, the coarser step of its arm, or the width of a
// histogram's buckets for any unit.
func (d *Data) readBy(q Quantity) readBy {
	known, ok := d.reads[q]
	if !ok {
		known = d.findStep(q)
		d.reads[q] = known
	}
	return known
}

func (d *Data) findStep(q Quantity) readBy {
	is, rate := experiment.ByClock(d.unitOf(q.Metric))
	// A count of 0 is 0, and a time of 0 less than a unit of its histogram.
	if value, width := d.bucket(q); width > 0 && (is || value > 0) {
		// A value represents its whole bucket. More values do not locate them inside of it.
		if rate && value > 0 {
			value, width = 1/value, width/value/value
		}
		return readBy{step: width, near: value, left: 1, bucket: true, together: true}
	}
	if rate || !is && !experiment.Exact(d.unitOf(q.Metric)) {
		// A rate that never changes may be that of a coarse clock.
		if out, several := d.rounded(q); out.step > 0 && (several || !rate) {
			return out
		}
	}
	if !is {
		return readBy{}
	}
	readings, averaged := d.readings(q, rate)
	center := stats.Mean(readings)
	if math.IsNaN(center) || math.IsInf(center, 0) {
		return readBy{} // Without readings.
	}
	shared := d.clock(selection.At(q.Point, everyArm), q.Metric, rate)
	out := readBy{step: shared.Step, near: math.Abs(center), left: 1, assumed: shared.Assumed}
	// A few values are all multiples of two or three steps by accident. A single value has no digits that say how coarse its clock was.
	if own := d.clock(q.Cell, q.Metric, rate); own.Assumed || own.Step > accidental*out.step {
		out.step, out.assumed = own.Step, own.Assumed
	}
	// A constant statistic beside a varying one of another arm has a clock coarser than the variation. The upper bound of its unknown step is
	// the value.
	if len(readings) >= fewestReadings && !moves(readings) && out.near > out.step && d.othersMove(q, rate, shared.Step) {
		out.step, out.assumed = out.near, true
	}
	out.together = out.step == shared.Step
	out.silent = center == 0 && out.step == 0
	// Counting whole steps reads half a step too little on average, which cancels if both arms share the clock.
	if averaged && out.together {
		out.left = left(readings, out.step)
	}
	if share := experiment.Percentiles[q.Statistic]; share > 0 && out.step > 0 {
		if rate {
			share = 1 - share
		}
		slices.Sort(readings)
		out.near = math.Abs(readings[stats.NearestRank(share, int64(len(readings)))-1])
	}
	return out
}

// rounded describes readings that their program rounded: they repeat in steps of their last digit and spread over few of them. Without a
// digit that limits them, the step is 0. Several reports whether they differ.
func (d *Data) rounded(q Quantity) (out readBy, several bool) {
	everyone := map[float64]bool{}
	for arm := range d.Exp.Arms {
		other := q
		other.Arm = arm
		values, _ := d.readings(other, false)
		for _, value := range values {
			if value != 0 && len(everyone) < mostReadings {
				everyone[value] = true
			}
		}
	}
	values, averaged := d.readings(q, false)
	of := map[float64]bool{}
	for _, value := range values {
		if value != 0 {
			of[value] = true
		}
	}
	near := math.Abs(stats.Mean(values))
	if len(of) == 0 || len(everyone) > mostTicks || math.IsNaN(near) || math.IsInf(near, 0) {
		return readBy{}, false
	}
	step, own := finestDigit(slices.Sorted(maps.Keys(everyone))), finestDigit(slices.Sorted(maps.Keys(of)))
	out = readBy{near: near, left: 1, together: own <= accidental*step}
	if out.step = step; !out.together {
		out.step = own
	}
	if spread := deviation(values); out.step < finestStep*near || spread >= coarsestSpread*out.step {
		return readBy{}, false
	}
	if averaged && out.together {
		out.left = left(values, out.step)
	}
	if share := experiment.Percentiles[q.Statistic]; share > 0 {
		slices.Sort(values)
		out.near = math.Abs(values[stats.NearestRank(share, int64(len(values)))-1])
	}
	return out, len(of) > 1
}

// left returns the share of a step by which the difference of two means of quantized readings may err. The error of the mean of normal
// noise with standard deviation s, in steps, is at most the sum of exp(-2π²k²s²)/πk over the harmonics k of the error of a quantizer
// (Widrow, Kollár and Liu 1996, IEEE Transactions on Instrumentation and Measurement 45:353). The spread is the smaller of two estimates,
// less half a standard error, so that few readings and rare outliers do not count as noise. Readings of two neighbouring steps may have any
// noise.
func left(readings []float64, step float64) float64 {
	const harmonics, negligible = 5, 0.01
	n := float64(len(readings))
	if n < fewestReadings {
		return 1
	}
	center, distance, steps := stats.Mean(readings), 0.0, map[float64]bool{}
	for _, value := range readings {
		distance += math.Abs(value-center) / n
		steps[math.Round(value/step)] = true
	}
	if len(steps) < 3 {
		return 1
	}
	spread := min(deviation(readings), distance*math.Sqrt(math.Pi/2)) / step
	variance := max(0, spread*spread*(1-0.5*math.Sqrt(2/n))-1.0/12)
	out := 0.0
	for k := 1.0; k <= harmonics; k++ {
		out += 2 / math.Pi / k * math.Exp(-2*math.Pi*math.Pi*k*k*variance)
	}
	if out < negligible {
		return 0
	}
	return min(1, out)
}

// othersMove reports whether the readings of another arm at the point spread over more than the steps that all share.
func (d *Data) othersMove(q Quantity, rate bool, shared float64) bool {
	for arm := range d.Exp.Arms {
		other := q
		if other.Arm = arm; arm == q.Arm {
			continue
		}
		readings, _ := d.readings(other, rate)
		if len(readings) >= fewestReadings && moves(readings) && deviation(readings) >= dithered*shared {
			return true
		}
	}
	return false
}

// moves reports whether readings differ by more than their last binary digits.
func moves(readings []float64) bool {
	return deviation(readings) > 1e-9*math.Abs(stats.Mean(readings))
}

func deviation(values []float64) float64 {
	return math.Sqrt(stats.Squares(values, stats.Mean(values)) / float64(max(1, len(values)-1)))
}

// bucket returns the mean value of a statistic over histograms, also over values that a tool took from one, and the width of the widest
// bucket that contains it; 0 without a histogram.
func (d *Data) bucket(q Quantity) (value, width float64) {
	var values []float64
	for _, metric := range d.reported(q.Cell, q.Metric) {
		if metric.Bin > 0 {
			for _, at := range slices.Concat(metric.Samples, metric.Numbers()) {
				values, width = append(values, at), max(width, metric.Bin*math.Abs(at))
			}
		}
		if metric.Histogram != nil {
			if at, ok := d.Chosen.Histograms.At(metric.Histogram, q.Statistic); ok {
				values, width = append(values, at), max(width, d.Chosen.Histograms.Width(metric.Histogram, at))
			}
		}
	}
	if len(values) == 0 {
		return 0, 0
	}
	return stats.Mean(values), width
}

// clock finds the step of a metric's clock at a point, from the readings of one arm or of all.
func (d *Data) clock(c selection.Cell, metric string, rate bool) analysis.Resolution {
	key := Quantity{Cell: c, Metric: metric}
	if known, ok := d.clocks[key]; ok {
		return known
	}
	different, count := map[float64]bool{}, 0
	for arm := range d.Exp.Arms {
		if c.Arm != everyArm && c.Arm != arm {
			continue
		}
		for _, attempt := range d.Trials[selection.At(c.Point, arm)] {
			for _, value := range raw(attempt, metric) {
				if len(different) < mostReadings && value > 0 {
					different[reading(value, rate)] = true
					count++
				}
			}
		}
	}
	var out analysis.Resolution
	values, unit := slices.Sorted(maps.Keys(different)), experiment.ClockUnit(d.unitOf(metric))
	switch {
	case len(values) == 1:
		// Measured times do not repeat to their last digit. The step may be the whole value.
		out = analysis.Resolution{Step: values[0], Assumed: true}
	case len(values) > 1 && len(values) < mostReadings:
		out.Step = commonStep(values, lostSeconds/unit)
	}
	if !rate {
		out.Step = max(out.Step, knownTick(values, unit))
	}
	if c.Arm != everyArm {
		out.Step = max(out.Step, repeated(values, count))
	}
	out.Step = stats.Round(out.Step)
	d.clocks[key] = out
	return out
}

// unitOf returns the unit of a metric, or of a phase.
func (d *Data) unitOf(name string) string {
	if metric := d.Exp.Metric(name); metric != nil {
		return metric.Unit
	}
	return "s" // Of a phase.
}

// knownTick returns the step of a widespread clock that all values are multiples of, within the rounding of their digits. The unit of the
// values is given in seconds. It returns 0 without such a step, or if the digits are too coarse. A difference of two rounded readings has
// an error of at most one digit.
func knownTick(values []float64, unit float64) float64 {
	if len(values) < 2 || len(values) > mostTicks {
		return 0
	}
	digit := finestDigit(values)
	for _, seconds := range knownTicks {
		tick := seconds / unit
		off := func(value float64) bool {
			ticks := math.Round(value / tick)
			return ticks < 1 || math.Abs(value-ticks*tick) > digit*(1+1e-6)+1e-9*value
		}
		if digit < coarsestDigit*tick && !slices.ContainsFunc(values, off) {
			return tick
		}
	}
	return 0
}

// repeated returns the step of a clock from few repeated readings: the smallest distance between two of them, or the value of a single
// one. Readings finer than their variation do not repeat, independent of their digits, and then it returns 0.
func repeated(values []float64, count int) float64 {
	if len(values) == 0 || len(values) > mostTicks {
		return 0
	}
	digit, step, alike := finestDigit(values), math.Inf(1), 1
	for i, value := range values[1:] {
		// Differences of rounded readings have an error of one digit.
		if gap := value - values[i]; gap > min(roundedTwice*digit, alikeTo*value) {
			step, alike = min(step, gap), alike+1
		}
	}
	switch {
	case alike > fewValues || count < fewestReadings*alike:
		return 0
	case alike == 1:
		return values[len(values)-1]
	}
	return step
}

// reading is the clock's measurement: for a rate, the time of one unit.
func reading(value float64, rate bool) float64 {
	if rate {
		return 1 / value
	}
	return value
}

// raw returns the values as reported, without those of histograms, whose steps are their buckets.
func raw(attempt *record.Attempt, metric string) []float64 {
	reported, ok := attempt.Metric(metric)
	if phase, is := strings.CutPrefix(metric, phasePrefix); is {
		return phaseTimes(attempt, phase)
	}
	switch {
	case !ok || reported.Histogram != nil || reported.Bin > 0:
		return nil
	case reported.Value != nil:
		return []float64{*reported.Value}
	default:
		return reported.Samples
	}
}

// readings returns the numbers that a statistic averages over the clock's steps: all values, or one per trial if the trial reports a
// single value. A percentile is one value, and not an average.
func (d *Data) readings(q Quantity, rate bool) (out []float64, averaged bool) {
	add := func(values []float64) {
		for _, value := range values {
			if value != 0 || !rate { // A rate of 0 has no time that a clock could have read.
				out = append(out, reading(value, rate))
			}
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

// commonStep returns the largest step of which all values are multiples, by Euclid's algorithm with a tolerance; 0 without one. Times are
// often differences of large numbers, which have an additional fine step, so it searches for a coarse step first, with more tolerance.
// Readings that differ by at most lost are equal; lost is infinite for a unit without a length in seconds.
func commonStep(values []float64, lost float64) float64 {
	largest := values[len(values)-1]
	for _, tolerance := range []float64{1e-3, 1e-4, 1e-5, 1e-7, 1e-9} {
		// With a large tolerance, a few values have a common step by accident.
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
		if step > 0 && fits(values, &step, lost) {
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
func fits(values []float64, step *float64, lost float64) bool {
	var products, squares float64
	for _, value := range values {
		multiple := math.Round(value / *step)
		products += multiple * value
		squares += multiple * multiple
	}
	*step = products / squares
	multiples, readings, last := map[float64]bool{}, map[float64]bool{}, min(lastDigits, lost / *step)
	for _, value := range values {
		multiple := math.Round(value / *step)
		multiples[multiple], readings[math.Round(value / *step / last)] = true, true
		if math.Abs(value/(*step)-multiple) > 0.02 {
			return false
		}
	}
	return len(readings) <= mostPerStep*len(multiples)
}

// finestDigit is the step of the last digit of the values.
func finestDigit(values []float64) float64 {
	digit := math.Inf(1)
	for _, value := range values {
		digit = min(digit, lastDigit(value))
	}
	return digit
}

// lastDigit returns the step of the last significant digit of a number.
func lastDigit(value float64) float64 {
	text := strconv.FormatFloat(stats.Round(value), 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	power, err := strconv.Atoi(exponent)
	if err != nil {
		return 0
	}
	_, decimals, _ := strings.Cut(mantissa, ".")
	return math.Pow10(power - len(decimals))
}
