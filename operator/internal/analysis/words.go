package analysis

import (
	"cmp"
	"fmt"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// Condition is the condition of the gate.
func (g *GateResult) Condition() experiment.Condition {
	return experiment.Condition{Metric: g.Metric, Statistic: g.Statistic, Op: g.Op, Bound: g.Bound}
}

func (f Figure) String() string {
	text := fmt.Sprintf("%s %s of %s", f.Metric, f.Statistic, f.Arm)
	if f.Point != "" {
		text += " at " + f.Point
	}
	return text
}

// Figure names the figure of the result.
func (r *ArmResult) Figure() Figure { return Figure{r.Point, r.Arm, r.Metric, r.Statistic} }

// Figure names the figure of its candidate that the gate judges.
func (g *GateResult) Figure() Figure { return Figure{g.Point, g.Candidate, g.Metric, g.Statistic} }

// Asked describes the condition of a gate or a constraint, e.g. "throughput at least 1.500x of loop".
func Asked(exp *experiment.Experiment, c experiment.Condition) string {
	against := c.Op.Against(BoundText(exp, c))
	switch c.Op.Subject() {
	case experiment.SubjectOutputs:
		return "the outputs agree"
	case experiment.SubjectCompletion:
		return against + " of its trials complete"
	case experiment.SubjectRatio:
		if baseline := Baseline(exp); baseline != "" {
			against += " of " + baseline
		}
	case experiment.SubjectDifference:
		against += MoreThan(exp)
	case experiment.SubjectLevel:
	}
	return StatisticName(c.Metric, c.Statistic) + " " + against
}

// MoreThan follows a difference in words: " more than loop".
func MoreThan(exp *experiment.Experiment) string {
	return " more than " + cmp.Or(Baseline(exp), "the baseline")
}

// Baseline is the name of the arm that the others are compared with; empty without one.
func Baseline(exp *experiment.Experiment) string {
	if at := exp.Baseline(); at >= 0 {
		return exp.Arms[at].Name
	}
	return ""
}

// Of reports whether a control is one of a gate's: the null arm's of the same metric and statistic at its point, or any control phase of
// its candidate there.
func (c *ControlResult) Of(gate *GateResult) bool {
	same := c.Phase != "" && c.Arm == gate.Candidate || c.Phase == "" && c.Metric == gate.Metric && c.Statistic == gate.Statistic
	return same && c.Point == gate.Point
}

// BoundText is the bound in its unit, or "".
func BoundText(exp *experiment.Experiment, c experiment.Condition) string {
	if c.Bound == nil {
		return ""
	}
	switch c.Op.Subject() {
	case experiment.SubjectCompletion:
		return quantity.InPercent(*c.Bound) + "%"
	case experiment.SubjectLevel, experiment.SubjectDifference:
		if metric := exp.Metric(c.Metric); metric != nil {
			return quantity.Format(*c.Bound, metric.Unit)
		}
	case experiment.SubjectRatio, experiment.SubjectOutputs:
	}
	return quantity.Format(*c.Bound, quantity.Times)
}

// Shown is the unit to show an estimate in.
func (e *Estimate) Shown() string {
	if e.Ratio {
		return quantity.Times
	}
	return e.Unit
}

// Exact reports whether the interval is one point, so that more blocks would not change it.
func (e *Estimate) Exact() bool { return e.Low != nil && e.High != nil && *e.Low == *e.High }

// Describe formats an estimate for messages and reports, e.g. "13.2x [12.9, 13.5]".
func Describe(estimate *Estimate) string {
	if estimate == nil {
		return "no estimate"
	}
	return quantity.Interval(estimate.Value, estimate.Low, estimate.High, estimate.Shown())
}

// DescribeShare returns the achieved share of the physical limit that the result came closest to, with the name of the limit. It returns
// "" if no limit was measured.
func DescribeShare(result *ArmResult) string {
	if result == nil || result.ShareOfCeiling == nil {
		return ""
	}
	return quantity.PercentTo(*result.ShareOfCeiling, 1) + " of " + result.Ceiling
}

// Title names a gate and its point in messages.
func (g *GateResult) Title() string {
	if g.Point == "" {
		return g.Gate
	}
	return g.Gate + " at " + g.Point
}

// FurtherGates describes the number of further gates with the same outcome; "" for none.
func FurtherGates(count int, outcome experiment.Verdict) string {
	switch {
	case count <= 0:
		return ""
	case count == 1:
		return fmt.Sprintf(" (and 1 more gate is %s)", outcome)
	default:
		return fmt.Sprintf(" (and %d more gates are %s)", count, outcome)
	}
}

// StatisticName names a statistic of a metric in headings and messages.
func StatisticName(metric string, statistic experiment.Statistic) string {
	if statistic == experiment.StatisticValue || statistic == "" {
		return metric
	}
	return metric + " " + string(statistic)
}

// PointName names a point in messages.
func PointName(key string) string {
	if key == "" {
		return "the only point"
	}
	return key
}
