package plan

import (
	"fmt"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/outcome"
	"assay.dev/assay/operator/internal/permanent"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// A block that fails for a permanent reason fails in every repetition, and holds its node meanwhile. So the run ends with its first block
// if that can measure nothing, and goes on without an arm that it cannot measure.

// podsNeverStart ends a run whose first blocks do not start, for a reason that a repetition does not change. Without an attempt there is
// nothing to analyse.
func (p *planner) podsNeverStart() *Decision {
	pods := p.Pods.Unstarted
	if pods == nil || p.Ledger.Done > 0 || p.Wave.Stopped {
		return nil
	}
	tries := p.Ledger.Experiment.Plan.Retries + 1
	if pods.Class != permanent.Permanent && pods.Count < tries {
		return nil
	}
	message := fmt.Sprintf("the experiment measures nothing: pod %s on node %s cannot run a block: %s; %s, and create a new run",
		pods.Name, pods.Node, pods.Why, pods.Fix)
	out := failed(outcome.Of(true, experiment.VerdictInvalid).Reason, message)
	out.Action = Terminate{p.Wave.Name, message}
	return out
}

// armsBroken stops the first wave if its first block cannot measure the baseline or a candidate, so that the analysis decides: it ends a
// run with a broken setup, and the missing blocks are planned again without a candidate that it judges NoGo.
func (p *planner) armsBroken() *Decision {
	if p.Ledger.Experiment.Plan.Search != nil || len(p.Ledger.Open) == 0 {
		return nil // A search measures where arms fail.
	}
	broken := slices.DeleteFunc(slices.Clone(p.Ledger.BrokenArms), func(name string) bool {
		role, known := p.roleOf(name)
		return !known || !role.Judged() && role != experiment.RoleBaseline
	})
	if len(broken) == 0 {
		return nil
	}
	why := because(fmt.Sprintf("the first block could not measure %s and has %s to follow", arms(broken),
		quantity.Count(len(p.Ledger.Open), "block")), p.Ledger.Failing)
	return &Decision{
		Action: Stop{Execution: p.Wave.Name, Why: why, Again: true}, After: podsInterval, Progressing: true,
		Reason: assayv1alpha1.ReasonWaveRunning, Message: why + ": the attempts so far will be analysed",
	}
}

func arms(names []string) string {
	if len(names) == 1 {
		return "arm " + names[0]
	}
	return "arms " + strings.Join(names, ", ")
}

func (p *planner) roleOf(arm string) (role experiment.ArmRole, known bool) {
	all := p.Ledger.Experiment.Arms
	i := slices.IndexFunc(all, func(a record.Arm) bool { return a.Name == arm })
	if i < 0 {
		return role, false
	}
	return experiment.RoleOf(all[i]), true
}

// hopeless returns the candidates that are not measured any more: those that the first block could not measure and the analysis judges
// NoGo, and those that an earlier wave was planned without.
func (p *planner) hopeless() map[string]bool {
	out := map[string]bool{}
	exp := p.Ledger.Experiment
	if exp == nil || exp.Plan.Search != nil {
		return out
	}
	for _, arm := range exp.Arms {
		if !experiment.RoleOf(arm).Judged() {
			continue
		}
		never := slices.Contains(p.Ledger.BrokenArms, arm.Name) && slices.Contains(p.Ledger.NeverCompleted, arm.Name)
		if never || slices.ContainsFunc(p.Ledger.Waves, func(wave record.Wave) bool { return plannedWithout(&wave, arm.Name) }) {
			out[arm.Name] = true
		}
	}
	return out
}

// plannedWithout reports whether no cell of a wave has an arm of the experiment.
func plannedWithout(wave *record.Wave, arm string) bool {
	at := slices.IndexFunc(wave.Arms, func(a record.Arm) bool { return a.Name == arm })
	return at >= 0 && !slices.ContainsFunc(wave.Cells, func(cell record.Cell) bool { return cell.Arm == at })
}

// settled reports whether no candidate is left to measure, so that further blocks cannot change the verdict.
func (p *planner) settled() bool {
	hopeless := p.hopeless()
	return len(hopeless) > 0 && !slices.ContainsFunc(p.Ledger.Experiment.Arms, func(arm record.Arm) bool {
		return experiment.RoleOf(arm).Judged() && !hopeless[arm.Name]
	})
}

// brokenForGood reports whether the analysis found a setup that no further block can measure. A search goes on at other levels.
func (p *planner) brokenForGood() bool {
	return p.Ledger.SetupBroken != "" && p.Ledger.Experiment.Plan.Search == nil
}

// nextStep is the next step of the design, without the arms that are hopeless.
func (p *planner) nextStep() design.Step {
	step, hopeless := p.course().Next(), p.hopeless()
	if len(hopeless) == 0 || step.Done || step.Cells != nil {
		return step
	}
	step.Cells = map[int]int{}
	exp := p.Ledger.Experiment
	for i, cell := range exp.Cells {
		if !hopeless[exp.Arms[cell.Arm].Name] {
			step.Cells[i] = step.Blocks
		}
	}
	return step
}
