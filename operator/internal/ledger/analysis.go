package ledger

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// One that is refused stays so until somebody makes it again: who looks for it in a loop does so after twice as long each time.
const (
	RefusedFirst = 30 * time.Second
	RefusedMost  = 10 * time.Minute
)

// ReadAnalysis is the only reader of an analysis: it returns the one of a wave with the room that it takes, in bytes, or ErrNotFound.
// Whoever has a key of the namespace may have written it, so that what is read of it is bounded, and what none of ours says is refused.
func ReadAnalysis(ctx context.Context, store store.Store, wave int) (result *analysis.Analysis, room int, err error) {
	err = useLarge(ctx, store, AnalysisKey(wave), analysis.MostBytes, func(raw []byte) (err error) {
		room = analysis.RoomOf(raw)
		if result, err = analysis.Parse(raw); err != nil {
			return fmt.Errorf("invalid analysis %s in %s: %w; assay analyze --ledger URL --write makes it again", AnalysisKey(wave),
				store.URL(), err)
		}
		return nil
	})
	return result, room, err
}

var analysisKey = regexp.MustCompile(`^analysis/(` + record.WaveForm + `)/analysis\.json$`)

// NewestAnalysis reads the newest analysis of the waves from one down to another, and says of which it is; nil where there is none. Whoever
// writes attempts names the newest wave, which may be any number: only those that have an analysis are looked at.
func NewestAnalysis(ctx context.Context, s store.Store, newest, oldest int) (*analysis.Analysis, int, error) {
	if newest < oldest {
		return nil, 0, nil
	}
	result, _, err := ReadAnalysis(ctx, s, newest)
	if !errors.Is(err, store.ErrNotFound) {
		return result, newest, err
	}
	var waves []int
	err = store.EachKey(ctx, s, "analysis/", func(key string) {
		if wave, ok := waveOf(analysisKey, key); ok && oldest <= wave && wave < newest {
			waves = append(waves, wave)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	slices.Sort(waves)
	for _, wave := range slices.Backward(waves) {
		if result, _, err = ReadAnalysis(ctx, s, wave); !errors.Is(err, store.ErrNotFound) {
			return result, wave, err
		}
	}
	return nil, 0, nil
}

var htmlKey = regexp.MustCompile(`^analysis/(` + record.WaveForm + `)/report\.html$`)

// NewestReport is the key of the report for a browser of the newest wave that has one; empty without any. What else somebody left below
// the analyses is none, and waves are in the order of their numbers, which is not that of their names.
func NewestReport(ctx context.Context, store store.Store) (string, error) {
	newest, err := lastOf(ctx, store, "analysis/", htmlKey)
	if err != nil || newest < 0 {
		return "", err
	}
	return HTMLKey(newest), nil
}

// ReadJudged reads the experiment of a ledger and its newest analysis, nil without one.
func ReadJudged(ctx context.Context, store store.Store) (*experiment.Experiment, *analysis.Analysis, error) {
	exp, err := ReadExperiment(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	// Whoever measures writes any number of names of attempts and of waves, and no plan: attempts are listed where there is none.
	wave, err := lastOf(ctx, store, "waves/", waveKey)
	if err == nil && wave < 0 {
		wave, err = LastWave(ctx, store)
	}
	if err != nil {
		return nil, nil, err
	}
	result, _, err := NewestAnalysis(ctx, store, wave, 0)
	return exp, result, err
}
