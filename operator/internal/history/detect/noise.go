// Package detect detects changes of a series. The online detector judges the newest point with a bound on the average run length between
// false alarms. The offline detector gives an interval for the date of every change, with a bound on the probability that any of them is
// wrong.
package detect

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Observation is a point of a series: a log ratio or the logarithm of a value, its standard error and degrees of freedom. A bare value has
// no degrees of freedom, and its error is unknown.
type Observation struct {
	Y, SE, DF float64
}

// bare reports whether the error of the point is unknown.
func (o Observation) bare() bool { return o.DF <= 0 }

// Noise describes why points of the same level differ.
type Noise struct {
	// Within are the variances of the points estimated from their blocks.
	Within []float64
	// Between is the additional variance between points, caused by build layout, machine state and other effects of a run.
	Between float64
}

// Variance of point i.
func (n Noise) Variance(i int) float64 { return n.Within[i] + n.Between }

// NoiseOf estimates the noise. Level changes do not inflate it, because only neighbours are compared, by their median.
func NoiseOf(points []Observation) Noise {
	out, tails := noiseWithoutTails(points)
	for i := range out.Within {
		out.Within[i] *= tails[i]
	}
	return out
}

// noiseWithoutTails returns the noise with the plain variances of points, and the factors by which they grow where one point alone decides.
func noiseWithoutTails(points []Observation) (out Noise, tails []float64) {
	out.Within, tails = moderated(points)
	if len(points) >= 3 && scale(points, out) > 1 {
		out.Between = between(points, out)
	}
	return out, tails
}

// between returns the variance between points for which the scaled differences of neighbours have scale 1. The scale falls as the variance
// grows.
func between(points []Observation, out Noise) float64 {
	low, high := 0.0, 0.0
	for _, x := range differences(points, Noise{Within: make([]float64, len(points)), Between: 0.5}) {
		high = max(high, x*x)
	}
	for range 20 {
		out.Between = (low + high) / 2
		if scale(points, out) > 1 {
			low = out.Between
		} else {
			high = out.Between
		}
	}
	return high
}

// BetweenAtMost returns an upper bound of the variance between points that the true one exceeds with probability 0.1. With few points the
// estimate is uncertain, and with two it is arbitrary.
func BetweenAtMost(points []Observation) float64 {
	if len(points) > reach {
		points = points[len(points)-reach:]
	}
	if len(points) < 3 {
		return math.Inf(1)
	}
	noise := NoiseOf(points)
	within := stat.Mean(noise.Within, nil)
	// efficiency: the median absolute difference is as precise as an estimate from this share of the points (Rousseeuw, Croux 1993,
	// Journal of the American Statistical Association 88:1273).
	const efficiency = 0.37
	return Spread{within + noise.Between, within, efficiency * float64(len(points)-1)}.BetweenAtMost(0.1)
}

// Spread is the variation of levels that are expected to be equal.
type Spread struct {
	// Variance is that of the levels, Within their mean error variance, and DF the degrees of freedom; 0 for levels without a companion.
	Variance, Within, DF float64
}

// Sides estimates the spread of levels about the mean of their side. Inputs are each deviation from that mean and its standard error.
func Sides(sides ...[]Observation) Spread {
	var out Spread
	count := 0.0
	for _, side := range sides {
		k := float64(len(side))
		if k < 2 {
			continue
		}
		// A deviation from the mean of k has (k-1)/k of the variance of a level.
		for _, o := range side {
			out.Variance += o.Y * o.Y
			out.Within += o.SE * o.SE * k / (k - 1)
		}
		out.DF += k - 1
		count += k
	}
	if out.DF > 0 {
		out.Variance, out.Within = out.Variance/out.DF, out.Within/count
	}
	return out
}

// BetweenAtMost returns an upper bound of the variance between levels beyond their errors, which the true one exceeds with probability
// aside. It is never 0, because no finite sample shows that.
func (s Spread) BetweenAtMost(aside float64) float64 {
	if s.DF <= 0 {
		return math.Inf(1)
	}
	const least = 1e-12
	return max(least, s.Variance*s.DF/distuv.ChiSquared{K: s.DF}.Quantile(aside)-s.Within)
}

// differences returns differences of neighbours in units of their standard deviation.
func differences(points []Observation, noise Noise) []float64 {
	out := make([]float64, len(points)-1)
	for i := range out {
		if d := math.Abs(points[i+1].Y - points[i].Y); d > 0 {
			out[i] = d / math.Sqrt(noise.Variance(i)+noise.Variance(i+1))
		}
	}
	return out
}

// scale returns the ratio of observed to expected differences of neighbours, by the median absolute difference. Up to half of the pairs
// may span a change.
func scale(points []Observation, noise Noise) float64 {
	return medianScale(differences(points, noise))
}

// medianScale converts the median of absolute values into a standard deviation, assuming normal values.
func medianScale(absolute []float64) float64 {
	const normal = 1.482602218505602
	middle := len(absolute) / 2
	median := selectNth(absolute, middle)
	if len(absolute)%2 == 0 {
		median = (median + slices.Max(absolute[:middle])) / 2
	}
	return normal * median
}

// selectNth partially sorts values so that the one with index n is in its sorted position, and returns it (Hoare 1961, Communications of
// the ACM 4:321).
func selectNth(values []float64, n int) float64 {
	low, high := 0, len(values)-1
	for low < high {
		pivot := values[(low+high)/2]
		i, j := low, high
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n <= j:
			high = j
		case n >= i:
			low = i
		default:
			return values[n]
		}
	}
	return values[n]
}

// moderated returns the points' variances. Block variances are shrunk towards the common one as far as they agree (Smyth 2004, Statistical
// Applications in Genetics and Molecular Biology 3:3). A standard error from ten blocks has an uncertainty of a quarter, and unshrunk
// weights would favour points whose error is underestimated. Larger variances are retained, because the noise of a night may be higher.
// A bare value among points with errors has the common variance of one block.
//
// Tails are the factors by which the variances grow where one point alone decides.
func moderated(points []Observation) (out, tails []float64) {
	out, tails = make([]float64, len(points)), make([]float64, len(points))
	var logs, trigammas []float64
	curvature := map[float64]float64{}
	for i, p := range points {
		out[i], tails[i] = p.SE*p.SE, 1
		if p.bare() {
			out[i] = 0
		}
		if out[i] > 0 {
			half := p.DF / 2
			logs = append(logs, math.Log(ofBlock(p))-mathext.Digamma(half)+math.Log(half))
			if curvature[half] == 0 {
				curvature[half] = trigamma(half)
			}
			trigammas = append(trigammas, curvature[half])
		}
	}
	if len(logs) < 2 {
		return out, tails
	}
	mean, variance := stat.MeanVariance(logs, nil)
	prior, center := math.Inf(1), math.Exp(mean)
	if excess := variance - stat.Mean(trigammas, nil); excess > 0 {
		half := trigammaInverse(excess)
		prior, center = 2*half, math.Exp(mean+mathext.Digamma(half)-math.Log(half))
	}
	known := map[float64]float64{}
	for i, p := range points {
		drawn := center
		if !math.IsInf(prior, 1) {
			drawn = (prior*center + p.DF*ofBlock(p)) / (prior + p.DF)
		}
		out[i], tails[i] = max(out[i], drawn/(p.DF+1)), tail(prior+p.DF, known)
	}
	return out, tails
}

// tail returns the variance factor that gives a normal point the same 1e-4 quantile as a t-distributed one with df degrees of freedom. A
// search over thousands of points is decided at this quantile.
func tail(df float64, known map[float64]float64) float64 {
	const rare = 1e-4
	factor, ok := known[df]
	if !ok {
		factor = 1
		if df < 1e4 {
			out := distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1-rare) / distuv.UnitNormal.Quantile(1-rare)
			factor = out * out
		}
		known[df] = factor
	}
	return factor
}

// ofBlock returns the variance of one block of a point.
func ofBlock(p Observation) float64 { return p.SE * p.SE * (p.DF + 1) }

// trigamma is the derivative of the digamma function, computed as Hurwitz' zeta function of 2.
func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// trigammaInverse uses bisection; trigamma falls monotonically from infinity to 0.
func trigammaInverse(y float64) float64 {
	low, high := 1e-8, 1e8
	for range 100 {
		middle := math.Sqrt(low * high)
		if trigamma(middle) > y {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high)
}
