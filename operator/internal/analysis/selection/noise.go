package selection

import (
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// Noise is what the limits said of the trials that would otherwise be used.
type Noise struct {
	Trials int
	// Arms counts by arm, in the experiment's order, and beyond over all of them.
	Arms   []analysis.ArmNoise
	Beyond map[noise.Kind]int
	// Passed counts the trials beyond a limit that would take them out, and are used since the run says Warn.
	Passed int
	// Unread counts the trials for which a limit could not be judged.
	Unread map[noise.Kind]int
}

// rejectNoisy drops the trials in whose own time somebody else was at work, and nothing beside them: each arm's mean in a block is
// of what is left of it there. What a trial may have done to itself is counted and drops nothing (noise.Kind.Rejects). Seen are all
// attempts of the experiment; they show how fast the machine is when it is quiet.
func (s *Selection) rejectNoisy(exp *experiment.Experiment, seen, attempts []*record.Attempt) []*record.Attempt {
	limits := exp.Plan.Noise
	reference := noise.NewReference(seen)
	found := Noise{Trials: len(attempts), Beyond: map[noise.Kind]int{}, Unread: map[noise.Kind]int{}}
	for _, arm := range exp.Arms {
		found.Arms = append(found.Arms, analysis.ArmNoise{Arm: arm.Name, Beyond: map[noise.Kind]int{}})
	}
	out := s.keep(attempts, Noisy, func(attempt *record.Attempt) string {
		arm := &found.Arms[s.Cells[attempt].Arm]
		arm.Trials++
		violations, unread := reference.Judge(limits, attempt)
		for _, kind := range unread {
			found.Unread[kind]++
		}
		var others []string
		for _, violation := range violations {
			found.Beyond[violation.Kind]++
			arm.Beyond[violation.Kind]++
			if violation.Kind.Rejects() {
				others = append(others, violation.Message)
			}
		}
		switch {
		case len(others) == 0:
			return ""
		case exp.Plan.OnViolation == noise.Warn:
			found.Passed++
			return ""
		}
		arm.Rejected++
		return "it ran beyond a noise limit: " + strings.Join(others, "; ")
	})
	s.Noise, s.Judged = found, attempts
	return out
}
