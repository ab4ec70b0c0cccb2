package plan

import (
	"fmt"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// full lets a run wait to start while its namespace has as many others under way as it may, or ledgers that are at their limit; nil when
// it may start. A run that has started continues: an unfinished run would be of no use.
func (p *planner) full() *Decision {
	namespace := p.Run.Namespace
	if most, full := p.settings.Policy.Full(namespace, p.UnderWay); full {
		return waiting(assayv1alpha1.ReasonWaitingForTurn,
			fmt.Sprintf("namespace %s has %d other runs under way and the administrator allows %d at a time: this one starts when one of them "+
				"has ended", namespace, p.UnderWay, most), queueInterval)
	}
	switch {
	case !p.settings.Policy.BoundsStorage(namespace):
		return nil
	case p.Stored == nil:
		return waiting(assayv1alpha1.ReasonLedgerFull, fmt.Sprintf("the size of the ledgers of namespace %s is being computed", namespace),
			podsInterval)
	}
	full := p.settings.Policy.OverStored(namespace, p.Stored.Bytes, p.Stored.Objects)
	if full == "" {
		return nil
	}
	return waiting(assayv1alpha1.ReasonLedgerFull,
		fmt.Sprintf("%s: this run starts when they hold less. Ask the administrator to raise policy.maxStored or "+
			"maxObjects, or to remove the ledgers of runs that are no longer needed, runs/%s/NAME/UID/ in the bucket", full, namespace),
		waveInterval)
}
