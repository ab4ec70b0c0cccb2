// Package plan decides when to act, as a pure function of the observed state of a run and its cluster, and of a clock. Package design
// decides the content of the next wave.
package plan

import (
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Finalizer keeps a run until its blocks no longer run.
const Finalizer = "assay.dev/cancel"

// How often to reconcile where no event does.
const (
	podsInterval = 5 * time.Second
	waveInterval = 30 * time.Second
	// WatchSettles is how long the watch may take to show a write.
	WatchSettles = 100 * time.Millisecond
)

// enginePatience is how long the engine may take to begin an execution, and podPatience how long a node may take to start a pod, before the
// status reports it.
const (
	enginePatience = 30 * time.Second
	podPatience    = 2 * time.Minute
	// podGrace is how long a node may take to start a pod before another one is made. Large images take their time.
	podGrace = 15 * time.Minute
)

// Decide returns what to do next. The first policy that has a decision wins; they are in the order of urgency.
func Decide(o Observed, settings Settings, now time.Time) Decision {
	p := &planner{Observed: o, settings: settings, now: now}
	p.Ledger.Analysed = p.Ledger.Analysed && !p.unfinished()
	decision := p.endKept(p.keepLeases(p.decide()))
	if decision.Grace == "" && decision.Ending == nil && p.unended() {
		decision.Grace = assayv1alpha1.GraceForEngine
	}
	decision.Queue = p.place
	return decision
}

func (p *planner) decide() Decision {
	decision := first(
		p.deletion,
		p.ended,
		p.control,
		p.neverEnding,
		p.ledgerReady,
		p.acceptance,
		p.analysed,
		p.engineReady,
		p.neverStarting,
		p.analysisLost,
		p.running,
		p.analysisMissing,
		p.start, // It always has a decision.
	)
	if decision.Ending != nil {
		decision.After = 0 // An ending may start the time to live.
	}
	return *decision
}

// first is the decision of the first policy that has one; nil when none has.
func first(policies ...func() *Decision) *Decision {
	for _, policy := range policies {
		if decision := policy(); decision != nil {
			return decision
		}
	}
	return nil
}

type planner struct {
	Observed
	settings Settings
	now      time.Time
	// place is the run's place in the queue; nil unless it needs a node and has none.
	place *Place
	// wakes is after how long to reconcile without an event; nil is never.
	wakes *time.Duration
}

// Ended reports whether the run is over.
func Ended(run *assayv1alpha1.BenchmarkRun) bool { return run.Status.CompletionTime != nil }

// Suspended reports whether the run is asked to wait.
func Suspended(run *assayv1alpha1.BenchmarkRun) bool { return isSet(run.Spec.Suspend) }

// Cancelled reports whether the run is asked to end.
func Cancelled(run *assayv1alpha1.BenchmarkRun) bool { return isSet(run.Spec.Cancel) }

func isSet(flag *bool) bool { return flag != nil && *flag }

// since is when a period of grace began; now, if it begins with this decision.
func (p *planner) since(what assayv1alpha1.GraceFor) time.Time {
	if grace := p.Run.Status.Grace; grace != nil && grace.For == what {
		return grace.Since.Time
	}
	return p.now
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// failed ends the run without an analysis.
func failed(reason, message string) *Decision {
	return &Decision{Reason: reason, Message: message, Ending: &Ending{Reason: reason, Message: message}}
}

// waveRuns is the decision to let the newest wave go on.
func waveRuns(message string, after time.Duration) *Decision {
	return &Decision{Progressing: true, Reason: assayv1alpha1.ReasonWaveRunning, Message: message, After: after}
}

// waiting is the decision to take no action, with the cause of the wait.
func waiting(reason, message string, after time.Duration) *Decision {
	return &Decision{Reason: reason, Message: message, After: after}
}
