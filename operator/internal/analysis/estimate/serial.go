package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

const (
	// minSeries is the smallest number of blocks with tests for dependence and skewness, and with an interval for declared correlation.
	minSeries = experiment.MinCorrelatedBlocks
	// fewestCosines is the minimum number of cosines that count as slow, and that estimate the interval of few dependent blocks.
	fewestCosines = 3
	// unexplainedLevel and slowLevel are the significance levels of a slow movement against the spread between trials and against the fast
	// movements. They are not part of a verdict's level, because a false alarm only widens an interval.
	unexplainedLevel, slowLevel = 0.03, 0.1
	// With at least manyBlocks, an interval of slow cosines still detects small effects, so a weaker significance is enough.
	manyBlocks                          = 20
	manyUnexplainedLevel, manySlowLevel = 0.15, 0.3
	// mostCorrelation is that of neighbouring blocks up to which the interval of many dependent blocks holds.
	mostCorrelation = 0.85
	// skewedErrors is the significant skewness, in standard errors. The end on its side then moves out by the shift of Johnson (1978,
	// Journal of the American Statistical Association 73:536).
	skewedErrors = 2
	// mostCosines bounds the cosines of an interval at a declared correlation (Müller 2014 uses twelve).
	mostCosines = 12
)

// Spread is the variance of a block's value that its trials explain, with its degrees of freedom; zero if blocks have single trials.
type Spread struct{ variance, df float64 }

// trialSpread returns the variance of a block's mean, from the spread between the trials inside of the blocks that have several. Blocks
// with one remaining trial use the spread of the others.
func trialSpread(blocks map[string][]float64, logarithmic bool) Spread {
	var within, df, share float64
	for _, block := range inOrderOf(blocks) {
		values := scaled(blocks[block], logarithmic)
		within += stats.Squares(values, stats.Mean(values))
		df += float64(len(values) - 1)
		share += 1 / float64(len(values)) / float64(len(blocks))
	}
	if df == 0 {
		return Spread{}
	}
	return Spread{within / df * share, df}
}

// times is the spread of numbers that are multiplied by a factor.
func (s Spread) times(factor float64) Spread { return Spread{s.variance * factor * factor, s.df} }

// plus is the spread of a difference, with the degrees of freedom of Welch (1947, Biometrika 34:28).
func (s Spread) plus(other Spread) Spread {
	if s.df == 0 || other.df == 0 {
		return Spread{}
	}
	sum := s.variance + other.variance
	if sum == 0 {
		return Spread{0, s.df + other.df}
	}
	return Spread{sum, sum * sum / (s.variance*s.variance/s.df + other.variance*other.variance/other.df)}
}

// inRunOrder returns the values in the order in which their blocks ran, node by node, minus the mean of their node. The node with the first
// block is first, independent of its name and clock. nodes.go covers the differences between nodes.
func (d *Data) inRunOrder(values map[string]float64) []float64 {
	blocks := inOrderOf(values)
	sum, count, turn := map[string]float64{}, map[string]float64{}, map[string]int{}
	for i, block := range blocks {
		node := d.nodes[block]
		if count[node] == 0 {
			turn[node] = i
		}
		sum[node] += values[block]
		count[node]++
	}
	slices.SortStableFunc(blocks, func(a, b string) int {
		return cmp.Or(cmp.Compare(turn[d.nodes[a]], turn[d.nodes[b]]), d.started[a].Compare(d.started[b]))
	})
	out := make([]float64, len(blocks))
	for i, block := range blocks {
		out[i] = values[block] - sum[d.nodes[block]]/count[d.nodes[block]]
	}
	return out
}

// inTimeOrder returns the values in the order in which their blocks ran, minus their mean.
func (d *Data) inTimeOrder(values map[string]float64) []float64 {
	blocks := inOrderOf(values)
	slices.SortStableFunc(blocks, func(a, b string) int { return d.started[a].Compare(d.started[b]) })
	mean := stats.Mean(inOrder(values))
	out := make([]float64, len(blocks))
	for i, block := range blocks {
		out[i] = values[block] - mean
	}
	return out
}

// FewForCorrelation describes a figure with too few blocks for the declared correlation, so that its interval assumes independent blocks.
// It returns "" otherwise.
func (d *Data) FewForCorrelation(blocks int) string {
	rho := d.Exp.Plan.Design.BlockCorrelation
	if rho == 0 || blocks >= experiment.MinCorrelatedBlocks {
		return ""
	}
	return fmt.Sprintf("it has %s, and the correlation of %g in spec.design.blockCorrelation needs at least %d",
		quantity.Count(blocks, "block"), rho, experiment.MinCorrelatedBlocks)
}

// serially tests the values of the blocks over time and widens the interval for detected or declared dependence and for skewness.
func (d *Data) serially(found Inference, values map[string]float64, within Spread) Inference {
	series := d.inRunOrder(values)
	n := float64(len(series))
	if !found.HasInterval() || len(series) < minSeries {
		return found
	}
	center, shape := found.Scale(found.Value), &analysis.BlockSeries{}
	rho := d.Exp.Plan.Design.BlockCorrelation
	if rho > 0 {
		// A declared correlation applies to the values in time order over all nodes, without removing the means of the nodes.
		shape.Dependent, found.Series = true, shape
		declared := declaredCosines(len(series), rho, d.GateConfidence)
		variance := stats.Mean(cosineVariances(d.inTimeOrder(values))[:declared.cosines])
		found = found.including(studentAround(center, math.Sqrt(declared.inflation*variance/n), declared.df, found))
	}
	square := stats.Squares(series, 0)
	if square <= n*found.blur()*found.blur() {
		return found.At(d.Confidence)
	}
	found.Series = shape
	shape.Autocorrelation = stats.Finite(autocorrelation(series, square))
	skewness := skewnessOf(series)
	shape.Skewness = stats.Finite(skewness)

	cosines := cosineVariances(series)
	slowest := slowCosines(len(series))
	slow := stats.Mean(cosines[:slowest])
	if within.df > 0 && within.variance > 0 {
		shape.Unexplained = stats.Finite(slow / within.variance)
	}
	se := math.Sqrt(square / (n - 1) / n)
	if rho == 0 && slowMovement(cosines, slowest, within) {
		shape.Dependent = true
		carrying := cosinesOfDependent(len(series), d.GateConfidence)
		found = found.including(studentAround(center, math.Sqrt(carrying.inflation*stats.Mean(cosines[:carrying.cosines])/n), carrying.df, found))
	}
	if math.Abs(skewness) > skewedErrors*skewnessError(n) {
		shape.Skewed = true
		shift := skewness / math.Sqrt(n) / 6 * se
		found = found.moved(max(0, -shift), max(0, shift))
	}
	return found.At(d.Confidence)
}

// slowCosines returns the number of cosines over n blocks that count as slow. It grows with n, by the rule 0.41 n^(2/3) of Lazarus et al.
// (2018).
func slowCosines(n int) int {
	return max(fewestCosines, int(0.41*math.Pow(float64(n), 2.0/3)))
}

// cosinesOfDependent selects the cosines for the interval of dependent blocks: the slowest three, or the cosines that hold up to
// mostCorrelation if their interval is narrower, from about fifty blocks on.
func cosinesOfDependent(n int, confidence float64) cosineChoice {
	few, many := cosineChoice{fewestCosines, 1, fewestCosines}, declaredCosines(n, mostCorrelation, confidence)
	if few.width(confidence) <= many.width(confidence) {
		return few
	}
	return many
}

// slowMovement reports whether the slow movements of the series exceed the variance that trials explain and its fast movements. For blocks
// with a single trial of an arm only the second test is possible, at a stricter level.
func slowMovement(cosines []float64, slowest int, within Spread) bool {
	slow, quick := stats.Mean(cosines[:slowest]), stats.Mean(cosines[slowest:])
	df := float64(slowest)
	unexplained, level := unexplainedLevel, slowLevel
	if len(cosines)+1 >= manyBlocks {
		unexplained, level = manyUnexplainedLevel, manySlowLevel
	}
	if within.df == 0 || within.variance == 0 {
		level = unexplained
	} else if stats.FTail(slow/within.variance, df, within.df) >= unexplained {
		return false
	}
	return stats.FTail(slow/quick, df, float64(len(cosines)-slowest)) < level
}

// autocorrelation returns the lag-1 autocorrelation of a series with mean zero, corrected for the bias of few blocks.
func autocorrelation(series []float64, square float64) float64 {
	var product float64
	for i := range series[1:] {
		product += series[i] * series[i+1]
	}
	n, r := float64(len(series)), product/square
	return min(1, max(-1, r+(1+4*r)/(n-1)))
}

func skewnessOf(series []float64) float64 {
	n := float64(len(series))
	var second, third float64
	for _, value := range series {
		second += value * value / n
		third += value * value * value / n
	}
	return third / math.Pow(second, 1.5) * math.Sqrt(n*(n-1)) / (n - 2)
}

// skewnessError is the standard error of the skewness of n normal values.
func skewnessError(n float64) float64 {
	return math.Sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3)))
}

// cosineVariances decomposes a series into cosines, the slowest first. Each estimates the variance of a mean of independent blocks; for
// dependent blocks the slowest ones have the smallest bias (equal-weighted cosines:
// Lazarus, Lewis, Stock and Watson 2018, Journal of Business & Economic Statistics 36:541).
func cosineVariances(series []float64) []float64 {
	// Each is 4 sum(value[i] cos(pi j (i + 1/2) / n)).
	sums := fourier.NewQuarterWaveFFT(len(series)).CosSequence(nil, series)
	out := make([]float64, len(series)-1)
	for j := range out {
		c := sums[j+1] / 4
		out[j] = 2 * c * c / float64(len(series))
	}
	return out
}

func cosine(j, i int, n float64) float64 {
	return math.Cos(math.Pi * float64(j) * (float64(i) + 0.5) / n)
}

// cosineChoice is the number of cosines of an interval, the correction of their mean to the variance of the mean, and its degrees of
// freedom.
type cosineChoice struct {
	cosines       int
	inflation, df float64
}

// width returns the width of the interval, in standard errors of independent blocks.
func (c cosineChoice) width(confidence float64) float64 {
	return stats.StudentQuantile((1+confidence)/2, c.df) * math.Sqrt(c.inflation)
}

// declaredCosines selects the cosines with the narrowest interval at a correlation. Their mean is corrected for its bias in an AR(1)
// process with that correlation, and has the degrees of freedom of Satterthwaite (1946, Biometrics Bulletin
// 2:110), because they are not equal there. So the interval holds its level up to the correlation (inference under bounded
// persistence: Müller 2014, Journal of Business & Economic Statistics 32:311).
func declaredCosines(n int, rho, confidence float64) cosineChoice {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1 / float64(n)
	}
	ofMean := float64(n) * correlatedVariance(weights, rho)
	var sum, squared float64
	var out cosineChoice
	narrowest := math.Inf(1)
	for b := 1; b <= min(mostCosines, n-1); b++ {
		for i := range weights {
			weights[i] = cosine(b, i, float64(n)) * math.Sqrt(2/float64(n))
		}
		variance := correlatedVariance(weights, rho)
		sum += variance
		squared += variance * variance
		choice := cosineChoice{b, math.Max(1, ofMean*float64(b)/sum), sum * sum / squared}
		if width := choice.width(confidence); width < narrowest {
			narrowest, out = width, choice
		}
	}
	return out
}

// correlatedVariance is the variance of a weighted sum of an AR(1) process with variance 1.
func correlatedVariance(weights []float64, rho float64) float64 {
	var sum, before float64
	for _, weight := range weights {
		sum += weight * (weight + 2*before)
		before = rho * (before + weight)
	}
	return sum
}

// studentAround is Student's interval with the given standard error, on the scale of another inference.
func studentAround(center, se, df float64, like Inference) Inference {
	out := Inference{logarithmic: like.logarithmic, SE: se, DF: df}
	out.student(center)
	return out
}
