package selection

import (
	"fmt"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A result names its workload. Arms for which the plan has the same program run one workload with any parameters: if their results name
// different workloads, one of the results is wrong.

// workloadNames returns the workload names in the results of every arm, including those of failed trials and warm-ups.
func workloadNames(counting []*record.Attempt, cells map[*record.Attempt]Cell) map[int]map[string]bool {
	out := map[int]map[string]bool{}
	for _, attempt := range counting {
		if name := attempt.Reported().Workload.Name; name != "" {
			Inner(out, cells[attempt].Arm)[name] = true
		}
	}
	return out
}

// OtherWorkload describes an arm whose results name another workload than the baseline's.
type OtherWorkload struct {
	Text string
	// SameProgram reports whether the plan has both arms run one program, so that the results contradict the plan.
	SameProgram bool
}

func findOtherWorkloads(exp *experiment.Experiment, waves []record.Wave, named map[int]map[string]bool) map[int]OtherWorkload {
	out := map[int]OtherWorkload{}
	baseline := exp.Baseline()
	theirs := slices.Collect(maps.Keys(named[baseline]))
	for arm := range exp.Arms {
		own := slices.Collect(maps.Keys(named[arm]))
		// An arm with several workloads is a changed arm.
		if len(own) != 1 || len(theirs) != 1 || own[0] == theirs[0] {
			continue
		}
		out[arm] = OtherWorkload{
			Text: fmt.Sprintf("the results of arm %s are of workload %q and those of %s of %q", exp.Arms[arm].Name, own[0],
				exp.Arms[baseline].Name, theirs[0]),
			SameProgram: maps.Equal(plannedPrograms(exp, waves, arm), plannedPrograms(exp, waves, baseline)),
		}
	}
	return out
}

// plannedPrograms returns the programs that the experiment and the plans have for an arm, each with its image. The plans of a local run
// name them by other paths.
func plannedPrograms(exp *experiment.Experiment, waves []record.Wave, arm int) map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, c := range exp.Cells {
		if c.Arm == arm && len(c.Argv) > 0 {
			out[[2]string{exp.Image(c), c.Argv[0]}] = true
		}
	}
	for i := range waves {
		for _, c := range waves[i].Cells {
			if waves[i].Arms[c.Arm].Name == exp.Arms[arm].Name && len(c.Argv) > 0 {
				out[[2]string{"", c.Argv[0]}] = true
			}
		}
	}
	return out
}
