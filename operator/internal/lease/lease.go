// Package lease holds the rules by which a node belongs to one run at a time. It is pure: Lease objects are read into plain
// values, and every rule takes the clock as an argument.
//
// A lease has a fencing token that increases by one with every holder. A holder's time under a token ends in two steps: first in the Lease
// object, then in the ledger of the run that held it. Only then may the next run acquire the lease. A block that continues on an
// unreachable machine after its run has lost the lease leaves attempts under a token that has ended, and the analysis rejects them.
package lease

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/period"
)

// DefaultDuration is how long a lease lasts after it was renewed.
const DefaultDuration = time.Minute

// TaintKey is the taint of a node that a run holds exclusively; its value is the run's uid.
const TaintKey = "assay.dev/leased"

// Holder is a run. The uid distinguishes runs that had the same name.
type Holder struct{ Namespace, Name, UID string }

// String is the holderIdentity of a Lease object.
func (h Holder) String() string {
	if h == (Holder{}) {
		return ""
	}
	return h.Namespace + "/" + h.Name + "/" + h.UID
}

// Run is the run's namespace and name, for messages.
func (h Holder) Run() string { return h.Namespace + "/" + h.Name }

// ParseHolder parses a holderIdentity; an empty one is the zero Holder.
func ParseHolder(identity string) (Holder, error) {
	if identity == "" {
		return Holder{}, nil
	}
	parts := strings.Split(identity, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return Holder{}, fmt.Errorf("holderIdentity is %q: expected namespace/name/uid of a BenchmarkRun", identity)
	}
	return Holder{parts[0], parts[1], parts[2]}, nil
}

// Why a holder's time under a token ended.
const (
	// Released by its run, when nothing of the run was left on the node.
	Released = "released"
	// Expired, because it was not renewed, and acquired by another run or reclaimed.
	Expired = "expired"
)

// End is the end of a holder's time under a token.
type End struct {
	Node   string
	Holder Holder
	Token  int64
	At     time.Time
	Why    string
}

// Lease is the part of a node's Lease object that the rules depend on.
type Lease struct {
	Node string
	// Holder is the zero value when no run holds the lease.
	Holder Holder
	// Token of the holder, or of the previous holder if the node is free. The next holder gets the next number.
	Token int64
	// Whole means that the holder has the node exclusively: it is tainted.
	Whole bool
	// Draining means that the holder is about to release the lease: no block may start under this token any more.
	Draining bool
	// Duration is how long the lease lasts after Renewed.
	Duration time.Duration
	// Acquired is when the holder acquired the node, under its first token.
	Acquired, Renewed time.Time
	// Last is the newest end of a token; nil before the first.
	Last *End
	// Busy is the execution or pod of the holder that still runs on the node, or may start there; empty without one.
	Busy string
}

// Held reports whether the lease has a holder, even if it has expired.
func (l Lease) Held() bool { return l.Holder != Holder{} }

// ExpiresAt is when the lease expires.
func (l Lease) ExpiresAt() time.Time { return l.Renewed.Add(l.Duration) }

// Expired reports whether the holder did not renew in time. It keeps the lease, and may renew it, until another run acquires it.
func (l Lease) Expired(now time.Time) bool { return l.Held() && l.Left(now) <= 0 }

// Left returns the time until the lease expires without a renewal.
func (l Lease) Left(now time.Time) time.Duration { return period.Left(l.Renewed, l.Duration, now) }

// RenewIn is after how long the holder renews, early enough for two failures; zero or less when it should.
func (l Lease) RenewIn(now time.Time) time.Duration { return period.Left(l.Renewed, l.Duration/3, now) }

// Overdue reports whether renewal is so late that it takes precedence over other actions.
func (l Lease) Overdue(now time.Time) bool { return period.Over(l.Renewed, l.Duration*2/3, now) }

// Takeable reports whether another run may acquire the lease. That it has expired is not enough: while a pod of its holder runs on the
// node, or a workflow may start one, two runs would share it.
func (l Lease) Takeable(now time.Time) bool {
	return !l.Held() || l.Expired(now) && l.Busy == ""
}

// Ended returns the lease without its holder, whose time ended for the reason.
func (l Lease) Ended(why string, now time.Time) Lease {
	l.Last = &End{Node: l.Node, Holder: l.Holder, Token: l.Token, At: now, Why: why}
	l.Holder, l.Whole, l.Draining, l.Busy = Holder{}, false, false, ""
	return l
}

// TakenBy returns the lease, which has no holder, as acquired by one.
func (l Lease) TakenBy(holder Holder, whole bool, duration time.Duration, now time.Time) Lease {
	l.Holder, l.Whole, l.Draining, l.Busy = holder, whole, false, ""
	l.Token++
	l.Duration, l.Acquired, l.Renewed = duration, now, now
	return l
}

// WithNewToken returns the lease with another token of the same holder and the time when it first acquired the node: otherwise a run that
// retains a node from wave to wave would start its budget again with each wave.
func (l Lease) WithNewToken(duration time.Duration, now time.Time) Lease {
	out := l.Ended(Released, now).TakenBy(l.Holder, l.Whole, duration, now)
	out.Acquired = l.Acquired
	return out
}

// Taint is the taint that the lease requests; nil without one.
func (l Lease) Taint() *corev1.Taint {
	if !l.Held() || !l.Whole {
		return nil
	}
	return &corev1.Taint{Key: TaintKey, Value: l.Holder.UID, Effect: corev1.TaintEffectNoSchedule}
}

// Toleration is the toleration of the pods of a run with exclusive nodes: for this run's taint and no other run's.
func Toleration(uid string) corev1.Toleration {
	return corev1.Toleration{Key: TaintKey, Operator: corev1.TolerationOpEqual, Value: uid, Effect: corev1.TaintEffectNoSchedule}
}

// Taints replaces the lease taints of a node by the one that its lease asks for, and reports whether that changed the list.
func Taints(existing []corev1.Taint, wanted *corev1.Taint) (taints []corev1.Taint, changed bool) {
	kept := slices.DeleteFunc(slices.Clone(existing), func(t corev1.Taint) bool { return t.Key == TaintKey })
	ours := len(existing) - len(kept)
	if wanted == nil {
		return kept, ours > 0
	}
	if ours == 1 && slices.ContainsFunc(existing, func(t corev1.Taint) bool { return t.MatchTaint(wanted) && t.Value == wanted.Value }) {
		return existing, false
	}
	return append(kept, *wanted), true
}

// Tainted reports whether a node has the taint of a run.
func Tainted(taints []corev1.Taint, uid string) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == TaintKey && t.Value == uid })
}

// Sort orders leases by node.
func Sort(leases []Lease) {
	slices.SortFunc(leases, func(a, b Lease) int { return cmp.Compare(a.Node, b.Node) })
}
