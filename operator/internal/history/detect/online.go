package detect

import "math"

// Online judges the newest point of a series.
//
// It implements an e-detector (Shin, Ramdas, Rinaldo 2022, arXiv 2203.03532). Each candidate change point has an e-process, whose mean is
// 1 as long as there is no change, and the sum over the candidates is compared with a threshold. The average run length to a false alarm
// is at least the threshold, under continuous monitoring.
//
// The e-process of a candidate is the likelihood ratio of two levels to one, under priors that leave both the level and the scale of the
// noise open (Pérez-Ortiz, Lardy, de Heide, Grünwald 2024, Annals of Statistics 52:1410; for the t-test Wang, Ramdas 2023, arXiv
// 2310.03722). It therefore requires neither a known level nor a training period, and is exact for normal points whose variances are known
// up to a common factor. The factor is estimated from the series, so points with overdispersion do not count as more precise than they
// are.
type Online struct {
	// RunLength is the minimum average number of points to a suspicion in a series without a change.
	RunLength float64
}

const (
	// likelyShift is the prior standard deviation of a change, in standard deviations of a point; the power is highest there.
	likelyShift = 3.0
	// candidates is the number of newest points considered as first after a change. Omitting the others only lowers the false alarm rate.
	candidates = 100
	// reach is the number of newest points used; more than a hundred add little precision to a level.
	reach = 200
)

// Suspicion is the result for the newest point.
type Suspicion struct {
	// Raised reports whether the evidence passed the threshold; Evidence is how much there is.
	Raised   bool
	Evidence float64
	// First is the most likely first point after the change, and Shift the shift of the level there. From and To hold 95 % of the
	// evidence.
	From, First, To int
	Shift           float64
}

// Newest judges the last of the points, which belong to a segment since its last change. Only changes at or after index from are searched,
// because earlier ones were rejected before.
func (o Online) Newest(points []Observation, from int) Suspicion {
	if beyond := len(points) - reach; beyond > 0 {
		out := o.Newest(points[beyond:], from-beyond)
		if out.First >= 0 {
			out.From, out.First, out.To = out.From+beyond, out.First+beyond, out.To+beyond
		}
		return out
	}
	n := len(points)
	out := Suspicion{From: -1, First: -1, To: -1}
	first := max(1, from, n-candidates)
	if first >= n {
		return out
	}
	weights := relativeWeights(points)
	var all sums
	before := sums{}
	for i, p := range points {
		if i < first {
			before.add(p.Y-points[0].Y, weights[i])
		}
		all.add(p.Y-points[0].Y, weights[i])
	}
	best, each := math.Inf(-1), make([]float64, 0, n-first)
	for k := first; k < n; k++ {
		evidence, shift := twoLevels(before, all, n)
		each = append(each, math.Exp(evidence))
		out.Evidence += each[k-first]
		if evidence > best {
			best, out.First, out.Shift = evidence, k, shift
		}
		before.add(points[k].Y-points[0].Y, weights[k])
	}
	out.Raised = out.Evidence >= o.RunLength
	const aside = 0.025
	passed := 0.0
	for i, evidence := range each {
		if passed <= aside*out.Evidence {
			out.From = first + i
		}
		if passed < (1-aside)*out.Evidence {
			out.To = first + i
		}
		passed += evidence
	}
	out.From, out.To = min(out.From, out.First), max(out.To, out.First)
	return out
}

// relativeWeights returns the points' weights, 1 for a typical one. Only their ratios matter.
func relativeWeights(points []Observation) []float64 {
	noise := NoiseOf(points)
	typical := 0.0
	for i := range points {
		typical += noise.Variance(i) / float64(len(points))
	}
	out := make([]float64, len(points))
	for i := range out {
		// Points without any error have equal weight.
		if out[i] = 1; typical > 0 {
			out[i] = typical / max(noise.Variance(i), typical/100)
		}
	}
	return out
}

// sums of weighted values.
type sums struct{ w, wy, wyy float64 }

func (s *sums) add(y, w float64) {
	s.w += w
	s.wy += w * y
	s.wyy += w * y * y
}

// residual is the weighted sum of squares about the mean.
func (s sums) residual() float64 { return max(0, s.wyy-s.wy*s.wy/s.w) }

// twoLevels returns the log likelihood ratio of two levels to one, for n points split by before, and the difference of the levels. Priors
// are flat on the level and on the log scale, and normal on the difference in units of the scale.
func twoLevels(before, all sums, n int) (evidence, shift float64) {
	after := sums{w: all.w - before.w, wy: all.wy - before.wy}
	shift = after.wy/after.w - before.wy/before.w
	v := 1/before.w + 1/after.w
	const g = likelyShift * likelyShift
	evidence = 0.5 * math.Log(v/(v+g))
	if total := all.residual(); total > 0 {
		explained := min(1, shift*shift/v/total)
		evidence -= float64(n-1) / 2 * math.Log1p(-explained*g/(v+g))
	}
	return evidence, shift
}
