package analysis

import (
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"
)

// minBlocks is how few blocks can carry an interval. With two, a Student interval is so wide that it says nothing.
const minBlocks = 3

// inference is an estimate together with what it takes to decide on it.
type inference struct {
	value     float64
	low, high float64
	// se is the standard error on the working scale: of the logarithm when logarithmic is set.
	se          float64
	logarithmic bool
	blocks      int
	// df are the degrees of freedom of the standard error.
	df       float64
	samples  int
	perBlock map[string]float64
	// perNode and nodesDiffer say what happened between nodes; see nodes.go.
	perNode     []NodeResult
	nodesDiffer bool
	// series describes how the blocks behave over the run, and resolution what the clock can resolve; see serial.go and clock.go.
	series     *BlockSeries
	resolution *Resolution
	// down and up are how far the ends lie beyond what the spread of blocks explains, on the working scale.
	down, up float64
	// builds is how few builds an arm has that is several; 0 where each is one. See buildeffect.go.
	builds int
	// ends are the interval's ends at a confidence, on the working scale.
	ends func(confidence float64) (low, high float64)
	// tail is the p-value of the one-sided hypothesis that the truth lies at the bound or beyond it, on the side away from
	// the estimate.
	tail func(bound float64) float64
	// reason is why there is no interval; empty when there is one.
	reason string
}

func (i inference) hasInterval() bool { return i.reason == "" }

// at is the inference with its interval at a confidence.
func (i inference) at(confidence float64) inference {
	if i.hasInterval() {
		low, high := i.ends(confidence)
		i.low, i.high = i.unscale(low), i.unscale(high)
	}
	return i
}

// including reaches over another interval around the same estimate as well: a bound is excluded only if both exclude it.
func (i inference) including(other inference) inference {
	ends, tail := i.ends, i.tail
	i.ends = func(confidence float64) (low, high float64) {
		low, high = ends(confidence)
		a, b := other.ends(confidence)
		return min(low, a), max(high, b)
	}
	i.tail = func(bound float64) float64 { return max(tail(bound), other.tail(bound)) }
	if studentQuantile(0.975, other.df)*other.se > studentQuantile(0.975, i.df)*i.se {
		i.se, i.df = other.se, other.df
	}
	return i
}

// moved takes the ends further out by fixed distances on the working scale, whatever the confidence.
func (i inference) moved(down, up float64) inference {
	if !i.hasInterval() || down == 0 && up == 0 {
		return i
	}
	ends, tail, center := i.ends, i.tail, i.scale(i.value)
	i.down, i.up = i.down+down, i.up+up
	i.ends = func(confidence float64) (low, high float64) {
		low, high = ends(confidence)
		return low - down, high + up
	}
	scale, unscale := i.scale, i.unscale
	i.tail = func(bound float64) float64 {
		at := scale(bound)
		if at > center {
			at = max(center, at-up)
		} else {
			at = min(center, at+down)
		}
		if at == center {
			return 0.5
		}
		return tail(unscale(at))
	}
	return i
}

// scale brings a number to the working scale.
func (i inference) scale(value float64) float64 {
	if i.logarithmic {
		return math.Log(value)
	}
	return value
}

func (i inference) unscale(value float64) float64 {
	if i.logarithmic {
		return math.Exp(value)
	}
	return value
}

// estimate is the inference as the analysis shows it; nil when there is not even a value.
func (i inference) estimate(unit string) *Estimate {
	if i.blocks == 0 || math.IsNaN(i.value) || math.IsInf(i.value, 0) {
		return nil
	}
	out := &Estimate{Value: round(i.value), Unit: unit, Blocks: i.blocks, Samples: i.samples}
	if i.hasInterval() {
		out.Low, out.High = finite(i.low), finite(i.high)
	}
	return out
}

// ratio is an inference about candidate over baseline as the analysis shows it.
func (i inference) ratio() *Estimate {
	out := i.estimate("1")
	if out != nil {
		out.Ratio = true
	}
	return out
}

// minimumDetectableEffect is the smallest true relative change that blocks this many and this noisy would find with 80 %
// probability: (t(1-α/2) + t(0.8)) standard errors (Bloom 1995, Evaluation Review 19:547).
func (i inference) minimumDetectableEffect(confidence float64) *float64 {
	if !i.hasInterval() {
		return nil
	}
	const power = 0.8
	effect := (studentQuantile((1+confidence)/2, i.df)+studentQuantile(power, i.df))*i.se + max(i.down, i.up)
	if i.logarithmic {
		return finite(math.Expm1(effect))
	}
	return finite(effect / math.Abs(i.value))
}

// maxFurtherBlocks is where counting stops: nobody will run that many.
const maxFurtherBlocks = 100000

// moreBlocks is how many further blocks would decide against the bound, if estimate and spread stay as they are; nil when
// the estimate sits so close to the bound, or the nodes differ so much, that no number of blocks helps.
func (i inference) moreBlocks(bound, alpha float64) *int {
	if i.nodesDiffer || i.builds > 0 {
		return nil
	}
	distance := i.scale(bound) - i.scale(i.value)
	if distance = max(distance-i.up, -distance-i.down); distance <= 0 {
		return nil
	}
	spread := i.se * math.Sqrt(float64(i.blocks))
	all := blocksWithin(i.blocks, spread, distance, alpha)
	if all == nil {
		return nil
	}
	further := max(1, *all-i.blocks)
	return &further
}

// blocksWithin is how many blocks in all, beside those there are, bring Student's interval of a mean of values with this spread within a
// distance; nil if nobody will run that many.
func blocksWithin(have int, spread, distance, alpha float64) *int {
	enough := func(n int) bool {
		return studentQuantile(1-alpha, float64(n-1))*spread/math.Sqrt(float64(n)) <= distance
	}
	low, high := have, have+maxFurtherBlocks
	switch {
	case have >= minBlocks && enough(have):
		return &have
	case !enough(high):
		return nil
	}
	for low+1 < high {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return &high
}

func studentQuantile(p, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
}

func studentTail(t, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Survival(t)
}

// round keeps 12 significant digits: far more than are known, and few enough that the same analysis on another CPU prints
// the same text.
func round(value float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'e', 11, 64), 64)
	if err != nil {
		return value
	}
	return rounded
}

// finite is a number that JSON can hold, or nil.
func finite(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	value = round(value)
	return &value
}
