package selection

import (
	"fmt"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A result says which workload it is of. Arms that the plan has run one program are one workload, whatever their parameters: where their
// results name several, one of them is of something else.

// workloads are the names that the results of every arm have, failed trials' and warm-ups' too.
func (s *Selection) workloads(genuine []*record.Attempt) map[int]map[string]bool {
	out := map[int]map[string]bool{}
	for _, attempt := range genuine {
		if kind := s.Kinds[attempt]; kind == superseded || kind == staleLease || attempt.Reported().Workload.Name == "" {
			continue
		}
		Inner(out, s.Cells[attempt].Arm)[attempt.Reported().Workload.Name] = true
	}
	return out
}

// stranger is an arm whose results name another workload than the baseline's.
type stranger struct {
	Says string
	// Planned reports whether the plan has both run one program, so that this cannot be.
	Planned bool
}

func strangers(exp *experiment.Experiment, waves []record.Wave, named map[int]map[string]bool) map[int]stranger {
	out := map[int]stranger{}
	baseline := exp.Baseline()
	theirs := slices.Collect(maps.Keys(named[baseline]))
	for arm := range exp.Arms {
		own := slices.Collect(maps.Keys(named[arm]))
		// An arm that is of several workloads changed during the run.
		if len(own) != 1 || len(theirs) != 1 || own[0] == theirs[0] {
			continue
		}
		out[arm] = stranger{
			Says: fmt.Sprintf("the results of arm %s are of workload %q and those of %s of %q", exp.Arms[arm].Name, own[0],
				exp.Arms[baseline].Name, theirs[0]),
			Planned: maps.Equal(plannedPrograms(exp, waves, arm), plannedPrograms(exp, waves, baseline)),
		}
	}
	return out
}

// plannedPrograms are the programs that an arm is to run, each with its image: those of the experiment, and of the plans, which on one
// machine name them by other paths.
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
