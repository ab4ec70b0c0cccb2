// Package stats has the distributions, tests and limits of an analysis, each with its source. It operates on plain numbers, independent of
// experiments.
package stats

import (
	"math"
	"slices"
	"strconv"
)

// Round rounds to 12 significant digits. These exceed the accuracy of any measurement, and hide rounding differences between CPUs.
func Round(value float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'e', 11, 64), 64) // The text is a number, and the largest is rounded down.
	return rounded
}

// Finite returns the rounded value, or nil for infinity and NaN, which JSON cannot represent.
func Finite(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	value = Round(value)
	return &value
}

// NearestRank returns the rank of the percentile in the sorted samples, counted from 1.
func NearestRank(share float64, total int64) int64 {
	return max(1, int64(math.Ceil(share*float64(total)-1e-9)))
}

// Mean returns the arithmetic mean, summed in the order of the values.
func Mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Median is the middle value, or the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Squares is the sum of the squared distances from a center.
func Squares(values []float64, center float64) float64 {
	var sum float64
	for _, value := range values {
		sum += (value - center) * (value - center)
	}
	return sum
}
