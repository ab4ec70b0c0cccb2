// Package contrast compares any arms of an analyzed run, for histories that combine several runs.
package contrast

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Contrast is the mean of some arms over the mean of others, as a logarithm with its standard error.
type Contrast struct {
	LogRatio float64
	// SE is its standard error and DF the degrees of freedom of that.
	SE, DF float64
	Blocks int
}

// Quantity is one statistic of one metric at one point.
type Quantity struct {
	Point, Metric string
	Statistic     experiment.Statistic
}

func (q Quantity) String() string {
	text := q.Metric + "." + string(q.Statistic)
	if q.Point != "" {
		text += " at " + q.Point
	}
	return text
}

// Of compares any arms of an analyzed run, within its blocks and by the estimator of its ratios. The baseline may be among the arms. It
// returns an error if the analysis doubts the comparison of these arms, with or without gates. Histories need the standard error, which
// the entries of Ratios do not have.
//
// It uses the analysis alone, which has one number per block and arm. Dependence between blocks is therefore detected by slow movements
// and not by the variance within blocks, as in a run with one trial of each arm per block.
func Of(a *analysis.Analysis, exp *experiment.Experiment, of Quantity, over, under []string) (Contrast, error) {
	fail := func(format string, args ...any) (Contrast, error) {
		return Contrast{}, fmt.Errorf("%s over %s, %s: %s", strings.Join(over, ", "), strings.Join(under, ", "), of, fmt.Sprintf(format, args...))
	}
	if len(over) == 0 || len(under) == 0 {
		return fail("found no arm on one side: name at least one on each")
	}
	if why := doubted(a, exp, of, over, under); why != "" {
		return fail("%s", why)
	}
	sums, why := contrasted(a, exp, of, over, under, func(r *analysis.RatioResult) map[string]float64 { return r.PerBlock })
	if why != "" {
		return fail("%s", why)
	}
	d := &estimate.Data{Exp: exp, Confidence: a.Confidence, GateConfidence: a.GateConfidence}
	found := d.OverBlocks(sums, estimate.Spread{}, true, true, terms(a, of, over, under))
	if why := cmp.Or(found.Reason, d.FewForCorrelation(found.Blocks)); why != "" {
		return fail("%s", why)
	}
	se := found.SE + unresolved(a, of, over, under, found)/stats.StudentQuantile((1+clockConfidence)/2, found.DF)
	out := Contrast{found.Scale(found.Value), se, found.DF, found.Blocks}
	if math.IsInf(out.LogRatio, 0) || math.IsNaN(out.LogRatio+se) {
		return fail("the result is not a finite number")
	}
	return out, nil
}

// LeftOut describes how a contrast depends on the excluded trials (by noise limits or for their environment): with them it is outside of
// its interval. It returns "" otherwise.
func LeftOut(a *analysis.Analysis, exp *experiment.Experiment, of Quantity, over, under []string, found Contrast) string {
	const rounding = 1e-9
	reach := stats.StudentQuantile((1+a.GateConfidence)/2, found.DF)*found.SE + rounding
	for _, more := range []struct {
		kind   string
		ratios func(*analysis.RatioResult) map[string]float64
	}{
		{"that noise limits leave out", func(r *analysis.RatioResult) map[string]float64 { return r.WithRejected }},
		{"of other environments", func(r *analysis.RatioResult) map[string]float64 { return r.Everywhere }},
	} {
		sums, why := contrasted(a, exp, of, over, under, more.ratios)
		if why != "" {
			return why
		}
		if len(sums) == 0 {
			continue
		}
		again := 0.0
		for _, block := range slices.Sorted(maps.Keys(sums)) {
			again += sums[block] / float64(len(sums))
		}
		if math.Abs(again-found.LogRatio) > reach {
			return fmt.Sprintf("%s over %s, %s: it is %s, and with the trials %s %s, so their exclusion would change it",
				strings.Join(over, ", "), strings.Join(under, ", "), of, quantity.Plain(math.Exp(found.LogRatio), 4), more.kind,
				quantity.Plain(math.Exp(again), 4))
		}
	}
	return ""
}

// contrasted returns the difference of the logarithms of both sides by block, from the given ratios by block, or the reason why it is
// unavailable.
func contrasted(a *analysis.Analysis, exp *experiment.Experiment, of Quantity, over, under []string,
	ratios func(*analysis.RatioResult) map[string]float64) (sums map[string]float64, why string) {
	for i, arm := range slices.Concat(over, under) {
		weight := 1 / float64(len(over))
		if i >= len(over) {
			weight = -1 / float64(len(under))
		}
		logs, why := logs(a, exp, of, arm, ratios)
		if why != "" {
			return nil, why
		}
		if logs != nil {
			sums = added(sums, logs, weight)
		}
	}
	if sums == nil {
		return nil, "found only the baseline: a contrast needs another arm"
	}
	return sums, ""
}

// doubted returns the doubt that prevents the comparison of the arms, or "". A doubt about an arm and the baseline counts for both sides,
// because every arm is compared through the baseline.
func doubted(a *analysis.Analysis, exp *experiment.Experiment, of Quantity, over, under []string) string {
	baseline := analysis.Baseline(exp)
	in := func(arms []string, arm string) bool { return arm == baseline || slices.Contains(arms, arm) }
	all := slices.Concat(over, under)
	for _, doubt := range a.Doubts {
		if doubt.Point != "" && doubt.Point != of.Point || doubt.Metric != "" && doubt.Metric != of.Metric ||
			doubt.Statistic != "" && doubt.Statistic != of.Statistic {
			continue
		}
		concerns := true
		switch arms := doubt.Arms; len(arms) {
		case 0:
		case 1:
			concerns = in(all, arms[0])
		default:
			concerns = in(over, arms[0]) && in(under, arms[1]) || in(over, arms[1]) && in(under, arms[0])
		}
		if concerns {
			return fmt.Sprintf("%s (%s)", doubt.Detail, doubt.Reason)
		}
	}
	return ""
}

// clockConfidence is the confidence at which the interval of a contrast is as wide as that of a ratio. At a higher confidence it is at
// least as wide.
const clockConfidence = 0.95

// unresolved returns the distance by which clock resolution widens the interval on either side, as for a ratio: by the coarsest step of a
// shared clock, because its readings err in one direction, plus the step of each separate clock.
func unresolved(a *analysis.Analysis, of Quantity, over, under []string, found estimate.Inference) float64 {
	low, high := found.Ends(a.GateConfidence)
	together, apart := 0.0, 0.0
	for _, side := range [][]string{over, under} {
		for _, arm := range side {
			clock := clockOf(a, of, arm)
			switch {
			case clock == nil || clock.Relative < 0 || clock.Bucket && estimate.NegligibleBucket(clock.Relative, (high-low)/2):
			case clock.Own:
				apart += math.Log1p(clock.Relative) / float64(len(side))
			default:
				together = max(together, clock.Relative)
			}
		}
	}
	return math.Log1p(together) + apart
}

// clockOf returns the clock resolution of an arm's figure; nil without one.
func clockOf(a *analysis.Analysis, of Quantity, arm string) *analysis.ClockResolution {
	for i := range a.Arms {
		if r := &a.Arms[i]; r.Point == of.Point && r.Arm == arm && r.Metric == of.Metric && r.Statistic == of.Statistic {
			return r.Clock
		}
	}
	return nil
}

// terms returns the largest number of parameters that were fitted to the ratios of an arm beside their mean. The arms share the effect of
// the place, so their terms are one.
func terms(a *analysis.Analysis, of Quantity, over, under []string) int {
	out := 0
	for i := range a.Ratios {
		r := &a.Ratios[i]
		if r.Point == of.Point && r.Metric == of.Metric && r.Statistic == of.Statistic &&
			(slices.Contains(over, r.Candidate) || slices.Contains(under, r.Candidate)) {
			out = max(out, r.Terms)
		}
	}
	return out
}

// logs returns the logarithms of an arm's ratios to the baseline by block, nil for the baseline itself, or the reason why they are
// unavailable.
func logs(a *analysis.Analysis, exp *experiment.Experiment, of Quantity, arm string,
	ratios func(*analysis.RatioResult) map[string]float64) (map[string]float64, string) {
	if baseline := exp.Baseline(); baseline >= 0 && exp.Arms[baseline].Name == arm {
		return nil, ""
	}
	i := slices.IndexFunc(a.Ratios, func(r analysis.RatioResult) bool {
		return r.Point == of.Point && r.Candidate == arm && r.Metric == of.Metric && r.Statistic == of.Statistic
	})
	switch {
	case i < 0:
		return nil, fmt.Sprintf("arm %q has no ratio to the baseline", arm)
	case len(a.Ratios[i].PerBlock) == 0:
		return nil, fmt.Sprintf("%s is judged over all blocks together: follow a statistic that each block has, such as median", of.Statistic)
	case a.Ratios[i].NodesDiffer:
		return nil, fmt.Sprintf("arm %q differs between nodes by more than their blocks explain: measure on one", arm)
	case a.Ratios[i].Builds > 0:
		return nil, fmt.Sprintf("arm %q or the baseline is several builds, which blocks alone do not show: give each one build", arm)
	}
	out := map[string]float64{}
	found := ratios(&a.Ratios[i])
	if found == nil { // The additional trials change nothing.
		found = a.Ratios[i].PerBlock
	}
	for _, block := range slices.Sorted(maps.Keys(found)) {
		// The analysis is untrusted, because any holder of a key of the namespace can write one.
		if !(found[block] > 0) {
			return nil, fmt.Sprintf("arm %q has a ratio of %g in block %s, and ratios are above 0: analyse the run again", arm, found[block], block)
		}
		out[block] = math.Log(found[block])
	}
	return out, ""
}

// added returns the sum over the blocks that all terms have.
func added(sums, logs map[string]float64, weight float64) map[string]float64 {
	out := make(map[string]float64, len(logs))
	for block, value := range logs {
		if sums == nil {
			out[block] = weight * value
		} else if before, ok := sums[block]; ok {
			out[block] = before + weight*value
		}
	}
	return out
}
