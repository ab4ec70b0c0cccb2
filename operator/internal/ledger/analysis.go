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

// A refused analysis stays refused until it is written again, so callers that poll for it double their interval.
const (
	RefusedFirst = 30 * time.Second
	RefusedMost  = 10 * time.Minute
)

// ReadAnalysis reads, bounds and validates the analysis of a wave. It returns the analysis and the memory that it takes in bytes, or
// ErrNotFound. It is the only reader, because anyone with a key of the namespace may have written the object.
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

// NewestAnalysis reads the newest analysis of the waves from newest down to oldest, and returns its wave; nil without any. Anyone who
// writes attempts can name any wave as the newest, so it reads only waves that the listing shows an analysis for.
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

// NewestReport returns the key of the HTML report of the newest wave that has one; empty without any. Other objects below the analyses are
// ignored, and waves are compared as numbers, because their names do not sort as their numbers do.
func NewestReport(ctx context.Context, store store.Store) (string, error) {
	newest, err := lastOf(ctx, store, "analysis/", htmlKey)
	if err != nil || newest < 0 {
		return "", err
	}
	return HTMLKey(newest), nil
}

// ReadJudged reads the experiment of a ledger and its newest analysis, or nil without one.
func ReadJudged(ctx context.Context, store store.Store) (*experiment.Experiment, *analysis.Analysis, error) {
	exp, err := ReadExperiment(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	// Pods that measure can write any number of attempts and waves, but no plan. Attempts are listed only if there is no plan.
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
