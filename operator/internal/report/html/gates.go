package html

import (
	"fmt"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/report/chart"
)

func (b *builder) gates() []gate {
	var out []gate
	agreeing := map[[2]string]int{}
	for _, g := range b.found.Gates {
		// Outputs that agree at every point are one line, not one for each.
		if g.Op == assayv1alpha1.ParityEqual && g.Outcome == assayv1alpha1.VerdictGo {
			if at, ok := agreeing[[2]string{g.Gate, g.Candidate}]; ok {
				out[at].points++
				out[at].Point = fmt.Sprintf("%d points", out[at].points)
				continue
			}
			agreeing[[2]string{g.Gate, g.Candidate}] = len(out)
		}
		shown := gate{
			Outcome: verdictName(g.Outcome), Class: verdictClass(g.Outcome), Name: g.Gate, Candidate: g.Candidate, Point: g.Point,
			Asked: b.asked(g), Message: g.Message, points: 1, Advisory: g.Severity == assayv1alpha1.Advisory, Plot: intervalPlot(g),
			Detectable: percent(g.MinimumDetectableEffect), Share: b.share(g),
		}
		if g.Estimate != nil {
			shown.Estimate, shown.Blocks = analysis.Describe(g.Estimate), g.Estimate.Blocks
			shown.Message = strings.TrimPrefix(g.Message, shown.Estimate+" ")
		}
		out = append(out, shown)
	}
	return out
}

// asked is the gate's condition in words.
func (b *builder) asked(g analysis.GateResult) string {
	what := statisticName(g.Metric, g.Statistic)
	if g.Bound == nil {
		return "the outputs agree"
	}
	unit := analysis.Times
	if g.Estimate != nil {
		unit = g.Estimate.Shown()
	}
	bound := analysis.FormatNumber(*g.Bound, unit)
	switch g.Op {
	case assayv1alpha1.RatioAtLeast:
		return fmt.Sprintf("%s at least %s of %s", what, bound, b.baseline())
	case assayv1alpha1.RatioAtMost:
		return fmt.Sprintf("%s at most %s of %s", what, bound, b.baseline())
	case assayv1alpha1.AtLeast:
		return fmt.Sprintf("%s at least %s", what, bound)
	case assayv1alpha1.AtMost:
		return fmt.Sprintf("%s at most %s", what, bound)
	case assayv1alpha1.Completes:
		return fmt.Sprintf("at least %s of its trials complete", percent(g.Bound))
	default:
		return string(g.Op)
	}
}

func (b *builder) share(g analysis.GateResult) string {
	for _, arm := range b.found.Arms {
		if arm.Point == g.Point && arm.Arm == g.Candidate && arm.Metric == g.Metric && arm.Statistic == g.Statistic {
			return percent(arm.ShareOfCeiling)
		}
	}
	return ""
}

func intervalPlot(g analysis.GateResult) (plot chartHTML) {
	if g.Estimate == nil || g.Estimate.Low == nil || g.Estimate.High == nil || g.Bound == nil {
		return ""
	}
	relative := g.Op == assayv1alpha1.RatioAtLeast || g.Op == assayv1alpha1.RatioAtMost
	interval := chart.Interval{
		Title: fmt.Sprintf("%s for %s: %s", g.Gate, g.Candidate, analysis.Describe(g.Estimate)),
		Value: g.Estimate.Value, Low: *g.Estimate.Low, High: *g.Estimate.High, Bound: *g.Bound,
		AtLeast: g.Op != assayv1alpha1.RatioAtMost && g.Op != assayv1alpha1.AtMost,
		Log:     relative, Class: verdictClass(g.Outcome), Number: numberOf(g.Estimate.Shown()),
	}
	if relative {
		one := 1.0
		interval.Neutral = &one
	}
	return interval.SVG()
}

// numberOf formats a value of a unit for an axis: as reports show it, without zeros that say nothing. Long units are in the
// plot's title.
func numberOf(unit string) chart.Number {
	return func(v float64) string {
		text := trimZeros(analysis.FormatNumber(v, unit))
		if unit != "s" && unit != "1" && unit != analysis.Times {
			text = strings.TrimSpace(strings.TrimSuffix(text, shownUnit(unit)))
		}
		return text
	}
}

// trimZeros turns "1.500x" into "1.5x" and "10.00 ms" into "10 ms".
func trimZeros(s string) string {
	end := len(s)
	for i, r := range s {
		if (r < '0' || r > '9') && r != '.' && r != '-' {
			end = i
			break
		}
	}
	number, unit := s[:end], s[end:]
	if v, err := strconv.ParseFloat(number, 64); err == nil && len(unit) > 0 && unit[0] != 'e' || err == nil && unit == "" {
		number = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return number + unit
}

func percent(share *float64) string {
	if share == nil {
		return ""
	}
	return strconv.FormatFloat(100**share, 'f', 1, 64) + " %"
}

// statisticName is how headings call a statistic of a metric.
func statisticName(metric string, statistic assayv1alpha1.Statistic) string {
	if statistic == assayv1alpha1.StatisticValue || statistic == "" {
		return metric
	}
	return metric + " " + string(statistic)
}
