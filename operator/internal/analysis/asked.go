package analysis

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/experiment"
)

// Condition is what the gate asked for.
func (g *GateResult) Condition() experiment.Condition {
	return experiment.Condition{Metric: g.Metric, Statistic: g.Statistic, Op: g.Op, Bound: g.Bound}
}

// Asked is what a gate or a constraint asks for, as people read it everywhere: "throughput at least 1.500x of loop".
func Asked(exp *experiment.Experiment, c experiment.Condition) string {
	bound := BoundText(exp, c)
	if c.Op == experiment.ParityEqual {
		return "the outputs agree"
	}
	if c.Op == experiment.Completes {
		return "at least " + bound + " of its trials complete"
	}
	text := c.Metric
	if c.Statistic != experiment.StatisticValue {
		text += " " + string(c.Statistic)
	}
	text += " " + against(c.Op, bound)
	if baseline := exp.Baseline(); c.Op.Relative() && baseline >= 0 {
		text += " of " + exp.Arms[baseline].Name
	}
	return text
}

// against is which side of the bound a figure has to lie on.
func against(op experiment.Op, bound string) string {
	if asksAtLeast(op) {
		return "at least " + bound
	}
	return "at most " + bound
}

// BoundText is the bound in its unit; empty where there is none.
func BoundText(exp *experiment.Experiment, c experiment.Condition) string {
	metric := exp.Metric(c.Metric)
	switch {
	case c.Bound == nil:
		return ""
	case c.Op == experiment.Completes:
		return percent(*c.Bound)
	case c.Op.Relative() || metric == nil:
		return formatNumber(*c.Bound, Times)
	default:
		return formatNumber(*c.Bound, metric.Unit)
	}
}

// percent is a share as people write it, without the digits that binary fractions add.
func percent(share float64) string { return fmt.Sprint(math.Round(share*1e8)/1e6) + "%" }
