package ledger

import (
	"context"
	"errors"
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

// NewestAnalysis reads the newest analysis of the waves up to one; nil where there is none. Whoever has a key of the namespace may have
// written it, so that what is read of it is bounded.
func NewestAnalysis(ctx context.Context, store Store, wave int) (*analysis.Analysis, error) {
	for ; wave >= 0; wave-- {
		raw, err := GetAtMost(ctx, store, AnalysisKey(wave), analysis.MostBytes)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		result, err := analysis.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("invalid analysis %s: %w; assay analyze --write makes it again", AnalysisKey(wave), err)
		}
		return result, nil
	}
	return nil, nil
}

// ReadJudged reads the experiment of a ledger and its newest analysis, nil without one.
func ReadJudged(ctx context.Context, store Store) (*experiment.Experiment, *analysis.Analysis, error) {
	exp, err := ReadExperiment(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	wave, err := LastWave(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	result, err := NewestAnalysis(ctx, store, wave)
	return exp, result, err
}
