package plan

import (
	"fmt"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// ledgerReady waits for the object store. Nothing is lost meanwhile: blocks that run keep their attempts until Argo has
// stored them.
func (p *planner) ledgerReady() *Decision {
	if p.Ledger.Problem == "" {
		return nil
	}
	return waiting(p.Ledger.Problem, "waiting for the ledger: "+p.Ledger.Message, p.settings.LedgerRetry)
}

// acceptance freezes the experiment. Once it is in the ledger, a template that changes changes nothing.
func (p *planner) acceptance() *Decision {
	if p.Ledger.Experiment != nil {
		return nil
	}
	if Cancelled(p.Run) {
		return failed(assayv1alpha1.ReasonCancelled, "cancelled before anything was measured")
	}
	if p.Template == nil {
		return waiting(assayv1alpha1.ReasonTemplateNotFound,
			fmt.Sprintf("BenchmarkTemplate %q does not exist in namespace %q: create it, or create a run that names another", p.Run.Spec.TemplateRef.Name, p.Run.Namespace), 0)
	}
	run := record.Run{Namespace: p.Run.Namespace, Name: p.Run.Name, UID: string(p.Run.UID)}
	frozen, err := experiment.Freeze(run, p.Run.Spec, *p.Template)
	if err == nil {
		// Whatever the nodes, the first wave has to fit.
		_, err = BuildStep(frozen, 0, 0, Next(frozen, nil, Findings{}), []Lane{{}})
	}
	if err != nil {
		return failed(assayv1alpha1.ReasonInvalidExperiment, err.Error())
	}
	return &Decision{
		Action: Accept{frozen}, Continues: true, Progressing: true, After: AtOnce,
		Reason: assayv1alpha1.ReasonAccepted, Message: "the experiment is accepted; the first wave is being planned",
	}
}
