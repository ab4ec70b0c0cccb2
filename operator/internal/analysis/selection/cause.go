package selection

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// FirstLoss returns the first measured trial without a usable result: one that failed, else one that could not start, else, if any is set,
// one that another rule rejects. It returns nil without one. The trial's message is the reason, or the rule's for a trial without one.
func (s *Selection) FirstLoss(exp *experiment.Experiment, any bool) *analysis.Cause {
	classes := [][]Rejection{{Failed, Unusable}, {notStarted}}
	if any {
		classes = append(classes, []Rejection{altered, unreadable, staleLease, environment, Noisy})
	}
	for _, kinds := range classes {
		first := slices.IndexFunc(s.Own, func(attempt *record.Attempt) bool {
			return !attempt.Warmup && slices.Contains(kinds, s.Kinds[attempt])
		})
		if first >= 0 {
			return s.lossOf(exp, s.Own[first], kinds)
		}
	}
	return nil
}

// lossOf counts the trials of the attempt's arm, and those of them that are lost in one of several ways.
func (s *Selection) lossOf(exp *experiment.Experiment, first *record.Attempt, kinds []Rejection) *analysis.Cause {
	arm := s.Cells[first].Arm
	out := &analysis.Cause{Arm: exp.Arms[arm].Name, Trial: first.Trial, Reason: first.Message}
	seen, lost := map[string]bool{}, map[string]bool{}
	for _, attempt := range s.Own {
		if !attempt.Warmup && s.Cells[attempt].Arm == arm {
			seen[attempt.Trial] = true
			if slices.Contains(kinds, s.Kinds[attempt]) {
				lost[attempt.Trial] = true
			}
		}
	}
	out.Lost, out.Of = len(lost), len(seen)
	if out.Reason == "" {
		if i := slices.IndexFunc(s.Rejected, func(one Exclusion) bool { return one.of == first }); i >= 0 {
			out.Reason = s.Rejected[i].Reason
		}
	}
	out.Reason = record.Shorten(cmp.Or(out.Reason, howLost(s.Kinds[first], first)), longestCause)
	return out
}

// RanTrials counts the measured trials whose program was started.
func (s *Selection) RanTrials() int {
	ran := map[string]bool{}
	for _, attempt := range s.Own {
		if !attempt.Warmup && s.Kinds[attempt] != notStarted {
			ran[attempt.Trial] = true
		}
	}
	return len(ran)
}
