package status

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/outcome"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// maxMessageBytes keeps a condition readable and the status small.
const maxMessageBytes = 4096

type conditions struct {
	status     *assayv1alpha1.BenchmarkRunStatus
	generation int64
	now        time.Time
}

func (c conditions) set(kind string, value bool, reason, message string) {
	status := metav1.ConditionFalse
	if value {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&c.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: record.Truncate(message, maxMessageBytes),
		ObservedGeneration: c.generation, LastTransitionTime: metav1.NewTime(c.now),
	})
}

func setConditions(out *assayv1alpha1.BenchmarkRunStatus, o *Outcome, now time.Time) {
	c := conditions{out, o.World.Run.Generation, now}
	setAccepted(c, o)
	setLedgerReady(c, o)
	setProgressing(c, o)
	setSuspended(c, o)
	setEnding(c, o)
}

func setAccepted(c conditions, o *Outcome) {
	_, accepting := o.Decision.Action.(plan.Accept)
	switch {
	case o.World.Ledger.Experiment != nil, accepting && !o.failed():
		c.set(assayv1alpha1.ConditionAccepted, true, assayv1alpha1.ReasonAccepted,
			"the experiment is consistent and frozen in the ledger as "+c.status.Experiment)
	case o.Decision.Reason == assayv1alpha1.ReasonTemplateNotFound, o.Decision.Reason == assayv1alpha1.ReasonInvalidExperiment,
		o.Decision.Reason == assayv1alpha1.ReasonSetAside, o.Decision.Reason == assayv1alpha1.ReasonNotAllowed:
		c.set(assayv1alpha1.ConditionAccepted, false, o.Decision.Reason, o.Decision.Message)
	}
}

func setLedgerReady(c conditions, o *Outcome) {
	switch {
	case o.LedgerErr != nil:
		c.set(assayv1alpha1.ConditionLedgerReady, false, observe.Problem(o.LedgerErr), o.LedgerErr.Error())
	case o.World.Ledger.Problem != "":
		c.set(assayv1alpha1.ConditionLedgerReady, false, o.World.Ledger.Problem, o.World.Ledger.Message)
	case o.World.Run.DeletionTimestamp.IsZero():
		c.set(assayv1alpha1.ConditionLedgerReady, true, assayv1alpha1.ReasonLedgerReady, "the object store answers")
	}
}

func setProgressing(c conditions, o *Outcome) {
	switch {
	case o.WriteErr != nil:
		c.set(assayv1alpha1.ConditionProgressing, false, assayv1alpha1.ReasonWriteFailed,
			"cannot "+o.Decision.Action.String()+": "+o.WriteErr.Error())
	case o.LedgerErr != nil:
		c.set(assayv1alpha1.ConditionProgressing, false, observe.Problem(o.LedgerErr), "waiting for the ledger: "+o.LedgerErr.Error())
	case o.Decision.Ending != nil:
		c.set(assayv1alpha1.ConditionProgressing, false, assayv1alpha1.ReasonFinished, o.Decision.Message)
	case o.Decision.Reason != "":
		c.set(assayv1alpha1.ConditionProgressing, o.Decision.Progressing, o.Decision.Reason, o.Decision.Message)
	}
}

func setSuspended(c conditions, o *Outcome) {
	over := o.Decision.Ending != nil && !o.failed()
	if plan.Suspended(o.World.Run) && !over {
		if c.status.SuspendedSince == nil {
			c.status.SuspendedSince = ptr.To(metav1.NewTime(c.now))
		}
		c.set(assayv1alpha1.ConditionSuspended, true, assayv1alpha1.ReasonSuspended, "spec.suspend is true: no new block starts")
		return
	}
	if suspended := plan.SuspendedFor(o.World.Run, c.now); suspended > 0 {
		c.status.SuspendedTime = &metav1.Duration{Duration: suspended}
	}
	c.status.SuspendedSince = nil
	c.set(assayv1alpha1.ConditionSuspended, false, assayv1alpha1.ReasonNotSuspended, "spec.suspend is not set")
}

func setEnding(c conditions, o *Outcome) {
	ending := o.Decision.Ending
	if ending == nil || o.failed() {
		return
	}
	kind := assayv1alpha1.ConditionFailed
	if ending.Analysed && outcome.Phase(ending.Reason) == assayv1alpha1.PhaseSucceeded {
		kind = assayv1alpha1.ConditionComplete
	}
	c.set(kind, true, ending.Reason, ending.Message)
}

// Judged sets the condition of a run that ended with an analysis on this machine, by the table of outcomes.
func Judged(status *assayv1alpha1.BenchmarkRunStatus, result *analysis.Analysis) {
	row := outcome.Of(result.SetupBroken != "", result.Verdict)
	c := conditions{status: status, now: time.Now()}
	status.Phase = row.Phase
	if row.Phase == assayv1alpha1.PhaseFailed {
		c.set(assayv1alpha1.ConditionFailed, true, row.Reason, result.SetupBroken)
	} else {
		c.set(assayv1alpha1.ConditionComplete, true, row.Reason, "verdict "+string(cmp.Or(result.Verdict, "none"))+": "+result.Explanation())
	}
	setReason(status, result, "")
}
