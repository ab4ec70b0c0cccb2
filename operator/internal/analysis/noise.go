package analysis

import (
	"fmt"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// noiseFindings is what the limits said of the trials that would otherwise be used.
type noiseFindings struct {
	policy assayv1alpha1.ViolationPolicy
	trials int
	// beyond counts the trials that broke a limit, disturbed those that broke any.
	beyond    map[noise.Kind]int
	disturbed int
	// unread counts the trials for which a limit could not be judged.
	unread map[noise.Kind]int
}

// company is the trials that are compared as neighbours: those of one point in one block.
type company struct {
	block string
	point int
}

// rejectNoisy drops the trials that ran beyond a limit, and with each all trials of its point in its block: a pair of which
// one half was disturbed says nothing, and keeping the other half would choose by its result. Seen are all attempts of the
// experiment; they tell how fast the machine is when it is quiet.
func (s *selection) rejectNoisy(exp *experiment.Experiment, seen, attempts []*record.Attempt) []*record.Attempt {
	limits := noise.LimitsOf(&exp.Spec)
	reference := noise.NewReference(seen)
	s.noise = noiseFindings{
		policy: noise.PolicyOf(&exp.Spec), trials: len(attempts), beyond: map[noise.Kind]int{}, unread: map[noise.Kind]int{},
	}
	broken := map[*record.Attempt]string{}
	first := map[company]*record.Attempt{}
	for _, attempt := range attempts {
		violations, unread := reference.Judge(limits, attempt)
		for _, kind := range unread {
			s.noise.unread[kind]++
		}
		if len(violations) == 0 {
			continue
		}
		var words []string
		for _, violation := range violations {
			s.noise.beyond[violation.Kind]++
			words = append(words, violation.Message)
		}
		s.noise.disturbed++
		broken[attempt] = strings.Join(words, "; ")
		if at := s.companyOf(attempt); first[at] == nil {
			first[at] = attempt
		}
	}
	if s.noise.policy == assayv1alpha1.ViolationWarn {
		return attempts
	}
	var out []*record.Attempt
	for _, attempt := range attempts {
		culprit := first[s.companyOf(attempt)]
		switch {
		case broken[attempt] != "":
			s.rejectAttempt(attempt, noisy, "it ran beyond a noise limit: %s", broken[attempt])
		case culprit != nil:
			s.rejectAttempt(attempt, noisy, "trial %s of arm %s, with which it is compared, ran beyond a noise limit: %s", culprit.Trial, culprit.Arm, broken[culprit])
		default:
			out = append(out, attempt)
		}
	}
	return out
}

func (s *selection) companyOf(attempt *record.Attempt) company {
	return company{attempt.Block, s.cells[attempt].point}
}

// noiseWarnings say what was let pass, and which limits could not be judged.
func noiseWarnings(found noiseFindings) []string {
	var out []string
	if found.policy == assayv1alpha1.ViolationWarn && found.disturbed > 0 {
		out = append(out, fmt.Sprintf("%d of %d trials ran beyond a noise limit and are used all the same, since environment.onViolation is Warn: %s",
			found.disturbed, found.trials, byKind(found.beyond)))
	}
	if len(found.unread) > 0 {
		out = append(out, fmt.Sprintf("noise limits that could not be judged, of %d trials, for want of a reading: %s", found.trials, byKind(found.unread)))
	}
	return out
}

func byKind(counts map[noise.Kind]int) string {
	var parts []string
	for _, kind := range noise.Kinds {
		if counts[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%s in %d", kind, counts[kind]))
		}
	}
	return strings.Join(parts, ", ")
}
