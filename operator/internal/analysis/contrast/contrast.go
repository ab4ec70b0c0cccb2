// Package contrast compares any arms of a run that was analyzed, for what combines several runs.
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

// Of compares any arms of a run that was analyzed, within its blocks and by the estimator of its ratios. The baseline may be
// among the arms. There is none of arms of which the analysis doubts that they may be compared, whatever gates the run has. It is for what
// combines several runs, as histories do: a ratio in Ratios has its interval and no standard error.
//
// It rests on the analysis alone, in which the trials of a block are one number. So where blocks depend on each other, that shows in how
// they move and not in how they differ from their trials, as in a run whose blocks have one trial of each arm.
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
	found := d.OverBlocks(sums, estimate.Spread{}, true, true)
	if why := cmp.Or(found.Reason, d.FewForCorrelation(found.Blocks)); why != "" {
		return fail("%s", why)
	}
	se := found.SE + unresolved(a, of, over, under, found)/stats.StudentQuantile((1+clockConfidence)/2, found.DF)
	out := Contrast{found.Scale(found.Value), se, found.DF, found.Blocks}
	if math.IsInf(out.LogRatio, 0) || math.IsNaN(out.LogRatio+se) {
		return fail("no number holds it")
	}
	return out, nil
}

// LeftOut is why a contrast rests on which trials were left out, by noise limits or for their environment: with them it is beyond its
// interval. It is empty where it does not.
func LeftOut(a *analysis.Analysis, exp *experiment.Experiment, of Quantity, over, under []string, found Contrast) string {
	const rounding = 1e-9
	reach := stats.StudentQuantile((1+a.GateConfidence)/2, found.DF)*found.SE + rounding
	for _, more := range []struct {
		what   string
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
			return fmt.Sprintf("%s over %s, %s: it is %s, and with the trials %s %s: leaving them out must not be what moves it",
				strings.Join(over, ", "), strings.Join(under, ", "), of, quantity.Plain(math.Exp(found.LogRatio), 4), more.what,
				quantity.Plain(math.Exp(again), 4))
		}
	}
	return ""
}

// contrasted is the difference of the sides' logarithms by block, of the ratios by block that are asked for, or why there is none.
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

// doubted is why the arms may not be compared, whatever their figures are; empty where nothing says so. Of two arms that are not alike the
// baseline counts as one of the other side, whatever that is: each arm is set beside it as if a gate did.
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

// clockConfidence is that of the interval which the standard error makes as wide as that of a ratio. At any higher confidence it is at
// least as wide.
const clockConfidence = 0.95

// unresolved is how far the interval is to be widened on either side by what the clocks of the arms cannot tell, as that of a ratio is: by
// the coarsest of the clock that arms share, because their readings err in one direction, and by each that an arm has for itself.
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

// clockOf is what an arm's clock cannot tell; nil where there is nothing.
func clockOf(a *analysis.Analysis, of Quantity, arm string) *analysis.ClockResolution {
	for i := range a.Arms {
		if r := &a.Arms[i]; r.Point == of.Point && r.Arm == arm && r.Metric == of.Metric && r.Statistic == of.Statistic {
			return r.Clock
		}
	}
	return nil
}

// logs are the logarithms of an arm's ratios to the baseline by block, nil for the baseline itself, or why there are none.
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
	if found == nil { // With more trials they are the same.
		found = a.Ratios[i].PerBlock
	}
	for _, block := range slices.Sorted(maps.Keys(found)) {
		// Whoever has a key of the namespace may have written the analysis.
		if !(found[block] > 0) {
			return nil, fmt.Sprintf("arm %q has a ratio of %g in block %s, and ratios are above 0: analyse the run again", arm, found[block], block)
		}
		out[block] = math.Log(found[block])
	}
	return out, ""
}

// added is a sum over the blocks that all of its terms have.
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
