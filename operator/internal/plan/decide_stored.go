package plan

import (
	"fmt"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// stored lets a run wait that would begin while the ledgers of its namespace hold as much as they may; nil when it may begin. Runs that
// have begun go on: half of a run is no use to anybody.
func (p *planner) stored() *Decision {
	namespace := p.Run.Namespace
	switch {
	case !p.settings.Policy.BoundsStorage(namespace):
		return nil
	case p.Stored == nil:
		return waiting(assayv1alpha1.ReasonLedgerFull, fmt.Sprintf("what the ledgers of namespace %s hold is being summed up", namespace), lookAtPods)
	}
	full := p.settings.Policy.OverStored(namespace, p.Stored.Bytes, p.Stored.Objects)
	if full == "" {
		return nil
	}
	return waiting(assayv1alpha1.ReasonLedgerFull, fmt.Sprintf("%s: this run starts when they hold less. Ask the administrator to raise policy.maxStored or "+
		"maxObjects, or to remove the ledgers of runs that nobody needs, runs/%s/NAME/UID/ in the bucket", full, namespace), lookAtWave)
}
