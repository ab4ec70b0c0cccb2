package analysis

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// noiseFindings is what the limits said of the trials that would otherwise be used.
type noiseFindings struct {
	policy noise.Policy
	trials int
	// arms counts by arm, in the experiment's order, and beyond over all of them.
	arms   []ArmNoise
	beyond map[noise.Kind]int
	// passed counts the trials beyond a limit that would take them out, and are used since the run says Warn.
	passed int
	// unread counts the trials for which a limit could not be judged.
	unread map[noise.Kind]int
}

// rejectNoisy drops the trials in whose own time somebody else was at work, and nothing beside them: each arm's mean in a block is
// of what is left of it there. What a trial may have done to itself is counted and drops nothing (noise.Kind.Rejects). Seen are all
// attempts of the experiment; they show how fast the machine is when it is quiet.
func (s *selection) rejectNoisy(exp *experiment.Experiment, seen, attempts []*record.Attempt) []*record.Attempt {
	limits := exp.Plan.Noise
	reference := noise.NewReference(seen)
	found := noiseFindings{
		policy: exp.Plan.OnViolation, trials: len(attempts), beyond: map[noise.Kind]int{}, unread: map[noise.Kind]int{},
	}
	for _, arm := range exp.Arms {
		found.arms = append(found.arms, ArmNoise{Arm: arm.Name, Beyond: map[noise.Kind]int{}})
	}
	var out []*record.Attempt
	for _, attempt := range attempts {
		arm := &found.arms[s.cells[attempt].arm]
		arm.Trials++
		violations, unread := reference.Judge(limits, attempt)
		for _, kind := range unread {
			found.unread[kind]++
		}
		var others []string
		for _, violation := range violations {
			found.beyond[violation.Kind]++
			arm.Beyond[violation.Kind]++
			if violation.Kind.Rejects() {
				others = append(others, violation.Message)
			}
		}
		switch {
		case len(others) == 0:
			out = append(out, attempt)
		case found.policy == noise.Warn:
			found.passed++
			out = append(out, attempt)
		default:
			arm.Rejected++
			s.rejectAttempt(attempt, noisy, "it ran beyond a noise limit: %s", strings.Join(others, "; "))
		}
	}
	s.noise, s.judged = found, attempts
	return out
}

// noiseWarnings describe what was let pass, what does not leave a trial out, whether the arms differ in it, and which limits could not
// be judged.
func noiseWarnings(exp *experiment.Experiment, found noiseFindings) []string {
	var out []string
	if found.passed > 0 {
		out = append(out, fmt.Sprintf("%d of %d trials ran beyond a noise limit and are used all the same, since environment.onViolation "+
			"is Warn: %s",
			found.passed, found.trials, byKind(found.beyond, noise.Kind.Rejects)))
	}
	for _, kind := range noise.Kinds {
		if found.beyond[kind] > 0 && !kind.Rejects() {
			out = append(out, fmt.Sprintf("%s beyond its limit leaves no trial out, as a trial can cause it itself: %s", kind,
				found.byArm(exp, func(arm *ArmNoise) int { return arm.Beyond[kind] })))
		}
	}
	rejected := func(arm *ArmNoise) int { return arm.Rejected }
	if text := found.byArm(exp, rejected); strings.Contains(text, differ) {
		out = append(out, "noise limits left out trials of some arms more often than of others: "+text)
	}
	if len(found.unread) > 0 {
		out = append(out, fmt.Sprintf("noise limits that could not be judged, of %d trials, for want of a reading: %s", found.trials,
			byKind(found.unread, func(noise.Kind) bool { return true })))
	}
	return out
}

// differ is what is said of an arm whose count cannot be chance.
const differ = "unlike the baseline"

// byArm lists the counts of all arms, and names those in which it happens at another rate than in the baseline.
func (found *noiseFindings) byArm(exp *experiment.Experiment, count func(arm *ArmNoise) int) string {
	var parts []string
	baseline := exp.Baseline()
	for i := range found.arms {
		arm := &found.arms[i]
		text := fmt.Sprintf("%d of %d trials of %s", count(arm), arm.Trials, arm.Arm)
		if baseline >= 0 && i != baseline {
			base := &found.arms[baseline]
			if p := fisher(count(arm), arm.Trials, count(base), base.Trials); p < unevenLevel {
				text += fmt.Sprintf(" (%s, Fisher's exact test p = %.2g)", differ, p)
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func byKind(counts map[noise.Kind]int, of func(noise.Kind) bool) string {
	var parts []string
	for _, kind := range noise.Kinds {
		if counts[kind] > 0 && of(kind) {
			parts = append(parts, fmt.Sprintf("%s in %d", kind, counts[kind]))
		}
	}
	return strings.Join(parts, ", ")
}
