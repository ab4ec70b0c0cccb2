package metrics

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/period"
	"assay.dev/assay/operator/internal/plan"
)

// refreshEvery is how often the store is asked whether it is there, and what is missing is read.
const refreshEvery = 30 * time.Second

// Start makes this the operator that shows what it does, until the context ends. A run that goes on is read when it is
// reconciled; what ended before this operator began is read here.
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

// NeedLeaderElection is part of manager.LeaderElectionRunnable: two operators that show the same would count it twice.
func (m *Metrics) NeedLeaderElection() bool { return true }

func (m *Metrics) refresh(ctx context.Context) {
	logger := ctrl.LoggerFrom(ctx).WithName("metrics")
	up := answers
	if err := m.from.Store.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return
		}
		up = silent
		logger.V(1).Info("The ledger does not answer", "error", err.Error())
	}
	m.ledgerUp.Store(up)

	if up == answers {
		m.readHistories(ctx)
	}
	runs, err := m.runs(ctx)
	if err != nil {
		logger.Error(err, "Cannot list the runs whose results to show")
		return
	}
	missing := m.forgetOthers(runs[:min(len(runs), m.settings.Runs)])
	if up == answers {
		missing = m.readMissing(ctx, missing)
	}
	m.unread.Store(int32(len(missing)))
}

// readMissing reads what runs that ended have found, and returns those that could not be read. What is refused is not read every time:
// whoever measures may leave an analysis in each ledger that is as large as the largest of ours, and none of ours.
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
			logger.Info("Cannot show a run's results", "namespace", run.Namespace, "run", run.Name, "error", err.Error())
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

// forgetOthers keeps what belongs to the runs, and returns those that ended and of which nothing is kept.
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

// read reads the newest analysis of a run that ended.
func (m *Metrics) read(ctx context.Context, run *assayv1alpha1.BenchmarkRun) error {
	store := observe.RunStore(m.from.Store, run)
	// Without a wave there is none to look at.
	result, _, err := ledger.NewestAnalysis(ctx, store, int(ptr.Deref(run.Status.Wave, -1)), 0)
	if err != nil {
		return err
	}
	if result == nil {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.shown[run.UID] = nothing()
		return nil
	}
	exp, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		return err
	}
	m.keep(run, exp, result)
	return nil
}
