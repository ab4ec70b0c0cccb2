package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// MinBlocks is how few blocks can carry an interval. With two, a Student interval is so wide that it says nothing.
const MinBlocks = 3

// maxFurtherBlocks is where counting stops: nobody will run that many.
const maxFurtherBlocks = 100000

// BlocksWithin is how many blocks in all, beside those there are, bring Student's interval of a mean of values with this spread within a
// distance; nil if nobody will run that many.
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

// StudentQuantile is that of Student's distribution.
func StudentQuantile(p, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
}

// StudentTail is how probable a larger value is in Student's distribution.
func StudentTail(t, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Survival(t)
}

// FTail is how probable a larger ratio of two variances is in Fisher's F distribution.
func FTail(ratio, df1, df2 float64) float64 {
	return distuv.F{D1: df1, D2: df2}.Survival(ratio)
}

// DistanceTail is the p-value of a distance from the estimate.
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
