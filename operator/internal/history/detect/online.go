package detect

import "math"

// Online judges the newest point of a series.
//
// It is an e-detector (Shin, Ramdas, Rinaldo 2022, arXiv 2203.03532): for every point at which the level may have changed there is an
// e-process, which is 1 on average as long as nothing has, and their sum is compared with a threshold. Such a sum needs at least as many
// points as the threshold on average to get there by accident, however long it runs and whenever anybody looks.
//
// The e-process of a change is the likelihood of two levels over that of one, under priors that leave both the level and the scale of the
// noise open (Pérez-Ortiz, Lardy, de Heide, Grünwald 2024, Annals of Statistics 52:1410; for the t-test Wang, Ramdas 2023, arXiv
// 2310.03722): it needs neither a level that is known nor a stretch to learn from, and is exact for normal points whose variances are
// known up to a common factor. The factor is the series' own spread: points that differ by more than their standard errors are not
// thought better of.
type Online struct {
	// RunLength is how many points a series that does not change has on average, at least, before it is suspected.
	RunLength float64
}

const (
	// likelyShift is the standard deviation of a change, in those of a point: what the e-processes are best at.
	likelyShift = 3.0
	// candidates is how many of the newest points may be the first after a change. Leaving out the others makes an accident rarer.
	candidates = 100
	// reach is how many of the newest points are looked at: a level that is known from a hundred points is known well enough.
	reach = 200
)

// Suspicion is what the newest point gives reason for.
type Suspicion struct {
	// Raised reports whether the evidence passed the threshold; Evidence is how much there is.
	Raised   bool
	Evidence float64
	// First is the most likely first point after the change, and Shift how far the level moved there. From and To hold all but a twentieth
	// of the evidence.
	From, First, To int
	Shift           float64
}

// Newest judges the last of the points. They are those of a segment since its last change; only a change at or after the one with index
// from is looked for: those before were looked for already, and came to nothing.
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

// relativeWeights are the points' weights, 1 for a typical one. Only their ratios matter.
func relativeWeights(points []Observation) []float64 {
	noise := NoiseOf(points)
	typical := 0.0
	for i := range points {
		typical += noise.Variance(i) / float64(len(points))
	}
	out := make([]float64, len(points))
	for i := range out {
		// Points without any error count alike.
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

// twoLevels is the logarithm of the likelihood of two levels over that of one, of n points of which some come before, and the difference of
// the levels. Flat on the level and on the logarithm of the scale, and normal on the difference in units of the scale.
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
