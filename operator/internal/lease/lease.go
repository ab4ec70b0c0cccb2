// Package lease holds the rules by which a node belongs to one run at a time. It is pure: Lease objects are read into plain
// values, and every rule takes the clock as an argument.
//
// A lease has a token that rises by one with every holder. A holder's time under a token ends in two steps: first the Lease
// object says so, then the end is in the ledger of the run that held it. Only then may the next run take the node. So a
// block that runs on after its run lost the node, on a machine that nobody can reach, leaves attempts that the analysis
// rejects.
package lease

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// DefaultDuration is how long a lease lasts after it was renewed.
const DefaultDuration = time.Minute

// TaintKey keeps other pods off a node that a run has for itself; the value is the run's uid.
const TaintKey = "assay.dev/leased"

// Holder is a run. The uid keeps runs apart that used the same name.
type Holder struct{ Namespace, Name, UID string }

// String is the holderIdentity of a Lease object.
func (h Holder) String() string {
	if h == (Holder{}) {
		return ""
	}
	return h.Namespace + "/" + h.Name + "/" + h.UID
}

// Run is how messages name it.
func (h Holder) Run() string { return h.Namespace + "/" + h.Name }

// ParseHolder reads a holderIdentity; an empty one is nobody.
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
	// Released by its run, when nothing of it ran on the node any more.
	Released = "released"
	// Expired and taken away, because nobody renewed it.
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

// Lease is what matters of a node's Lease object.
type Lease struct {
	Node string
	// Holder is the zero value when nobody holds the node.
	Holder Holder
	// Token of the holder, or of the last one. The next holder gets one more.
	Token int64
	// Whole means that the holder has the node for itself: it is tainted.
	Whole bool
	// Draining means that the holder gives the node back: no block may start there under this token any more.
	Draining bool
	// Duration is how long it lasts after Renewed.
	Duration          time.Duration
	Acquired, Renewed time.Time
	// Last is how the time under the newest token that ended did end; nil before the first end.
	Last *End
	// Busy names what of the holder still runs on the node, or may start there; empty when nothing does.
	Busy string
}

// Held reports whether somebody holds the node, also under a lease that has expired.
func (l Lease) Held() bool { return l.Holder != Holder{} }

// ExpiresAt is when others may take the node.
func (l Lease) ExpiresAt() time.Time { return l.Renewed.Add(l.Duration) }

// Expired reports whether the holder has not renewed in time. It keeps an expired lease, and may renew it, until it is taken.
func (l Lease) Expired(now time.Time) bool { return l.Held() && !now.Before(l.ExpiresAt()) }

// RenewAt is when the holder renews: early enough to fail twice.
func (l Lease) RenewAt() time.Time { return l.Renewed.Add(l.Duration / 3) }

// Overdue tells that renewing has failed for so long that it comes before everything else.
func (l Lease) Overdue(now time.Time) bool { return !now.Before(l.Renewed.Add(l.Duration * 2 / 3)) }

// Takeable reports whether a run that is no holder may take the node. A lease that expired is not enough: as long as a pod of
// its holder runs there, or a workflow could start one, two runs would meet.
func (l Lease) Takeable(now time.Time) bool {
	return !l.Held() || l.Expired(now) && l.Busy == ""
}

// Ended is the lease after its holder's time.
func (l Lease) Ended(why string, now time.Time) Lease {
	l.Last = &End{Node: l.Node, Holder: l.Holder, Token: l.Token, At: now, Why: why}
	l.Holder, l.Whole, l.Draining, l.Busy = Holder{}, false, false, ""
	return l
}

// TakenBy is the lease that nobody holds in the hands of its next holder.
func (l Lease) TakenBy(holder Holder, whole bool, duration time.Duration, now time.Time) Lease {
	l.Holder, l.Whole, l.Draining, l.Busy = holder, whole, false, ""
	l.Token++
	l.Duration, l.Acquired, l.Renewed = duration, now, now
	return l
}

// Taint is what the lease asks of its node; nil is nothing.
func (l Lease) Taint() *corev1.Taint {
	if !l.Held() || !l.Whole {
		return nil
	}
	return &corev1.Taint{Key: TaintKey, Value: l.Holder.UID, Effect: corev1.TaintEffectNoSchedule}
}

// Toleration of the pods of a run that has its nodes for itself: of its own taint and no other run's.
func Toleration(uid string) corev1.Toleration {
	return corev1.Toleration{Key: TaintKey, Operator: corev1.TolerationOpEqual, Value: uid, Effect: corev1.TaintEffectNoSchedule}
}

// Taints replaces whatever taint a node has from leases by the one that its lease asks for. It returns the same list when
// there is nothing to do.
func Taints(found []corev1.Taint, wanted *corev1.Taint) (taints []corev1.Taint, changed bool) {
	kept := slices.DeleteFunc(slices.Clone(found), func(t corev1.Taint) bool { return t.Key == TaintKey })
	ours := len(found) - len(kept)
	if wanted == nil {
		if ours == 0 {
			return found, false
		}
		return kept, true
	}
	if ours == 1 && slices.ContainsFunc(found, func(t corev1.Taint) bool { return t.MatchTaint(wanted) && t.Value == wanted.Value }) {
		return found, false
	}
	return append(kept, *wanted), true
}

// Tainted reports whether a node bears the taint of a run.
func Tainted(taints []corev1.Taint, uid string) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == TaintKey && t.Value == uid })
}

// Sort orders leases by node.
func Sort(leases []Lease) {
	slices.SortFunc(leases, func(a, b Lease) int { return cmp.Compare(a.Node, b.Node) })
}
