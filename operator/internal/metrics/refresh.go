package metrics

import (
	"context"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/period"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/store"
)

// refreshEvery is the interval of probing the store and of loading missing analyses.
const refreshEvery = 30 * time.Second

// Start exports metrics in this operator until the context ends. Active runs are loaded when they are reconciled; those that finished
// before this operator started are loaded here.
func (m *Metrics) Start(ctx context.Context) error {
	m.leading.Store(true)
	defer m.leading.Store(false)
	for {
		m.refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-m.from.Clock.After(refreshEvery):
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Two operators exporting the same series would be counted twice.
func (m *Metrics) NeedLeaderElection() bool { return true }

func (m *Metrics) refresh(ctx context.Context) {
	logger := ctrl.LoggerFrom(ctx).WithName("metrics")
	up := answers
	if err := m.from.Store.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return
		}
		up = silent
		logger.V(1).Info("The object store is unreachable", "error", err.Error())
	}
	m.ledgerUp.Store(up)

	if up == answers {
		m.readHistories(ctx)
	}
	runs, err := m.runs(ctx)
	if err != nil {
		logger.Error(err, "Cannot list the runs to export their results")
		return
	}
	missing := m.forgetOthers(runs[:min(len(runs), m.settings.Runs)])
	if up == answers {
		missing = m.readMissing(ctx, missing)
	}
	m.unread.Store(int32(len(missing)))
}

// readMissing loads the analyses of finished runs, and returns the runs that failed. Rejected analyses are retried with a backoff, because
// users can write an invalid analysis of maximum size into every ledger.
func (m *Metrics) readMissing(ctx context.Context, missing []*assayv1alpha1.BenchmarkRun) (left []*assayv1alpha1.BenchmarkRun) {
	logger := ctrl.LoggerFrom(ctx).WithName("metrics")
	refused := map[types.UID]period.Retry{}
	for _, run := range missing {
		now, retry := m.from.Clock.Now(), m.refused[run.UID]
		var err error
		if retry.Due(now) && ctx.Err() == nil {
			if err = m.read(ctx, run); err == nil {
				continue
			}
			logger.Info("Cannot export a run's results", "namespace", run.Namespace, "run", run.Name, "error", err.Error())
			if observe.Problem(err) == assayv1alpha1.ReasonLedgerDamaged {
				retry = retry.Failed(now, ledger.RefusedFirst, ledger.RefusedMost)
			}
		}
		refused[run.UID] = retry
		left = append(left, run)
	}
	m.refused = refused
	return left
}

// forgetOthers evicts the data of all other runs, and returns the finished runs without data.
func (m *Metrics) forgetOthers(runs []*assayv1alpha1.BenchmarkRun) []*assayv1alpha1.BenchmarkRun {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var missing []*assayv1alpha1.BenchmarkRun
	m.first = make(map[types.UID]bool, len(runs))
	for _, run := range runs {
		m.first[run.UID] = true
		if m.shown[run.UID] == nil && plan.Ended(run) {
			missing = append(missing, run)
		}
	}
	maps.DeleteFunc(m.shown, func(run types.UID, _ *findings) bool { return !m.first[run] })
	maps.DeleteFunc(m.held, func(run types.UID, _ map[string]bool) bool { return !m.first[run] })
	return missing
}

// read loads the accepted analysis of a finished run.
func (m *Metrics) read(ctx context.Context, run *assayv1alpha1.BenchmarkRun) error {
	accepted := run.Status.Analysis
	var result *analysis.Analysis
	own := observe.JudgedStore(m.from.Store, run)
	if accepted != nil {
		var err error
		if result, _, err = ledger.ReadAnalysis(ctx, own, int(accepted.Wave)); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if result == nil {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.shown[run.UID] = nothing()
		return nil
	}
	exp, err := ledger.ReadExperiment(ctx, own)
	if err != nil {
		return err
	}
	m.keep(run, exp, result)
	return nil
}
