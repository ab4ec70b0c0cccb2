package selection

import (
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// Noise summarizes the noise limits over the trials that passed all other rules.
type Noise struct {
	// Trials is the number of trials that were compared with the limits.
	Trials int
	// Arms counts by arm, in the experiment's order, and Beyond counts the trials of all arms that were beyond a limit.
	Arms   []analysis.ArmNoise
	Beyond map[noise.Kind]int
	// Passed counts the trials that are used although they were beyond a limit that rejects, because the run asks for Warn.
	Passed int
	// Unread counts the trials that lack the reading of a limit.
	Unread map[noise.Kind]int
}

// noiseVerdict is the result of the noise limits for one trial.
type noiseVerdict struct {
	beyond, unread []noise.Kind
	// others are the messages of the limits that other processes exceeded.
	others []string
}

// rejectNoisy rejects the trials during which other processes were active, and no others: the mean of an arm in a block is that of its
// remaining trials. Limits that a trial may have exceeded by itself are counted and reject nothing (noise.Kind.Rejects). The reference for
// a quiet machine is taken from all attempts of the experiment.
func rejectNoisy(exp *experiment.Experiment, cells map[*record.Attempt]Cell, own, attempts []*record.Attempt) (ruling, Noise) {
	reference := noise.NewReference(own)
	verdicts := map[*record.Attempt]noiseVerdict{} // Most attempts have no violation and all readings.
	for _, attempt := range attempts {
		if verdict := judgeNoise(reference, exp.Plan.Noise, attempt); len(verdict.beyond)+len(verdict.unread) > 0 {
			verdicts[attempt] = verdict
		}
	}
	out := rule(attempts, Noisy, func(attempt *record.Attempt) string {
		if others := verdicts[attempt].others; len(others) > 0 && exp.Plan.OnViolation != noise.Warn {
			return "it ran beyond a noise limit: " + strings.Join(others, "; ")
		}
		return ""
	})
	return out, sumNoise(exp, cells, attempts, out, verdicts)
}

func judgeNoise(reference *noise.Reference, limits noise.Limits, attempt *record.Attempt) noiseVerdict {
	violations, unread := reference.Judge(limits, attempt)
	out := noiseVerdict{unread: unread}
	for _, violation := range violations {
		out.beyond = append(out.beyond, violation.Kind)
		if violation.Kind.Rejects() {
			out.others = append(out.others, violation.Message)
		}
	}
	return out
}

// sumNoise counts the verdicts by arm and kind.
func sumNoise(exp *experiment.Experiment, cells map[*record.Attempt]Cell, attempts []*record.Attempt, found ruling,
	verdicts map[*record.Attempt]noiseVerdict) Noise {
	out := Noise{Trials: len(attempts), Beyond: map[noise.Kind]int{}, Unread: map[noise.Kind]int{}}
	for _, arm := range exp.Arms {
		out.Arms = append(out.Arms, analysis.ArmNoise{Arm: arm.Name, Beyond: map[noise.Kind]int{}})
	}
	for _, attempt := range attempts {
		arm, verdict := &out.Arms[cells[attempt].Arm], verdicts[attempt]
		arm.Trials++
		for _, kind := range verdict.unread {
			out.Unread[kind]++
		}
		for _, kind := range verdict.beyond {
			out.Beyond[kind]++
			arm.Beyond[kind]++
		}
		if len(verdict.others) > 0 && exp.Plan.OnViolation == noise.Warn {
			out.Passed++
		}
	}
	for _, rejected := range found.rejected {
		out.Arms[cells[rejected.of].Arm].Rejected++
	}
	return out
}
