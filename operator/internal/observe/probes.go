package observe

import (
	"context"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// A run that measures nothing should say so after its first trial and not after its wave. So the first attempts of a wave are read as they
// appear, until one of them is a failure.

// Limits of the attempts that are read before the analysis, in a reconcile and in a wave.
const (
	probesAtOnce  = 8
	probesPerWave = 64
)

// probes are the attempts of a wave that were read, and the first failure among them. Values are not modified, because older copies may be
// read concurrently.
type probes struct {
	read    map[string]bool
	failure *record.Failure
}

// pending returns the keys to read now or later: those of earlier reconciles that are not read yet, whose blocks may not be listed again,
// and those that were listed now.
func (p probes) pending(before, listed []string) (out []string) {
	if p.failure != nil {
		return nil
	}
	for _, key := range slices.Concat(before, listed) {
		if !p.read[key] && !slices.Contains(out, key) && len(out) < probesPerWave-len(p.read) {
			out = append(out, key)
		}
	}
	return out
}

// after reads the keys until one is a failure, or a success whose result the analysis will reject.
func (p probes) after(ctx context.Context, s store.Store, keys []string, rejects func(*record.Attempt) string) (probes, error) {
	out := probes{read: maps.Clone(p.read), failure: p.failure}
	if out.read == nil {
		out.read = map[string]bool{}
	}
	for _, key := range keys {
		found, attempt, err := ledger.ReadFailure(ctx, s, key)
		if err != nil {
			return p, err
		}
		if attempt != nil {
			if why := rejects(attempt); why != "" {
				found = &record.Failure{Trial: attempt.Trial, Arm: attempt.Arm, Outcome: attempt.Outcome, Message: why}
			}
		}
		if out.read[key] = true; found != nil {
			out.failure = found
			break
		}
	}
	return out, nil
}

// failing describes the first failure among the first attempts of the newest wave; empty without one.
func (p *progress) failing(ctx context.Context, s store.Store, exp *experiment.Experiment, wave *record.Wave) (string, error) {
	rejects := func(attempt *record.Attempt) string { return rejected(exp, wave, attempt) }
	var err error
	if p.probes, err = p.probes.after(ctx, s, p.first[:min(probesAtOnce, len(p.first))], rejects); err != nil || p.probes.failure == nil {
		return "", err
	}
	return p.probes.failure.Sentence(), nil
}

// rejected explains why the analysis will not use the result of a successful attempt: a missing metric, another unit, a number that cannot
// be a measurement. It is empty if it will, and for a result with a histogram, which the operator does not decode.
func rejected(exp *experiment.Experiment, wave *record.Wave, attempt *record.Attempt) string {
	for _, metric := range attempt.Reported().Metrics {
		if metric.Histogram != nil {
			return ""
		}
	}
	block := *wave
	block.Blocks = slices.DeleteFunc(slices.Clone(wave.Blocks), func(b record.Block) bool { return b.ID != attempt.Block })
	evidence := record.Evidence{Waves: []record.Wave{block}, Attempts: []record.Attempt{*attempt}}
	loss := selection.Select(exp, evidence, wave.Wave).FirstLoss(exp, false)
	if loss == nil {
		return ""
	}
	return loss.Reason
}
