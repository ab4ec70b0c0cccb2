package selection

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/record"
)

// rejectStaleLeases rejects the attempts whose block did not hold the lease of its node.
func rejectStaleLeases(leases record.Leases, uid string, attempts []*record.Attempt) ruling {
	return rule(attempts, staleLease, indexLeases(leases, uid).stale)
}

// leaseIndex holds the leases of a run. A ledger without lease records has none: a local run needs no lease, and a ledger that was
// written by hand may omit them.
type leaseIndex struct {
	known bool
	taken map[record.Lease]bool
	ended map[record.Lease]time.Time
}

func indexLeases(leases record.Leases, uid string) leaseIndex {
	out := leaseIndex{known: leases.Known, taken: map[record.Lease]bool{}, ended: map[record.Lease]time.Time{}}
	for _, taken := range leases.Taken {
		if taken.Run.UID == uid {
			out.taken[taken.Lease] = true
		}
	}
	for _, end := range leases.Ends {
		if first, ok := out.ended[end.Lease]; end.Run.UID == uid && (!ok || end.EndedAt.Before(first)) {
			out.ended[end.Lease] = end.EndedAt
		}
	}
	return out
}

// stale explains why the lease of an attempt was not in force; empty if it was, or if nothing is recorded about leases.
func (l leaseIndex) stale(attempt *record.Attempt) string {
	if attempt.Lease == nil || !l.known && len(l.ended) == 0 {
		return ""
	}
	lease := *attempt.Lease
	if l.known && !l.taken[lease] {
		return fmt.Sprintf("stale lease: the ledger has no record that the run ever held node %s with token %d", lease.Node, lease.Token)
	}
	if kept := attempt.Kept; kept != nil && kept.Lease != "" {
		if kept.Lease == record.LeaseEnded {
			return fmt.Sprintf("stale lease: when the trial had ended, the ledger had the end of the lease of node %s with token %d: "+
				"another run may have used the node", lease.Node, lease.Token)
		}
		return ""
	}
	// The lease was not read when the trial ended. The clocks of two machines are compared instead.
	finished := trial.EndOf(attempt).Add(-trial.ClockError(attempt))
	if ended, ok := l.ended[lease]; ok && finished.After(ended) {
		return fmt.Sprintf("stale lease: it ended at %s and the lease of node %s with token %d at %s: another run may have used the node",
			finished.UTC().Format(time.RFC3339Nano), lease.Node, lease.Token, ended.UTC().Format(time.RFC3339Nano))
	}
	return ""
}
