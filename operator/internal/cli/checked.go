package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/recompute"
	"assay.dev/assay/operator/internal/status"
	"assay.dev/assay/operator/internal/store"
)

// checkedLedger returns the ledger of a run on the cluster with the analysis that the operator accepted. If a client replaced it, or the
// operator accepted none, it is computed from the attempts, and must agree with the status.
func checkedLedger(s store.Store, run *assayv1alpha1.BenchmarkRun) store.Store {
	accepted := observe.Written(run.Status.Analysis)
	if accepted == nil && run.Status.CompletionTime == nil {
		accepted = &ledger.Written{Wave: -1} // No wave has an analysis yet.
	}
	return ledger.Accepted(s, accepted, func(ctx context.Context, s store.Store, wave int, cause error) (map[string][]byte, error) {
		result, err := recompute.Ledger(ctx, s, wave)
		if err != nil {
			return nil, errors.Join(cause, err)
		}
		last := int(ptr.Deref(run.Status.Wave, -1))
		if accepted != nil {
			last = accepted.Wave
		}
		if wave == last && run.Status.Verdict != "" {
			if err := agrees(run, result); err != nil {
				return nil, errors.Join(cause, err)
			}
		}
		if cause != nil {
			result.Analysis.Warnings = append(result.Analysis.Warnings,
				fmt.Sprintf("a client replaced %s in the ledger after the operator had accepted it: these results are computed again "+
					"from the attempts", ledger.AnalysisKey(wave)))
		}
		return byKey(result)
	})
}

// computedLedger returns a ledger in an object store without its run. Other clients may have written its analyses, so they are computed
// from the attempts.
func computedLedger(s store.Store) store.Store {
	return ledger.Accepted(s, nil, func(ctx context.Context, s store.Store, wave int, _ error) (map[string][]byte, error) {
		result, err := recompute.Ledger(ctx, s, wave)
		if err != nil {
			return nil, err
		}
		return byKey(result)
	})
}

func byKey(result *recompute.Analyzed) (map[string][]byte, error) {
	objects, err := result.Objects()
	out := make(map[string][]byte, len(objects))
	for _, object := range objects {
		out[object.Key] = object.Data
	}
	return out, err
}

// agrees returns an error if an analysis has other outcomes than the status of its run.
func agrees(run *assayv1alpha1.BenchmarkRun, result *recompute.Analyzed) error {
	var now assayv1alpha1.BenchmarkRunStatus
	status.Results(&now, result.Experiment, result.Analysis, "")
	outcomes := func(of *assayv1alpha1.BenchmarkRunStatus) (out []string) {
		out = append(out, string(of.Verdict), of.Best)
		for _, candidate := range of.Candidates {
			out = append(out, fmt.Sprint(candidate.Name, " ", candidate.Verdict))
		}
		gates := out[len(out):]
		for _, gate := range of.Gates {
			gates = append(gates, fmt.Sprint(gate.Name, " ", gate.Candidate, " ", gate.Point, " ", gate.Outcome))
		}
		slices.Sort(gates)
		return append(out, gates...)
	}
	if slices.Equal(outcomes(&run.Status), outcomes(&now)) {
		return nil
	}
	return fmt.Errorf("the attempts in %s do not give the results in the status of BenchmarkRun %s/%s: verdict %q instead of %q; a client "+
		"with a key of the namespace changed the ledger: use the status, or create a new run", run.Status.Ledger, run.Namespace, run.Name,
		now.Verdict, run.Status.Verdict)
}
