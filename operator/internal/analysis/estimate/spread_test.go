package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
)

func TestTrialSpread_VarianceOfBlockMean(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blocks       map[string][]float64
		logarithmic  bool
		variance, df float64
	}{
		"one trial in each block":   {blocks: map[string][]float64{"b1": {1}, "b2": {5}}},
		"no blocks":                 {},
		"two trials in each block":  {blocks: map[string][]float64{"b1": {1, 3}, "b2": {10, 14}}, variance: (2 + 8) / 2. / 2, df: 2},
		"a block with one trial":    {blocks: map[string][]float64{"b1": {1, 3}, "b2": {7}}, variance: 2 * (0.5 + 1) / 2, df: 1},
		"three trials and one":      {blocks: map[string][]float64{"b1": {1, 2, 3}, "b2": {7}}, variance: 1 * (1./3 + 1) / 2, df: 2},
		"logarithms of two trials":  {blocks: map[string][]float64{"b1": {1, math.E * math.E}}, logarithmic: true, variance: 1, df: 1},
		"blocks without difference": {blocks: map[string][]float64{"b1": {4, 4}}, df: 1},
	} {
		if got := trialSpread(c.blocks, c.logarithmic); !near(got.variance, c.variance) || got.df != c.df {
			t.Errorf("%s: %+v, want a variance of %g with %g degrees of freedom", name, got, c.variance, c.df)
		}
	}
}

func TestSpread_OfDifferenceAndMultiple(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ got, want Spread }{
		"equal variances":              {Spread{2, 5}.plus(Spread{2, 5}), Spread{4, 10}},
		"Welch's degrees of freedom":   {Spread{4, 4}.plus(Spread{1, 9}), Spread{5, 25 / (16./4 + 1./9)}},
		"one variance is zero":         {Spread{4, 4}.plus(Spread{0, 9}), Spread{4, 4}},
		"both variances are zero":      {Spread{0, 4}.plus(Spread{0, 9}), Spread{0, 13}},
		"the first has single trials":  {Spread{}.plus(Spread{1, 9}), Spread{}},
		"the second has single trials": {Spread{1, 9}.plus(Spread{}), Spread{}},
		"a multiple":                   {Spread{3, 7}.times(2), Spread{12, 7}},
	} {
		if !near(c.got.variance, c.want.variance) || !near(c.got.df, c.want.df) {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
}

func TestRunOrder_NodeByNodeWithoutNodeMeans(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	d := &Data{
		nodes:   map[string]string{"b1": "z", "b2": "a", "b3": "z", "b4": "a"},
		started: map[string]time.Time{"b1": at(9), "b2": at(3), "b3": at(1), "b4": at(2)},
	}
	values := map[string]float64{"b1": 1, "b2": 10, "b3": 3, "b4": 20}
	// Node z has the first block, and its mean is 2; that of node a is 15.
	if got, want := d.inRunOrder(values), []float64{1, -1, 5, -5}; !reflect.DeepEqual(got, want) {
		t.Errorf("in run order %v, want %v", got, want)
	}
	if got, want := d.inTimeOrder(values), []float64{-5.5, 11.5, 1.5, -7.5}; !reflect.DeepEqual(got, want) {
		t.Errorf("in time order %v, want %v", got, want)
	}
}

func TestAutocorrelation_OfKnownSeries(t *testing.T) {
	t.Parallel()
	corrected := func(r, n float64) float64 { return r + (1+4*r)/(n-1) }
	for name, c := range map[string]struct {
		series []float64
		want   float64
	}{
		"alternating":         {[]float64{1, -1, 1, -1, 1, -1, 1, -1}, -1}, // -7/8 and the correction exceed -1.
		"two halves":          {[]float64{1, 1, 1, 1, -1, -1, -1, -1}, 1},  // 5/8 and the correction exceed 1.
		"one peak":            {[]float64{3, -1, -1, -1}, corrected((-3.+1+1)/12, 4)},
		"long and increasing": {ramp(101), corrected(rampLag(101), 101)},
	} {
		if got := autocorrelation(c.series, stats.Squares(c.series, 0)); !near(got, c.want) {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

// ramp returns n values in equal steps, of which every third has the opposite sign, with mean 0.
func ramp(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		if out[i] = float64(i - n/2); i%3 == 0 {
			out[i] = -out[i]
		}
	}
	mean := stats.Mean(out)
	for i := range out {
		out[i] -= mean
	}
	return out
}

func rampLag(n int) float64 {
	series, product, square := ramp(n), 0.0, 0.0
	for i := 1; i < n; i++ {
		product += series[i-1] * series[i]
	}
	for _, value := range series {
		square += value * value
	}
	return product / square
}

// The figures are those of the adjusted Fisher-Pearson coefficient: G1 of {-1, -1, 2} is the square root of 3, and its standard error for n
// values is in the tables of statistics packages.
func TestSkewness_OfKnownSeries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ got, want float64 }{
		"three values":               {skewnessOf([]float64{-1, -1, 2}), math.Sqrt(3)},
		"four values":                {skewnessOf([]float64{-1, -1, -1, 3}), 2},
		"the other side":             {skewnessOf([]float64{1, 1, 1, -3}), -2},
		"symmetric":                  {skewnessOf([]float64{-2, -1, 0, 1, 2}), 0},
		"standard error for 10":      {math.Round(1000*skewnessError(10)) / 1000, 0.687},
		"standard error for 100":     {math.Round(1000*skewnessError(100)) / 1000, 0.241},
		"standard error for 3":       {math.Round(1000*skewnessError(3)) / 1000, 1.225},
		"independent of the measure": {skewnessOf([]float64{-10, -10, 20}), math.Sqrt(3)},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s: %g, want %g", name, c.got, c.want)
		}
	}
}

// The variance of a weighted sum of an AR(1) process is the double sum of its autocovariances.
func TestCorrelatedVariance_EqualsDoubleSum(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	for _, rho := range []float64{0, 0.3, 0.85} {
		weights := make([]float64, 9)
		for i := range weights {
			weights[i] = random.NormFloat64()
		}
		var want float64
		for i, a := range weights {
			for j, b := range weights {
				want += a * b * math.Pow(rho, math.Abs(float64(i-j)))
			}
		}
		if got := correlatedVariance(weights, rho); !near(got, want) {
			t.Errorf("rho %g: %g, want %g", rho, got, want)
		}
	}
}

// The mean of the chosen cosines' variances has the expectation of the variance of the mean, for white noise without correction, and the
// choice has the narrowest interval of all numbers of cosines.
func TestDeclaredCosines_UnbiasedAndNarrowest(t *testing.T) {
	t.Parallel()
	if got := declaredCosines(30, 0, 0.95); got.cosines != mostCosines || !near(got.inflation, 1) || !near(got.df, mostCosines) {
		t.Errorf("without correlation %+v, want all %d cosines without correction", got, mostCosines)
	}
	if got := declaredCosines(6, 0, 0.95); got.cosines != 5 || !near(got.df, 5) {
		t.Errorf("of 6 blocks %+v, want 5 cosines", got)
	}
	for _, n := range []int{6, 20, 100} {
		for _, rho := range []float64{0.3, 0.8} {
			mean := make([]float64, n)
			for i := range mean {
				mean[i] = 1 / float64(n)
			}
			ofMean := correlatedVariance(mean, rho) * float64(n)
			var variances []float64
			narrowest, best := math.Inf(1), cosineChoice{}
			for j := 1; j <= min(mostCosines, n-1); j++ {
				weights := make([]float64, n)
				for i := range weights {
					weights[i] = math.Sqrt(2/float64(n)) * math.Cos(math.Pi*float64(j)*(float64(i)+0.5)/float64(n))
				}
				variances = append(variances, correlatedVariance(weights, rho))
				average := stats.Mean(variances)
				df := average * average * float64(j) * float64(j) / (stats.Squares(variances, 0))
				inflation := max(1, ofMean/average)
				if width := stats.StudentQuantile(0.975, df) * math.Sqrt(inflation); width < narrowest {
					narrowest, best = width, cosineChoice{j, inflation, df}
				}
			}
			got := declaredCosines(n, rho, 0.95)
			if got.cosines != best.cosines || !near(got.inflation, best.inflation) || !near(got.df, best.df) || !near(got.width(0.95), narrowest) {
				t.Errorf("%d blocks at %g: %+v, want %+v", n, rho, got, best)
			}
		}
	}
}

func TestSlowMovement_AgainstTrialsAndFastMovements(t *testing.T) {
	t.Parallel()
	// Three slow cosines and ten fast ones of variance 1. The upper points of Fisher's F(3, 10) are 2.73 at 0.1 and 4.61 at 0.0284, and
	// that of F(3, 30) at 0.03 is 3.4.
	cosines := func(slow float64, fast int) []float64 {
		out := []float64{slow, slow, slow}
		for range fast {
			out = append(out, 1)
		}
		return out
	}
	for name, c := range map[string]struct {
		slow   float64
		fast   int
		within Spread
		want   bool
	}{
		"single trials, significant at 0.03":              {slow: 4.7, fast: 10, want: true},
		"single trials, not significant at 0.03":          {slow: 4.4, fast: 10},
		"exceeds the trials, significant at 0.1":          {slow: 4.4, fast: 10, within: Spread{1, 30}, want: true},
		"exceeds the trials, not significant at 0.1":      {slow: 2.6, fast: 10, within: Spread{0.5, 30}},
		"explained by the trials":                         {slow: 4.7, fast: 10, within: Spread{2, 30}},
		"trials without spread":                           {slow: 4.4, fast: 10, within: Spread{0, 30}},
		"many blocks, single trials, significant at 0.15": {slow: 2.2, fast: 16, want: true},
		"few blocks, single trials, the same":             {slow: 2.2, fast: 15},
		"many blocks with trials, significant at 0.3":     {slow: 1.5, fast: 16, within: Spread{0.5, 30}, want: true},
		"many blocks, not significant at 0.3":             {slow: 1.2, fast: 16, within: Spread{0.5, 30}},
		"many blocks, explained by the trials":            {slow: 2.2, fast: 16, within: Spread{2, 30}},
		"many blocks, exceeds the trials at 0.15":         {slow: 2.2, fast: 16, within: Spread{1, 30}, want: true},
	} {
		if got := slowMovement(cosines(c.slow, c.fast), 3, c.within); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// overTime returns data whose blocks ran in the order of their values, on one node.
func overTime(series []float64) (*Data, map[string]float64) {
	made, values := newTrials(seconds, 1, 1), map[string]float64{}
	for i, value := range series {
		block := fmt.Sprintf("b%02d", i)
		made.add(selection.At(0, 0), block, value)
		values[block] = value
	}
	return made.data(), values
}

func TestSerially_Widening(t *testing.T) {
	t.Parallel()
	quiet := []float64{1.1, 0.9, 1.05, 0.95, 0.9, 1.1, 1.02, 0.98, 0.95, 1.05}
	trend := []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4, 1.5}
	skewed := []float64{1, 1.01, 0.99, 1.02, 3, 0.98, 1.01, 0.99, 1.02, 0.98}
	low := make([]float64, len(skewed))
	for i, value := range skewed {
		low[i] = 4 - value
	}
	deviations := func(values []float64) []float64 {
		out := make([]float64, len(values))
		for i, value := range values {
			out[i] = value - stats.Mean(values)
		}
		return out
	}
	student := func(values []float64) (half, se float64) {
		n := float64(len(values))
		se = math.Sqrt(stats.Squares(values, stats.Mean(values)) / (n - 1) / n)
		return stats.StudentQuantile(0.995, n-1) * se, se
	}
	cosineHalf := func(values []float64, c cosineChoice) float64 {
		variance := stats.Mean(cosineVariances(deviations(values))[:c.cosines])
		return stats.StudentQuantile(0.995, c.df) * math.Sqrt(c.inflation*variance/float64(len(values)))
	}
	shift := func(values []float64) float64 {
		_, se := student(values)
		return skewnessOf(deviations(values)) / math.Sqrt(float64(len(values))) / 6 * se
	}
	half := func(values []float64) float64 { h, _ := student(values); return h }
	for name, c := range map[string]struct {
		series            []float64
		rho               float64
		below, above      float64
		dependent, skewed bool
		undescribed       bool
	}{
		"independent blocks":        {series: quiet, below: half(quiet), above: half(quiet)},
		"a trend":                   {series: trend, below: cosineHalf(trend, cosinesOfDependent(10, 0.99)), above: cosineHalf(trend, cosinesOfDependent(10, 0.99)), dependent: true},
		"skewed upwards":            {series: skewed, below: half(skewed), above: half(skewed) + shift(skewed), skewed: true},
		"skewed downwards":          {series: low, below: half(low) - shift(low), above: half(low), skewed: true},
		"a declared correlation":    {series: trend, rho: 0.8, below: cosineHalf(trend, declaredCosines(10, 0.8, 0.99)), above: cosineHalf(trend, declaredCosines(10, 0.8, 0.99)), dependent: true},
		"too few blocks":            {series: trend[:5], below: half(trend[:5]), above: half(trend[:5]), undescribed: true},
		"too few for a correlation": {series: trend[:5], rho: 0.8, below: half(trend[:5]), above: half(trend[:5]), undescribed: true},
		"blocks without variation":  {series: []float64{2, 2, 2, 2, 2, 2, 2}, undescribed: true},
	} {
		t.Run(name, func(t *testing.T) {
			d, values := overTime(c.series)
			d.Exp.Plan.Design.BlockCorrelation = c.rho
			got := d.serially(studentInference(values, 0.95, false), values, Spread{})
			center := stats.Mean(c.series)
			wantEnds(t, got, 0.99, center-c.below, center+c.above)
			if low, high := got.Ends(0.95); got.Low != low || got.High != high {
				t.Errorf("[%g, %g] is not the interval at the confidence of the run", got.Low, got.High)
			}
			switch {
			case c.undescribed != (got.Series == nil):
				t.Errorf("series %+v", got.Series)
			case got.Series != nil && (got.Series.Dependent != c.dependent || got.Series.Skewed != c.skewed):
				t.Errorf("series %+v, want dependent %v, skewed %v", got.Series, c.dependent, c.skewed)
			}
		})
	}
	t.Run("share that trials do not explain", func(t *testing.T) {
		d, values := overTime(trend)
		got := d.serially(studentInference(values, 0.95, false), values, Spread{0.5, 10})
		want := stats.Mean(cosineVariances(deviations(trend))[:3]) / 0.5
		if got.Series.Unexplained == nil || !near(*got.Series.Unexplained, want) {
			t.Errorf("%+v, want %g", got.Series, want)
		}
		if got := d.serially(studentInference(values, 0.95, false), values, Spread{0, 10}); got.Series.Unexplained != nil {
			t.Errorf("%g of trials without spread", *got.Series.Unexplained)
		}
	})
}

func TestFewForCorrelation_BelowSixBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rho    float64
		blocks int
		few    bool
	}{{0, 3, false}, {0.5, 5, true}, {0.5, 6, false}, {0.5, 7, false}} {
		d := newTrials(seconds, 1, 1).data()
		d.Exp.Plan.Design.BlockCorrelation = c.rho
		if got := d.FewForCorrelation(c.blocks); (got != "") != c.few {
			t.Errorf("%d blocks at %g: %q", c.blocks, c.rho, got)
		}
	}
}

func TestCosinesOfDependent_FewerOfFewBlocks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{6, 20, 30, 100, 300} {
		got, many := cosinesOfDependent(n, 0.95), declaredCosines(n, mostCorrelation, 0.95)
		three := stats.StudentQuantile(0.975, 3)
		if want := min(three, many.width(0.95)); !near(got.width(0.95), want) {
			t.Errorf("%d blocks: a width of %g, want the narrower of %g and %g", n, got.width(0.95), three, many.width(0.95))
		}
	}
	if got := cosinesOfDependent(6, 0.95); got != (cosineChoice{3, 1, 3}) {
		t.Errorf("6 blocks: %+v", got)
	}
}
