// Package contrast compares any arms of a run that was analyzed, for what combines several runs.
package contrast

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/experiment"
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
// among the arms. It is for what combines several runs, as histories do: a ratio in Ratios has its interval and no standard error.
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
	var sums map[string]float64
	baselines := 0
	for i, arm := range slices.Concat(over, under) {
		weight := 1 / float64(len(over))
		if i >= len(over) {
			weight = -1 / float64(len(under))
		}
		logs, why := logs(a, exp, of, arm)
		if why != "" {
			return fail("%s", why)
		}
		if logs == nil {
			baselines++
			continue
		}
		sums = added(sums, logs, weight)
	}
	if baselines > 0 && sums == nil {
		return fail("found only the baseline: a contrast needs another arm")
	}
	d := &estimate.Data{Exp: exp, Confidence: a.Confidence, GateConfidence: a.GateConfidence}
	found := d.OverBlocks(sums, estimate.Spread{}, true, true)
	if !found.HasInterval() {
		return fail("%s", found.Reason)
	}
	return Contrast{found.Scale(found.Value), found.SE, found.DF, found.Blocks}, nil
}

// logs are the logarithms of an arm's ratios to the baseline by block, nil for the baseline itself, or why there are none.
func logs(a *analysis.Analysis, exp *experiment.Experiment, of Quantity, arm string) (map[string]float64, string) {
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
	out := make(map[string]float64, len(a.Ratios[i].PerBlock))
	for block, ratio := range a.Ratios[i].PerBlock {
		out[block] = math.Log(ratio)
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
