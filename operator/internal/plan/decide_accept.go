package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// ledgerReady waits for the object store. Nothing is lost meanwhile: blocks that run retry until their attempts are stored. A damaged
// ledger is mended by people only, so a run that may start nothing more ends without it.
func (p *planner) ledgerReady() *Decision {
	if p.Ledger.Problem == "" {
		return nil
	}
	if p.Ledger.Problem == assayv1alpha1.ReasonLedgerDamaged && p.noMore() && !p.working() && len(p.Pods.Blocks) == 0 {
		reason, why := p.whyStopped()
		return failed(reason, fmt.Sprintf("%s, and the ledger is damaged: %s; the attempts are in it: repair it and run assay analyze "+
			"--ledger URL --write with the URL in status.ledger", why, p.Ledger.Message))
	}
	return waiting(p.Ledger.Problem, "waiting for the ledger: "+p.Ledger.Message, p.settings.LedgerRetry)
}

// MaxAcceptanceTries is how often expanding an experiment may be started and not finish. Once may be a coincidence, such as a rollout.
// Twice is not: experiments are expanded one at a time.
const MaxAcceptanceTries = 2

// Expands reports whether a decision would expand an experiment, the one step whose cost a tenant controls. It is counted in the status
// before it is tried, so that a run on which operators run out of memory is set aside.
func Expands(o Observed) bool {
	return o.Run.DeletionTimestamp.IsZero() && !Ended(o.Run) && !Cancelled(o.Run) &&
		o.Ledger.Problem == "" && o.Ledger.Experiment == nil && o.Template != nil
}

// acceptance freezes the experiment. Later changes of the template have no effect on it.
func (p *planner) acceptance() *Decision {
	if p.Ledger.Experiment != nil {
		return nil
	}
	if Cancelled(p.Run) {
		return failed(assayv1alpha1.ReasonCancelled, "cancelled before anything was measured")
	}
	if p.Template == nil {
		return waiting(assayv1alpha1.ReasonTemplateNotFound,
			fmt.Sprintf("BenchmarkTemplate %q does not exist in namespace %q%s: create it, or create a run that names another",
				p.Run.Spec.TemplateRef.Name, p.Run.Namespace, suggest.Meant(p.Run.Spec.TemplateRef.Name, p.Templates)), 0)
	}
	if p.Run.Status.AcceptanceTries > MaxAcceptanceTries {
		return failed(assayv1alpha1.ReasonSetAside, fmt.Sprintf(
			"set aside: the operator began to expand the experiment %d times and never came to its end, most likely because it was killed for "+
				"its memory; create a new run with fewer points, arms or blocks or shorter values, or give the operator more memory "+
				"(operator.resources) first", MaxAcceptanceTries))
	}
	if refused := p.settings.Policy.Refuses(p.Run.Namespace, &p.Run.Spec); refused != "" {
		return failed(assayv1alpha1.ReasonNotAllowed, refused)
	}
	if refused := p.settings.Policy.RefusesToWait(p.Run.Namespace, p.Earlier); refused != "" {
		return failed(assayv1alpha1.ReasonNotAllowed, refused)
	}
	frozen, err := experiment.Freeze(record.Run(HolderOf(p.Run)), p.Run.Spec, *p.Template)
	if err == nil && ofASchedule(p.Run) {
		err = points.CheckSeries(frozen)
	}
	if err == nil {
		// At least one block of the first wave has to fit, on any nodes.
		first := design.Begin(frozen)
		_, err = first.Lay(first.Next(), []design.Lane{{Node: "node"}}, p.settings.Engine.Fits)
	}
	if err != nil {
		return failed(assayv1alpha1.ReasonInvalidExperiment, err.Error())
	}
	return &Decision{
		Action: Accept{frozen}, Progressing: true,
		Reason: assayv1alpha1.ReasonAccepted, Message: "the experiment is accepted; the first wave is being planned",
	}
}

// ofASchedule reports whether the measurements of a run are added to a series.
func ofASchedule(run *assayv1alpha1.BenchmarkRun) bool {
	owner := metav1.GetControllerOfNoCopy(run)
	return owner != nil && owner.Kind == "BenchmarkSchedule" && owner.APIVersion == assayv1alpha1.GroupVersion.String()
}
