package metrics

import (
	"maps"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/status"
)

// Lease events.
const (
	acquired = "acquired"
	renewed  = "renewed"
	released = "released"
	lost     = "lost"
)

// leaseEvents maps event reasons of a run to lease events.
var leaseEvents = map[string]string{"LeaseAcquired": acquired, "LeaseReleased": released, "LeaseLost": lost}

// none is the label of a missing verdict.
const none = "None"

// Observed caches the newest analysis of a run, and the nodes it holds.
func (m *Metrics) Observed(world *observe.World) {
	m.holds(world.Run)
	if world.Analysis != nil && world.Ledger.Experiment != nil {
		m.keep(world.Run, world.Ledger.Experiment, world.Analysis)
	}
}

// holds records the nodes that the run holds, since the status lists them only during that time.
func (m *Metrics) holds(run *assayv1alpha1.BenchmarkRun) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, lease := range run.Status.Leases {
		if held := m.held[run.UID]; !held[lease.Node] {
			more := map[string]bool{lease.Node: true}
			maps.Copy(more, held)
			m.held[run.UID] = more
		}
	}
}

// Applied counts an executed action.
func (m *Metrics) Applied(run *assayv1alpha1.BenchmarkRun, action plan.Action, now time.Time) {
	switch action := action.(type) {
	case plan.AcquireLeases:
		m.leaseWait.Observe(waited(run, now).Seconds())
	case plan.RenewLeases:
		m.leaseEvents.WithLabelValues(renewed).Add(float64(len(action.Nodes)))
	default: // Counted with the next status if at all.
	}
}

// waited returns how long the run has waited for an available node, or 0.
func waited(run *assayv1alpha1.BenchmarkRun, now time.Time) time.Duration {
	if run.Status.Queue == nil {
		return 0
	}
	return max(now.Sub(run.Status.Queue.Since.Time), 0)
}

// Reported counts changes between the old and the new status.
func (m *Metrics) Reported(world *observe.World, after *assayv1alpha1.BenchmarkRunStatus) {
	before, namespace := &world.Run.Status, world.Run.Namespace
	for _, event := range status.LeaseEvents(world, after) {
		if name := leaseEvents[event.Reason]; name != "" {
			m.leaseEvents.WithLabelValues(name).Inc()
		}
	}
	if newest := world.Ledger.Newest; newest != nil && after.Wave != nil && (before.Wave == nil || *before.Wave != *after.Wave) {
		m.waves.WithLabelValues(namespace, string(newest.Purpose)).Inc()
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
		// A counter panics on negative values.
		m.trials.WithLabelValues(namespace, outcome).Add(float64(max(count, 0)))
	}
	for _, gate := range result.Gates {
		m.gates.WithLabelValues(namespace, severity(gate.Severity), verdict(gate.Outcome)).Inc()
	}
}

// other replaces unknown label values, because counters retain every label permanently.
const other = "Other"

func verdict[T ~string](value T) string {
	switch experiment.Verdict(value) {
	case "":
		return none
	case experiment.VerdictGo, experiment.VerdictNoGo, experiment.VerdictInconclusive, experiment.VerdictInvalid:
		return string(value)
	}
	return other
}

func severity(value experiment.Severity) string {
	switch value {
	case experiment.Blocking, experiment.Advisory:
		return string(value)
	}
	return other
}
