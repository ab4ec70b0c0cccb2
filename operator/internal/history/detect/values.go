package detect

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// OfValues returns the point of repeated measurements of one build: the mean of their logarithms with its standard error. A single value
// has no error. Values are above 0.
func OfValues(values []float64) Observation {
	logarithms := make([]float64, len(values))
	for i, v := range values {
		logarithms[i] = math.Log(v)
	}
	if len(values) < 2 {
		return Observation{Y: logarithms[0]}
	}
	mean, variance := stat.MeanVariance(logarithms, nil)
	n := float64(len(values))
	return Observation{Y: mean, SE: math.Sqrt(variance / n), DF: n - 1}
}
