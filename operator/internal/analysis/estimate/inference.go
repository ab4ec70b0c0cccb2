package estimate

import (
	"math"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
)

// Inference is an estimate with the statistics that a decision about it needs.
type Inference struct {
	Value     float64
	Low, High float64
	// SE is the standard error on the working scale: of the logarithm when logarithmic is set.
	SE          float64
	logarithmic bool
	Blocks      int
	// DF are the degrees of freedom of the standard error.
	DF       float64
	samples  int
	perBlock map[string]float64
	// terms are the parameters that were fitted to the blocks beside their mean.
	terms int
	// perNode and nodesDiffer describe differences between nodes; see nodes.go.
	perNode     []analysis.NodeResult
	NodesDiffer bool
	// Series describes the blocks over the run, and resolution the clock's resolution; see serial.go and clock.go.
	Series     *analysis.BlockSeries
	Resolution *analysis.Resolution
	// down and up are the distances of the ends beyond the spread of blocks, on the working scale.
	down, up float64
	// Builds is the smallest number of builds of an arm with several; 0 if each arm has one. See buildeffect.go.
	Builds int
	// Ends are the interval's ends at a confidence, on the working scale.
	Ends func(confidence float64) (low, high float64)
	// Tail is the p-value of the one-sided hypothesis that the truth lies at the bound or beyond it, on the side away from
	// the estimate.
	Tail func(bound float64) float64
	// Note describes an unusual estimator; "" for the usual one.
	Note string
	// NoRatio reports whether the interval is missing because values of 0 have no logarithm, and not for lack of data.
	NoRatio bool
	// Reason is the cause of a missing interval; "" with an interval.
	Reason string
}

// HasInterval reports whether the inference has an interval. Without one, Reason is set.
func (i Inference) HasInterval() bool { return i.Reason == "" }

// At is the inference with its interval at a confidence.
func (i Inference) At(confidence float64) Inference {
	if i.HasInterval() {
		low, high := i.Ends(confidence)
		i.Low, i.High = i.unscale(low), i.unscale(high)
	}
	return i
}

// including reaches over another interval around the same estimate as well: a bound is excluded only if both exclude it.
func (i Inference) including(other Inference) Inference {
	ends, tail := i.Ends, i.Tail
	i.Ends = func(confidence float64) (low, high float64) {
		low, high = ends(confidence)
		a, b := other.Ends(confidence)
		return min(low, a), max(high, b)
	}
	i.Tail = func(bound float64) float64 { return max(tail(bound), other.Tail(bound)) }
	if stats.StudentQuantile(0.975, other.DF)*other.SE > stats.StudentQuantile(0.975, i.DF)*i.SE {
		i.SE, i.DF = other.SE, other.DF
	}
	return i
}

// moved shifts the ends outwards by fixed distances on the working scale, at every confidence.
func (i Inference) moved(down, up float64) Inference {
	if !i.HasInterval() || down == 0 && up == 0 {
		return i
	}
	ends, tail, center := i.Ends, i.Tail, i.Scale(i.Value)
	i.down, i.up = i.down+down, i.up+up
	i.Ends = func(confidence float64) (low, high float64) {
		low, high = ends(confidence)
		return low - down, high + up
	}
	scale, unscale := i.Scale, i.unscale
	i.Tail = func(bound float64) float64 {
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

// Scale brings a number to the working scale.
func (i Inference) Scale(value float64) float64 {
	if i.logarithmic {
		return math.Log(value)
	}
	return value
}

func (i Inference) unscale(value float64) float64 {
	if i.logarithmic {
		return math.Exp(value)
	}
	return value
}

// blur returns the difference on the working scale that rounding in sums and logarithms can cause.
func (i Inference) blur() float64 {
	const digits = 1e-12
	if i.logarithmic {
		return digits
	}
	return digits * math.Abs(i.Value)
}

// Estimate is the inference as the analysis shows it; nil when there is not even a value.
func (i Inference) Estimate(unit string) *analysis.Estimate {
	if i.Blocks == 0 || math.IsNaN(i.Value) || math.IsInf(i.Value, 0) {
		return nil
	}
	out := &analysis.Estimate{Value: stats.Round(i.Value), Unit: unit, Blocks: i.Blocks, Samples: i.samples}
	if i.HasInterval() {
		out.Low, out.High = stats.Finite(i.Low), stats.Finite(i.High)
	}
	return out
}

// Ratio is an inference about candidate over baseline as the analysis shows it.
func (i Inference) Ratio() *analysis.Estimate {
	out := i.Estimate("1")
	if out != nil {
		out.Ratio = true
	}
	return out
}

// MinimumDetectableEffect returns the smallest true relative change that this number of blocks with this noise detects with 80 %
// probability: (t(1-α/2) + t(0.8)) standard errors (Bloom 1995, Evaluation Review 19:547).
func (i Inference) MinimumDetectableEffect(confidence float64) *float64 {
	if !i.HasInterval() {
		return nil
	}
	const power = 0.8
	effect := (stats.StudentQuantile((1+confidence)/2, i.DF)+stats.StudentQuantile(power, i.DF))*i.SE + max(i.down, i.up)
	if i.logarithmic {
		return stats.Finite(math.Expm1(effect))
	}
	return stats.Finite(effect / math.Abs(i.Value))
}

// MoreBlocks returns the number of further blocks that would decide against the bound, for the present estimate and spread; nil if the
// estimate is too close to the bound, or the nodes differ too much, for any number of blocks.
func (i Inference) MoreBlocks(bound, alpha float64) *int {
	if i.NodesDiffer || i.Builds > 0 {
		return nil
	}
	distance := i.Scale(bound) - i.Scale(i.Value)
	if distance = max(distance-i.up, -distance-i.down); distance <= 0 {
		return nil
	}
	spread := i.SE * math.Sqrt(float64(i.Blocks))
	all := stats.BlocksWithin(i.Blocks, spread, distance, alpha)
	if all == nil {
		return nil
	}
	further := max(1, *all-i.Blocks)
	return &further
}
