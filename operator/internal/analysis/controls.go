package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
)

// Controls are comparisons whose answer is known: nothing moves. The null arm is the baseline started from another place, and
// a control phase is a part of the work that no arm changes. One that moves shows that this run measures something beside the
// change, as large as a difference it could otherwise call real, and no gate that rests on the same figures is decided then.

// control is a comparison to make, before it is known how many there are.
type control struct {
	result ControlResult
	point  int
	found  inference
}

// judgeControls makes every comparison that a gate leans on. There may be many, so that some would seem to move by accident:
// Holm's procedure shares the level of one gate among all of them.
func judgeControls(d *data, parity *parityReport) []ControlResult {
	controls := append(nullControls(d, parity), phaseControls(d, parity)...)
	order := make([]int, len(controls))
	p := make([]float64, len(controls))
	for i := range controls {
		order[i], p[i] = i, 1
		if controls[i].found.hasInterval() {
			p[i] = math.Min(1, 2*controls[i].found.tail(1))
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	for step, i := range order {
		level := (1 - d.gateConfidence) / float64(len(order)-step)
		if p[i] > level {
			break
		}
		controls[i].result.Moved = true
	}

	var out []ControlResult
	for i := range controls {
		c := &controls[i]
		c.result.Estimate = c.found.ratio()
		switch {
		case !c.found.hasInterval():
			c.result.Message = fmt.Sprintf("%s cannot be compared: %s", c.result.title(), c.found.reason)
		case c.result.Moved:
			c.result.Message = fmt.Sprintf("%s is %s of the baseline's and nothing was changed there", c.result.title(), Describe(c.result.Estimate))
		default:
			c.result.Message = "did not move"
		}
		out = append(out, c.result)
	}
	return out
}

// title names what was compared.
func (c *ControlResult) title() string {
	if c.Phase != "" {
		return fmt.Sprintf("control phase %s of %s at %s", c.Phase, c.Arm, PointName(c.Point))
	}
	return fmt.Sprintf("%s %s of the null arm %s at %s", c.Metric, c.Statistic, c.Arm, PointName(c.Point))
}

// nullControls compare the null arm wherever a gate looks, with the gate's metric and statistic.
func nullControls(d *data, parity *parityReport) []control {
	if d.exp.Baseline() < 0 || parity.baseline != "" {
		return nil
	}
	type place struct {
		point     int
		metric    string
		statistic experiment.Statistic
	}
	var out []control
	for arm := range d.exp.Arms {
		if !d.exp.Arms[arm].Null {
			continue
		}
		seen := map[place]bool{}
		visitGates(d.exp, func(gate experiment.Gate, _ string, point int) {
			metric := d.exp.Metric(gate.Metric)
			if gate.Op == experiment.ParityEqual || metric == nil {
				return
			}
			at := place{point, metric.Name, cmp.Or(gate.Statistic, metric.Statistic)}
			if seen[at] {
				return
			}
			seen[at] = true
			out = append(out, control{
				result: ControlResult{Point: d.exp.Points[point].Key, Arm: d.exp.Arms[arm].Name, Metric: at.metric, Statistic: at.statistic},
				point:  point, found: d.ratio(point, arm, at.metric, at.statistic).at(d.gateConfidence),
			})
		})
	}
	return out
}

// phaseControls compare every control phase of every candidate wherever a gate on times judges the candidate.
func phaseControls(d *data, parity *parityReport) []control {
	baseline := d.exp.Baseline()
	if baseline < 0 {
		return nil
	}
	type place struct {
		point     int
		candidate string
	}
	seen := map[place]bool{}
	var out []control
	visitGates(d.exp, func(gate experiment.Gate, candidate string, point int) {
		at := place{point, candidate}
		if gate.Op == experiment.ParityEqual || seen[at] || parity.refused(candidate) != "" {
			return
		}
		seen[at] = true
		for _, phase := range d.exp.Plan.Design.ControlPhases {
			out = append(out, control{
				result: ControlResult{Point: d.exp.Points[point].Key, Arm: candidate, Phase: phase},
				point:  point, found: d.phaseRatio(point, armIndex(d.exp, candidate), phase).at(d.gateConfidence),
			})
		}
	})
	return out
}

// phaseRatio is a phase's mean time of an arm over the baseline's, paired within blocks.
func (d *data) phaseRatio(point, arm int, phase string) inference {
	of := func(arm int) map[string][]float64 {
		_, series := d.phases(cell{point, arm})
		if series[phase] == nil {
			return nil
		}
		return series[phase].blocks
	}
	mine, theirs := of(arm), of(d.exp.Baseline())
	if len(mine) == 0 || len(theirs) == 0 {
		return inference{reason: fmt.Sprintf("no trial of both arms reports a phase %q", phase)}
	}
	if !allPositive(mine, theirs) {
		return inference{reason: fmt.Sprintf("phase %q has times that are not positive, and a ratio needs positive ones", phase)}
	}
	differences := blockDifferences(mine, theirs, true)
	found := d.acrossBuilds(differences, studentInference(differences, d.confidence, true), cell{point, arm}, cell{point, d.exp.Baseline()})
	if !found.hasInterval() {
		found.reason += " with the phase in both arms"
	}
	return found
}

// movedControl names the control of a gate that moved: the null arm's at the same point, of the same metric and statistic, or
// any control phase of the gate's candidate at the same point.
func movedControl(_ *data, j *judgement, gate *GateResult) string {
	for _, c := range j.controls {
		same := c.Phase != "" && c.Arm == gate.Candidate || c.Phase == "" && c.Metric == gate.Metric && c.Statistic == gate.Statistic
		if c.Moved && same && c.Point == gate.Point {
			return c.Message + ": so large a difference comes about without the change"
		}
	}
	return ""
}

// controlWarnings raise what the controls show beside the gates: those that moved, those that could not be compared, and
// effects no larger than what the null arm shows.
func controlWarnings(found *Analysis) []string {
	var out []string
	for _, c := range found.Controls {
		if c.Moved || c.Estimate == nil || c.Estimate.Low == nil {
			out = append(out, c.Message)
		}
	}
	for _, gate := range found.Gates {
		if gate.Estimate == nil || !gate.Estimate.Ratio || gate.Estimate.Value <= 0 || !decisive(gate.Outcome) || !excludesOne(gate.Estimate) {
			continue
		}
		for _, c := range found.Controls {
			if c.Phase != "" || c.Point != gate.Point || c.Metric != gate.Metric || c.Statistic != gate.Statistic || c.Estimate == nil ||
				c.Estimate.Value <= 0 {
				continue
			}
			if math.Abs(math.Log(c.Estimate.Value)) >= math.Abs(math.Log(gate.Estimate.Value)) {
				out = append(out, fmt.Sprintf("the effect of %s on %s at %s (%s) is no larger than that of no change at all (%s of the null arm)",
					gate.Candidate, gate.Metric, PointName(gate.Point), Describe(gate.Estimate), Describe(c.Estimate)))
			}
		}
	}
	return out
}

func excludesOne(estimate *Estimate) bool {
	return estimate.Low != nil && *estimate.Low > 1 || estimate.High != nil && *estimate.High < 1
}
