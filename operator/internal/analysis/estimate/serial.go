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
	// minSeries is from how many blocks on dependence and skewness are looked for, and allowed for where it is declared.
	minSeries = experiment.MinCorrelatedBlocks
	// fewestCosines are how many of the slowest movements over a run count as slow at least, and carry the interval of a few
	// dependent blocks.
	fewestCosines = 3
	// unexplainedLevel and slowLevel are how surprising a slow movement must be, beside what trials explain and beside the
	// quick movements, to count as dependence. They are no part of a verdict's level: a false alarm only widens an interval.
	unexplainedLevel, slowLevel = 0.03, 0.1
	// From manyBlocks on an interval of slow cosines still finds small effects, and less surprising movements count.
	manyBlocks                          = 20
	manyUnexplainedLevel, manySlowLevel = 0.15, 0.3
	// mostCorrelation is that of neighbouring blocks up to which the interval of many dependent blocks holds.
	mostCorrelation = 0.85
	// skewedErrors is from how many of its standard errors on a skewness counts. The end on its side moves out then, by what
	// Johnson (1978, Journal of the American Statistical Association 73:536) shifts Student's interval by.
	skewedErrors = 2
	// mostCosines bounds the cosines of an interval at a declared correlation (Müller 2014 uses twelve).
	mostCosines = 12
)

// Spread is the variance of a block's number that its trials explain, with its degrees of freedom; zero when they do not show it.
type Spread struct{ variance, df float64 }

// trialSpread is the variance of a block's mean, from the spread between the trials inside the blocks that have several. Blocks
// that noise left one trial take part with what the others show.
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

// inRunOrder are the values in the order in which their blocks ran, node by node, the one with the first block before the others whatever
// it is called and its clock says, and without what is the node's: how nodes differ is nodes.go's question.
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

// inTimeOrder are the values in the order in which their blocks ran, without their mean.
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

// FewForCorrelation says that a figure rests on fewer blocks than it takes to allow for the correlation that the design declares: its
// interval is that of blocks which do not depend on each other. It is empty where it does not.
func (d *Data) FewForCorrelation(blocks int) string {
	rho := d.Exp.Plan.Design.BlockCorrelation
	if rho == 0 || blocks >= experiment.MinCorrelatedBlocks {
		return ""
	}
	return fmt.Sprintf("it rests on %s, and to allow for the correlation of %g that spec.design.blockCorrelation declares takes at least %d",
		quantity.Count(blocks, "block"), rho, experiment.MinCorrelatedBlocks)
}

// serially looks at the blocks' values over time and widens the interval for what it finds or is configured to expect.
func (d *Data) serially(found Inference, values map[string]float64, within Spread) Inference {
	series := d.inRunOrder(values)
	n := float64(len(series))
	if !found.HasInterval() || len(series) < minSeries {
		return found
	}
	center, shape := found.Scale(found.Value), &analysis.BlockSeries{}
	rho := d.Exp.Plan.Design.BlockCorrelation
	if rho > 0 {
		// What is declared is not taken for what nodes differ by: it is in the numbers as they are, one after the other, whichever node ran them.
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

// slowCosines are how many of the movements over so many blocks count as slow: the more blocks, the more of them lie below what
// blocks remember, and the surer they show it (the rule 0.41 n^(2/3) of Lazarus et al. 2018).
func slowCosines(n int) int {
	return max(fewestCosines, int(0.41*math.Pow(float64(n), 2.0/3)))
}

// cosinesOfDependent are the cosines that carry the interval of blocks that were found to depend on each other: the slowest three as they
// are, or those that hold up to mostCorrelation where these are narrower, which they are from some fifty blocks on.
func cosinesOfDependent(n int, confidence float64) cosineChoice {
	few, many := cosineChoice{fewestCosines, 1, fewestCosines}, declaredCosines(n, mostCorrelation, confidence)
	if few.width(confidence) <= many.width(confidence) {
		return few
	}
	return many
}

// slowMovement reports whether the series moves slowly, more than trials explain and more than it moves quickly. Where blocks
// hold a single trial of an arm, only the second can be asked, and must then be answered surely.
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

// autocorrelation of neighbours in a series with mean zero, which few blocks underestimate.
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

// cosineVariances takes a series apart into movements, the slowest first. Each is an estimate of the variance that a mean of
// independent blocks rests on; where blocks depend on each other the slowest ones are the least wrong (equal-weighted cosines:
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

// cosineChoice is how many cosines carry an interval, by how much their mean falls short of the variance of the mean, and the
// degrees of freedom that it has.
type cosineChoice struct {
	cosines       int
	inflation, df float64
}

// width is that of the interval, in standard errors of independent blocks.
func (c cosineChoice) width(confidence float64) float64 {
	return stats.StudentQuantile((1+confidence)/2, c.df) * math.Sqrt(c.inflation)
}

// declaredCosines chooses the cosines that make the narrowest interval at a correlation. Their mean is corrected for what it falls
// short of in an AR(1) process with that correlation, and has the degrees of freedom of Satterthwaite (1946, Biometrics Bulletin
// 2:110), as they are not equal there. So the interval holds its level up to the correlation (inference under bounded
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
