package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Controls are comparisons with a known answer: no difference. The null arm is the baseline started from another place, and a control
// phase is a part of the work that no arm changes. A control that moves shows a confounder as large as a difference that the run would
// otherwise report, so gates on the same figures are not decided.

// control is a comparison to make, before it is known how many there are.
type control struct {
	result analysis.ControlResult
	found  estimate.Inference
	// unit is that of found where figures of 0 have no ratio, so that it is the difference to the baseline's.
	unit string
	// lacks is the reason why the comparison is impossible, or "".
	lacks string
}

// estimate is the estimate that the analysis shows.
func (c *control) estimate() *analysis.Estimate {
	if c.unit != "" {
		return c.found.Estimate(c.unit)
	}
	return c.found.Ratio()
}

// silent describes a control whose clock cannot show a movement: all readings of an arm are the same, or 0. It returns "" otherwise.
func silent(found estimate.Inference) string {
	if found.HasInterval() && found.Resolution != nil && found.Resolution.Assumed {
		return "every reading of an arm is the same, so that its clock does not show whether it moved"
	}
	return ""
}

// judgeControls makes every comparison that a gate depends on. Some of many would move by accident, so Holm's procedure shares the
// level of one gate among all of them.
func judgeControls(d *estimate.Data, parity *selection.Parity) []analysis.ControlResult {
	controls := append(nullControls(d, parity), phaseControls(d, parity)...)
	order := make([]int, len(controls))
	p := make([]float64, len(controls))
	for i := range controls {
		still := 1.0 // Where nothing moves, a ratio is 1 and a difference 0.
		if controls[i].unit != "" {
			still = 0
		}
		order[i], p[i] = i, 1
		if controls[i].found.HasInterval() {
			p[i] = math.Min(1, 2*controls[i].found.Tail(still))
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	for step, i := range order {
		level := (1 - d.GateConfidence) / float64(len(order)-step)
		if p[i] > level {
			break
		}
		controls[i].result.Moved = true
	}

	var out []analysis.ControlResult
	for i := range controls {
		c := &controls[i]
		c.result.Estimate = c.estimate()
		switch {
		case c.result.Moved && c.unit != "":
			c.result.Message = fmt.Sprintf("%s is %s from the baseline's and nothing was changed there", title(&c.result),
				analysis.Describe(c.result.Estimate))
		case c.result.Moved:
			c.result.Message = fmt.Sprintf("%s is %s of the baseline's and nothing was changed there", title(&c.result),
				analysis.Describe(c.result.Estimate))
		case c.lacks != "":
			c.result.Missing = true
			c.result.Message = fmt.Sprintf("%s cannot be compared: %s", title(&c.result), c.lacks)
		default:
			c.result.Message = "did not move"
		}
		out = append(out, c.result)
	}
	return out
}

// title names the compared figure.
func title(c *analysis.ControlResult) string {
	if c.Phase != "" {
		return fmt.Sprintf("control phase %s of %s at %s", c.Phase, c.Arm, analysis.PointName(c.Point))
	}
	return fmt.Sprintf("%s %s of the null arm %s at %s", c.Metric, c.Statistic, c.Arm, analysis.PointName(c.Point))
}

// nullControls compare the null arm wherever a gate looks, with the gate's metric and statistic.
func nullControls(d *estimate.Data, parity *selection.Parity) []control {
	if parity.Baseline != "" {
		return nil
	}
	var out []control
	for arm := range d.Exp.Arms {
		if !experiment.RoleOf(d.Exp.Arms[arm]).RepeatsBaseline() {
			continue
		}
		seen := map[figure]bool{}
		selection.VisitGates(d.Exp, func(gate experiment.Gate, _ string, point int) {
			metric := d.Exp.Metric(gate.Metric)
			if metric == nil { // The gate compares outputs.
				return
			}
			at := figure{point, metric.Name, cmp.Or(gate.Statistic, metric.Statistic)}
			if seen[at] {
				return
			}
			seen[at] = true
			one := control{
				result: analysis.ControlResult{Point: d.Exp.Points[point].Key, Arm: d.Exp.Arms[arm].Name, Metric: at.metric, Statistic: at.statistic},
				found:  d.Ratio(point, arm, at.metric, at.statistic).At(d.GateConfidence),
			}
			// Figures of 0 have a difference and no ratio, but a clock that reads 0 shows nothing.
			without := one.found.NoRatio || math.IsInf(one.found.Value, 1)
			if clock, rate := experiment.ByClock(metric.Unit); without && (!clock || rate) {
				one.found, one.unit = d.Difference(point, arm, at.metric, at.statistic).At(d.GateConfidence), metric.Unit
			}
			// If the null arm lost trials and the baseline did not, its remaining trials may be those that did not move.
			one.lacks = cmp.Or(one.found.Reason, silent(one.found), lostDifferently(d, metric.Name, point, arm, d.Exp.Baseline(), 1))
			out = append(out, one)
		})
	}
	return out
}

// phaseControls compare every control phase of every candidate wherever a gate on times judges the candidate.
func phaseControls(d *estimate.Data, parity *selection.Parity) []control {
	baseline := d.Exp.Baseline()
	if baseline < 0 {
		return nil
	}
	seen := map[selection.Cell]bool{}
	var out []control
	selection.VisitGates(d.Exp, func(gate experiment.Gate, candidate string, point int) {
		at := selection.At(point, selection.ArmIndex(d.Exp, candidate))
		if gate.Op == experiment.ParityEqual || seen[at] || parity.Refused(candidate) != "" {
			return
		}
		seen[at] = true
		for _, phase := range d.Exp.Plan.Design.ControlPhases {
			one := control{
				result: analysis.ControlResult{Point: d.Exp.Points[point].Key, Arm: candidate, Phase: phase},
				found:  d.PhaseRatio(point, at.Arm, phase).At(d.GateConfidence),
			}
			one.lacks = cmp.Or(unreported(d, point, phase, at.Arm, baseline), one.found.Reason, silent(one.found))
			out = append(out, one)
		}
	})
	return out
}

// unreported describes the trials of arms that do not report a phase, because these may be the trials in which it moved. It returns "" if
// all report it.
func unreported(d *estimate.Data, point int, phase string, arms ...int) string {
	for _, arm := range arms {
		trials, report := d.Trials[selection.At(point, arm)], 0
		for _, attempt := range trials {
			if slices.ContainsFunc(attempt.Reported().Phases, func(p record.Phase) bool { return p.Name == phase }) {
				report++
			}
		}
		if report < len(trials) {
			return fmt.Sprintf("%d of %s of arm %s report phase %q", report, quantity.Count(len(trials), "trial"), d.Exp.Arms[arm].Name, phase)
		}
	}
	return ""
}

// moved selects controls that show a change where none was made, and missing selects controls with too little data to tell. A run that
// asks for a control gets no Go without it.
func moved(c *analysis.ControlResult) bool   { return c.Moved }
func missing(c *analysis.ControlResult) bool { return c.Missing }

// ofControl returns a rule that names the control of a gate with a property, and its consequence. The control is the null arm's at the
// same point, of the same metric and statistic, or any control phase of the gate's candidate at the same point.
func ofControl(is func(*analysis.ControlResult) bool, so string) func(*estimate.Data, *judgement, *analysis.GateResult) string {
	return func(_ *estimate.Data, j *judgement, gate *analysis.GateResult) string {
		for i := range j.controls {
			if c := &j.controls[i]; is(c) && c.Of(gate) {
				return c.Message + ", " + so
			}
		}
		return ""
	}
}
