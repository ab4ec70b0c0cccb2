package analysis

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// findGaps names the waves that must have been there: waves are numbered from 0 without a gap, and each has a plan before anything
// of it runs.
func (s *selection) findGaps(exp *experiment.Experiment, evidence record.Evidence, through int) {
	planned, ran, last := map[int]bool{}, map[int]bool{}, -1
	for _, wave := range evidence.Waves {
		if wave.Wave <= through {
			planned[wave.Wave] = true
			last = max(last, wave.Wave)
		}
	}
	for i := range evidence.Attempts {
		if attempt := &evidence.Attempts[i]; attempt.Wave <= through && attempt.Run.UID == exp.Run.UID && attempt.Experiment == exp.Digest {
			ran[attempt.Wave] = true
			last = max(last, attempt.Wave)
		}
	}
	// A plan that cannot be read is there all the same, also the newest.
	for _, problem := range evidence.Problems {
		var wave int
		if n, err := fmt.Sscanf(problem.Key, "waves/%d/wave.json", &wave); n == 1 && err == nil && wave <= through {
			last = max(last, wave)
		}
	}
	for wave := range last + 1 {
		key := record.WaveKey(wave)
		unread := slices.ContainsFunc(evidence.Problems, func(p record.Problem) bool { return p.Key == key })
		switch {
		case unread:
			s.gaps = append(s.gaps, key)
		case len(planned) > 0 && !planned[wave]:
			s.gaps = append(s.gaps, key)
			s.reject(key, absent, "the plan of wave %d is missing, and there are later ones: waves are numbered from 0 without a gap", wave)
		case len(planned) == 0 && !ran[wave]:
			s.gaps = append(s.gaps, key)
			s.reject(key, absent, "nothing of wave %d is there, and there are attempts of later ones: waves are numbered from 0 without a gap", wave)
		}
	}
}

// missingWave names a part of the evidence that is not there: a verdict from the rest of it might be another one.
func missingWave(d *data, _ *judgement, _ *GateResult) string {
	if len(d.chosen.gaps) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is missing, cannot be read or contradicts the experiment", d.chosen.gaps[0])
}

// strictWarnings name what a ledger leaves out or contradicts and can be judged without.
func strictWarnings(d *data) []string {
	out := workloadWarnings(d)
	if overlap := simultaneous(d.chosen.used); overlap != "" {
		out = append(out, overlap)
	}
	if ran, least := len(screened(d.chosen)), d.exp.Plan.Design.Blocks.Min; ran > 0 && ran < least && d.exp.Plan.Search == nil {
		out = append(out, fmt.Sprintf("the figures rest on %d blocks, and spec.design.blocks.min asks for at least %d", ran, least))
	}
	if d.exp.Plan.Design.GateConfidence == 0 {
		out = append(out, fmt.Sprintf("experiment.json: spec.design.gateConfidence is absent: gates are judged at spec.design.confidence, %g, "+
			"as in runs older than the field",
			d.confidence))
	}
	return out
}

// screened are the blocks that trials are used of, without those that confirm.
func screened(chosen *selection) map[string]bool {
	blocks := map[string]bool{}
	for _, attempt := range chosen.used {
		if chosen.purposes[attempt.Block] != record.Confirm {
			blocks[attempt.Block] = true
		}
	}
	return blocks
}
