package observe

import (
	"context"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/permanent"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// attemptsPerArm is the number of attempts of each arm that decide whether an analysis is worthwhile. The analysis reads all of them.
const attemptsPerArm = 6

// brokenArms returns the arms that the first block of a run could not measure, for a reason that a repetition does not change: every
// attempt that was read failed permanently. The block is read once, and only if an attempt of the wave failed and no earlier wave has any.
func (p *progress) brokenArms(ctx context.Context, s store.Store, exp *experiment.Experiment, newest *record.Wave) ([]string, error) {
	if p.over == "" || p.decided == p.over || p.probes.failure == nil || p.measuredEarlier() {
		return p.broken, nil
	}
	if p.decided != "" {
		return p.broken, nil // Another block was decided on.
	}
	byArm, err := attemptsOf(ctx, s, newest, p.over)
	if err != nil {
		return nil, err
	}
	rejects := func(attempt *record.Attempt) string { return rejected(exp, newest, attempt) }
	var broken []string
	for arm := range newest.Arms {
		failed, err := allFail(ctx, s, byArm[arm], rejects)
		if err != nil {
			return nil, err
		}
		if failed {
			broken = append(broken, newest.Arms[arm].Name)
		}
	}
	p.decided, p.broken = p.over, broken
	return broken, nil
}

// measuredEarlier reports whether a wave before the newest one has an attempt of a measured trial.
func (p *progress) measuredEarlier() bool {
	return slices.ContainsFunc(p.earlier, func(t tally) bool { return t.measured > 0 })
}

// attemptsOf returns the keys of the attempts of a block's measured trials, by arm.
func attemptsOf(ctx context.Context, s store.Store, wave *record.Wave, block string) (map[int][]string, error) {
	arms := map[string]int{}
	for _, b := range wave.Blocks {
		if b.ID != block {
			continue
		}
		for slot, cell := range b.Order {
			if cell < len(wave.Cells) {
				arms[record.TrialName(b.ID, slot, false)] = wave.Cells[cell].Arm
			}
		}
	}
	out, left := map[int][]string{}, keysPerTrial*len(arms)
	err := store.EachPage(ctx, s, ledger.AttemptsPrefix+block+"/", "", func(keys []string) error {
		for _, key := range keys {
			match := attemptKey.FindStringSubmatch(key)
			if left--; match == nil || left < 0 {
				continue
			}
			if arm, known := arms[match[3]]; known && len(key) <= longestProbe {
				out[arm] = append(out[arm], key)
			}
		}
		return nil
	})
	return out, err
}

// allFail reports whether some attempts have these keys and those that are read, evenly spaced, failed permanently or succeeded with a
// result that the analysis rejects.
func allFail(ctx context.Context, s store.Store, keys []string, rejects func(*record.Attempt) string) (bool, error) {
	for i := range min(attemptsPerArm, len(keys)) {
		found, attempt, err := ledger.ReadFailure(ctx, s, keys[i*len(keys)/min(attemptsPerArm, len(keys))])
		if err != nil {
			return false, err
		}
		if attempt != nil && rejects(attempt) != "" {
			continue
		}
		if found == nil || permanent.Trial(found.Outcome) != permanent.Permanent {
			return false, nil
		}
	}
	return len(keys) > 0, nil
}
