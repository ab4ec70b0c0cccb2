package selection

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// rejectForeign rejects the attempts that are not of this experiment, contradict themselves, or differ from their plan or from the command
// of their cell. It returns the cells of the admitted ones.
func rejectForeign(exp *experiment.Experiment, planned plan, attempts []*record.Attempt) (ruling, map[*record.Attempt]Cell) {
	rules := newIdentityRules(exp)
	asked := commands(exp)
	cells, seen := map[*record.Attempt]Cell{}, map[string]bool{}
	return rule(attempts, foreign, func(attempt *record.Attempt) string {
		at, reason := rules.cellOf(attempt)
		switch own, known := asked[variant{at, attempt.Build}]; {
		case reason != "":
			return reason
		case seen[attempt.ID]:
			return "another attempt has the same id"
		case !known:
			return unknownBuild(exp, attempt, at)
		default:
			if reason = planned.disagreement(attempt, at); reason == "" {
				reason = contradiction(attempt, own, planned.command(attempt.Trial))
			}
		}
		if reason == "" {
			seen[attempt.ID], cells[attempt] = true, at
		}
		return reason
	}), cells
}

// findUnplanned returns the keys of this experiment's attempts that no plan has. Each is a gap: every plan is older than its attempts, so
// that removing slots from a plan would choose which trials are judged.
func findUnplanned(exp *experiment.Experiment, planned plan, attempts []*record.Attempt) (gaps []string) {
	if !planned.known {
		return nil
	}
	rules := newIdentityRules(exp)
	for _, attempt := range attempts {
		if _, ok := planned.slots[attempt.Trial]; ok {
			continue
		}
		if _, reason := rules.cellOf(attempt); reason == "" {
			gaps = append(gaps, sourceOf(attempt).Key)
		}
	}
	return gaps
}

// identityRules check the fields that assign an attempt to a cell of the experiment.
type identityRules struct {
	exp          *experiment.Experiment
	points, arms map[string]int
}

func newIdentityRules(exp *experiment.Experiment) identityRules {
	points, arms := indexes(exp)
	return identityRules{exp, points, arms}
}

// cellOf returns the cell of an attempt, or the reason why it has none.
func (r identityRules) cellOf(attempt *record.Attempt) (at Cell, reason string) {
	point, knownPoint := r.points[attempt.Point]
	arm, knownArm := r.arms[attempt.Arm]
	switch {
	case attempt.Run.UID != r.exp.Run.UID:
		reason = fmt.Sprintf("it is of run uid %q and this run has %q", attempt.Run.UID, r.exp.Run.UID)
	case attempt.Experiment != r.exp.Digest:
		reason = fmt.Sprintf("it is of experiment %s and this one is %s", attempt.Experiment, r.exp.Digest)
	case !knownPoint:
		reason = fmt.Sprintf("the experiment has no point %q", attempt.Point)
	case !knownArm:
		reason = fmt.Sprintf("the experiment has no arm %q", attempt.Arm)
	case attempt.Trial != record.TrialName(attempt.Block, attempt.Slot, attempt.Warmup) || trial.Executor(attempt) == attempt.ID:
		reason = fmt.Sprintf("id %q, trial %q, block %q, slot %d do not fit together", attempt.ID, attempt.Trial, attempt.Block, attempt.Slot)
	case !strings.HasPrefix(attempt.Block, record.WavePrefix(attempt.Wave)):
		reason = fmt.Sprintf("it is of wave %d and block %s is not", attempt.Wave, attempt.Block)
	}
	return Cell{point, arm}, reason
}
