package experiment

import "fmt"

// RewardsWorse describes how a condition rewards what its metric's direction calls worse; empty where it does not, or where the run
// says that this is meant. A bound on the other side than 1, as in RatioAtMost 1.05 of a time, allows a loss and rewards none.
func (c Condition) RewardsWorse(metric *Metric) string {
	meant, compares := map[Op]Op{AtLeast: AtMost, RatioAtLeast: RatioAtMost, AtMost: AtLeast, RatioAtMost: RatioAtLeast}[c.Op]
	worse := LowerIsBetter
	if c.Op == AtMost || c.Op == RatioAtMost {
		worse = HigherIsBetter
	}
	if !compares || c.AllowWorse || metric.Direction != worse {
		return ""
	}
	return fmt.Sprintf("%s of metric %q rewards what is worse, as its direction is %s: write %s, or allow it with allowWorse: true",
		c.Op, metric.Name, metric.Direction, meant)
}
