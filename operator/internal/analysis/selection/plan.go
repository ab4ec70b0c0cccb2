package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// plan is the index of the waves' plans.
type plan struct {
	// known is false for a ledger without plans. Then the attempts' own fields are not checked against a plan.
	known    bool
	slots    map[string]*plannedSlot
	leases   map[string]*record.Lease
	purposes Purposes
}

// plannedSlot is the plan of one trial.
type plannedSlot struct {
	cell         Cell
	block, build string
	slot         int
	warmup       bool
	command      *command
}

// indexPlan indexes the plans up to and including a wave by trial and block. A plan of another run or experiment is excluded, and one
// that contradicts the experiment is a gap.
func indexPlan(exp *experiment.Experiment, waves []record.Wave, through int) (plan, findings) {
	out := plan{slots: map[string]*plannedSlot{}, leases: map[string]*record.Lease{}, purposes: Purposes{}}
	var found findings
	points, arms := indexes(exp)
	for i := range waves {
		wave := &waves[i]
		if wave.Wave > through {
			continue
		}
		key := record.WaveKey(wave.Wave)
		if wave.Run.UID != exp.Run.UID || wave.Experiment != exp.Digest {
			// A gap as well: marking a plan as another run's would remove its blocks from those that are judged.
			found.add(key, foreign, "the plan is of run %s and experiment %s", wave.Run.UID, wave.Experiment)
			continue
		}
		out.known = true
		if why := cmp.Or(contradictsArms(exp.Arms, wave.Arms), contradictsPurpose(&exp.Plan, wave.Purpose)); why != "" {
			found.add(key, foreign, "the plan contradicts the experiment: %s", why)
		}
		commands := make([]command, len(wave.Cells))
		for i, c := range wave.Cells {
			commands[i] = command{c.Argv, c.Parameters}
		}
		add := func(block string, order []int, warmup bool) {
			for slot, index := range order {
				c := wave.Cells[index]
				point, knownPoint := points[wave.Points[c.Point].Key]
				arm, knownArm := arms[wave.Arms[c.Arm].Name]
				if knownPoint && knownArm {
					out.slots[record.TrialName(block, slot, warmup)] = &plannedSlot{Cell{point, arm}, block, c.Build, slot, warmup,
						&commands[index]}
				}
			}
		}
		for _, block := range wave.Blocks {
			out.leases[block.ID], out.purposes[block.ID] = block.Lease, wave.Purpose
			add(block.ID, block.Warmup, true)
			add(block.ID, block.Order, false)
		}
	}
	return out, found
}

// contradictsArms describes how the arms of a plan differ from those of the experiment; empty if they agree. The plan of a search may have
// fewer arms.
func contradictsArms(experiment, plan []record.Arm) string {
	for i, arm := range plan {
		at := slices.IndexFunc(experiment, func(a record.Arm) bool { return a.Name == arm.Name })
		switch {
		case at < 0:
			var names []string
			for _, a := range experiment {
				names = append(names, a.Name)
			}
			return fmt.Sprintf("arms[%d] is %q and the experiment has %s", i, arm.Name, strings.Join(names, ", "))
		case experiment[at].Baseline != arm.Baseline || experiment[at].Null != arm.Null:
			return fmt.Sprintf("arms[%d], %q, has baseline %v and null %v, and in the experiment baseline %v and null %v", i, arm.Name, arm.Baseline,
				arm.Null, experiment[at].Baseline, experiment[at].Null)
		}
	}
	return ""
}

// contradictsPurpose describes a purpose of a wave that the experiment does not ask for, so that its blocks would not be judged; empty if
// it asks for it.
func contradictsPurpose(plan *experiment.Plan, why record.Purpose) string {
	switch {
	case why == record.Search && plan.Search == nil:
		return "its purpose is search and the experiment has no search"
	case why == record.Confirm && plan.Search == nil && plan.Design.Confirm == nil:
		return "its purpose is confirm and the experiment confirms nothing"
	}
	return ""
}

// disagreement describes how an attempt differs from its planned slot; empty if it agrees or the ledger has no plans.
func (p plan) disagreement(attempt *record.Attempt, c Cell) string {
	if !p.known {
		return ""
	}
	slot, ok := p.slots[attempt.Trial]
	switch lease := p.leases[attempt.Block]; {
	case !ok:
		return fmt.Sprintf("no wave planned trial %s", attempt.Trial)
	case slot.cell != c:
		return fmt.Sprintf("trial %s was planned for another arm or point than arm %q at point %q", attempt.Trial, attempt.Arm, attempt.Point)
	case slot.build != attempt.Build:
		return fmt.Sprintf("trial %s was planned for build %q of arm %q and it ran build %q", attempt.Trial, slot.build, attempt.Arm,
			attempt.Build)
	case lease != nil && (attempt.Lease == nil || *attempt.Lease != *lease):
		return fmt.Sprintf("block %s may run only under lease token %d of node %s", attempt.Block, lease.Token, lease.Node)
	}
	return ""
}

// command returns the planned command of a trial; nil if no plan has the trial.
func (p plan) command(trial string) *command {
	if slot := p.slots[trial]; slot != nil {
		return slot.command
	}
	return nil
}
