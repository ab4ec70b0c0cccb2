package calibrate

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/quantity"
)

// Share is a proportion with its 95 % confidence interval.
type Share struct {
	Count, Of int
	Low, High float64
}

// NewShare computes Wilson's interval (1927, Journal of the American Statistical Association 22:209), whose coverage is accurate also near
// 0 and 1.
func NewShare(count, of int) Share { return newShareAt(count, of, 0.95) }

func newShareAt(count, of int, confidence float64) Share {
	if of == 0 {
		return Share{Low: 0, High: 1}
	}
	n, p := float64(of), float64(count)/float64(of)
	z := distuv.UnitNormal.Quantile((1 + confidence) / 2)
	center := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return Share{count, of, math.Max(0, center-half), math.Min(1, center+half)}
}

// shareOf returns the share of elements for which holds is true.
func shareOf[T any](all []T, holds func(T) bool) Share {
	count := 0
	for _, one := range all {
		if holds(one) {
			count++
		}
	}
	return NewShare(count, len(all))
}

// student returns the mean of some values and the half width of Student's 95 % interval (1908, Biometrika 6:1).
func student(values []float64, terms int) (mean, half float64) {
	mean, deviation := stat.MeanStdDev(values, nil)
	n, df := float64(len(values)), float64(len(values)-1-terms)
	return mean, stats.StudentQuantile(0.975, df) * deviation * math.Sqrt((n-1)/df/n)
}

// RatioFigure returns the geometric mean of ratios, given as logarithms, with its 95 % interval.
func RatioFigure(name, unit string, logs []float64) Figure {
	mean, half := student(logs, 0)
	return Figure{Figure: name, Value: math.Exp(mean), Unit: unit, Low: math.Exp(mean - half), High: math.Exp(mean + half), Samples: len(logs)}
}

// Value returns the proportion.
func (s Share) Value() float64 {
	if s.Of == 0 {
		return math.NaN()
	}
	return float64(s.Count) / float64(s.Of)
}

func (s Share) String() string {
	if s.Of == 0 {
		return "-"
	}
	return quantity.WithEnds(s.Value(), s.Low, s.High, 4)
}
