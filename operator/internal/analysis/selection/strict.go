package selection

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// findGaps names the waves that must have been there: waves are numbered from 0 without a gap, and each has a plan before anything
// of it runs.
func (s *Selection) findGaps(exp *experiment.Experiment, evidence record.Evidence, through int) {
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
			s.Gaps = append(s.Gaps, key)
		case len(planned) > 0 && !planned[wave]:
			s.Gaps = append(s.Gaps, key)
			s.reject(key, absent, "the plan of wave %d is missing, and there are later ones: waves are numbered from 0 without a gap", wave)
		case len(planned) == 0 && !ran[wave]:
			s.Gaps = append(s.Gaps, key)
			s.reject(key, absent, "nothing of wave %d is there, and there are attempts of later ones: waves are numbered from 0 without a gap", wave)
		}
	}
}
