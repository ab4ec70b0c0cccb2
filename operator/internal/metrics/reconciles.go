package metrics

import (
	"cmp"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/status"
)

// What happens to leases.
const (
	acquired = "acquired"
	renewed  = "renewed"
	released = "released"
	lost     = "lost"
)

// leaseEvents are the events of a run about leases.
var leaseEvents = map[string]string{"LeaseAcquired": acquired, "LeaseReleased": released, "LeaseLost": lost}

// none stands for no verdict.
const none = "None"

// Observed keeps the newest analysis of a run.
func (m *Metrics) Observed(world *observe.World) {
	if m == nil || world.Analysis == nil || world.Ledger.Experiment == nil {
		return
	}
	m.keep(world.Run, world.Ledger.Experiment, world.Analysis)
}

// Applied counts an action that was carried out.
func (m *Metrics) Applied(run *assayv1alpha1.BenchmarkRun, action plan.Action, now time.Time) {
	if m == nil {
		return
	}
	switch action := action.(type) {
	case plan.AcquireLeases:
		m.leaseWait.Observe(waited(run, now).Seconds())
	case plan.RenewLeases:
		m.leaseEvents.WithLabelValues(renewed).Add(float64(len(action.Nodes)))
	}
}

// waited is how long the run has been without a node that it could have used; 0 if it does not wait.
func waited(run *assayv1alpha1.BenchmarkRun, now time.Time) time.Duration {
	if run.Status.Queue == nil {
		return 0
	}
	return max(now.Sub(run.Status.Queue.Since.Time), 0)
}

// Reported counts what a new status says that the old one did not.
func (m *Metrics) Reported(world *observe.World, after *assayv1alpha1.BenchmarkRunStatus) {
	if m == nil {
		return
	}
	before, namespace := &world.Run.Status, world.Run.Namespace
	for _, event := range status.LeaseEvents(world, after) {
		if name := leaseEvents[event.Reason]; name != "" {
			m.leaseEvents.WithLabelValues(name).Inc()
		}
	}
	if newest := world.Ledger.Newest; newest != nil && after.Wave != nil && (before.Wave == nil || *before.Wave != *after.Wave) {
		m.waves.WithLabelValues(namespace, string(newest.Why())).Inc()
	}
	if before.CompletionTime == nil && after.CompletionTime != nil {
		m.finished.WithLabelValues(namespace, string(after.Phase), verdict(after.Verdict)).Inc()
		m.ended(namespace, world.Analysis)
	}
}

func (m *Metrics) ended(namespace string, result *analysis.Analysis) {
	if result == nil {
		return
	}
	for outcome, count := range map[string]int{
		"used": result.Trials.Used, "warmup": result.Trials.Warmups, "failed": result.Trials.Failed,
		"invalid": result.Trials.Invalid, "missing": result.Trials.Missing,
	} {
		m.trials.WithLabelValues(namespace, outcome).Add(float64(count))
	}
	for _, gate := range result.Gates {
		m.gates.WithLabelValues(namespace, string(gate.Severity), verdict(gate.Outcome)).Inc()
	}
}

func verdict[T ~string](value T) string { return cmp.Or(string(value), none) }
