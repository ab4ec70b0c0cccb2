package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// MinBlocks is the smallest number of blocks with an interval. With two, Student's interval is too wide to be useful.
const MinBlocks = 3

// maxFurtherBlocks bounds the search for a number of blocks. More are impractical.
const maxFurtherBlocks = 100000

// BlocksWithin returns the total number of blocks at which Student's interval of a mean of values with this spread has a half width of at
// most distance. It returns nil beyond maxFurtherBlocks.
func BlocksWithin(have int, spread, distance, alpha float64) *int {
	enough := func(n int) bool {
		return StudentQuantile(1-alpha, float64(n-1))*spread/math.Sqrt(float64(n)) <= distance
	}
	switch {
	case have >= MinBlocks && enough(have):
		return &have
	case !enough(have + maxFurtherBlocks):
		return nil
	}
	needed := have + 1 + sort.Search(maxFurtherBlocks-1, func(more int) bool { return enough(have + 1 + more) })
	return &needed
}

// StudentQuantile returns the quantile of Student's distribution.
func StudentQuantile(p, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
}

// StudentTail returns the probability of a larger value in Student's distribution.
func StudentTail(t, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Survival(t)
}

// FTail returns the probability of a larger ratio of two variances in Fisher's F distribution.
func FTail(ratio, df1, df2 float64) float64 {
	return distuv.F{D1: df1, D2: df2}.Survival(ratio)
}

// DistanceTail returns the p-value of a distance from the estimate, with standard error se and df degrees of freedom.
func DistanceTail(distance, se, df float64) float64 {
	switch {
	case se > 0:
		return StudentTail(distance/se, df)
	case distance > 0:
		return 0
	default:
		return 0.5
	}
}
