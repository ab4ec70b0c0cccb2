package noise

import (
	"cmp"
	"fmt"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// tick is the unit in which Linux counts stolen time, and CPU time where it has nothing finer.
const tick = 0.01

// Violation is a limit that a trial ran beyond.
type Violation struct {
	Kind Kind
	// Message holds what was read and the limit.
	Message string
}

// Judge sets a trial's readings against the limits. Unread are the limits that could not be judged, because the machine did
// not give the reading or the trial was too short for it: absent is not zero, and not too much either.
func (r *Reference) Judge(limits Limits, attempt *record.Attempt) (violations []Violation, unread []Kind) {
	for _, kind := range Kinds {
		limit, limited := limits[kind]
		if !limited {
			continue
		}
		read := r.read(kind, attempt)
		switch {
		case !read.ok:
			unread = append(unread, kind)
		case read.share-read.uncertainty > limit:
			violations = append(violations, Violation{kind, read.words(kind, limit)})
		}
	}
	return violations, unread
}

// Share is what a limit of the kind is set against in a trial: a share of the time, or how much slower than at its best a
// probe was. It is false when there is no reading.
func (r *Reference) Share(kind Kind, attempt *record.Attempt) (float64, bool) {
	read := r.read(kind, attempt)
	return read.share, read.ok
}

// reading is what one limit is set against.
type reading struct {
	share float64
	// uncertainty is how much of it may be the counter's own coarseness; that much is let pass.
	uncertainty float64
	ok          bool
}

func (r *Reference) read(kind Kind, attempt *record.Attempt) reading {
	during := &attempt.Noise.During
	switch kind {
	case Steal:
		return ofRatio(during.StealRatio, steps(1, during))
	case OtherWork:
		return ofRatio(during.OtherWorkRatio, ptr.Deref(during.OtherWorkUncertainty, steps(2, during)))
	case Throttled:
		share, ok := ofWindow(during.ThrottledSeconds, during)
		return reading{share: share, ok: ok}
	case Canary, Spin:
		return r.slowdown(kind, attempt)
	default:
		share, ok := pressureShare(kind, during)
		// Without a reference all of it may be the workload's own.
		own, known := r.quiet[place{kind: kind, node: Node(attempt), arm: attempt.Arm, point: attempt.Point}]
		return reading{share: max(share-own, 0), ok: ok && known}
	}
}

func ofRatio(ratio *float64, uncertainty float64) reading {
	if ratio == nil {
		return reading{}
	}
	return reading{share: *ratio, uncertainty: uncertainty, ok: true}
}

// steps is the share that some ticks are of the window of the shares. Of a window without a length nothing is known, and
// nothing let pass.
func steps(count float64, window *record.Noise) float64 {
	seconds := ptr.Deref(cmp.Or(window.SharesWindowSeconds, window.WindowSeconds), 0)
	if seconds <= 0 {
		return 0
	}
	return count * tick / seconds
}

// slowdown is the worse of the probes right before and right after the trial, over the best of their kind.
func (r *Reference) slowdown(kind Kind, attempt *record.Attempt) reading {
	var out reading
	node := Node(attempt)
	for _, window := range around(attempt) {
		seconds, bytes, ok := probe(kind, window)
		if best := r.quiet[place{kind: kind, node: node, bytes: bytes}]; ok && best > 0 {
			out = reading{share: max(out.share, seconds/best-1), ok: true}
		}
	}
	return out
}

func pressureShare(kind Kind, during *record.Noise) (float64, bool) {
	if kind == PressureMemory {
		return ofWindow(during.PressureMemorySeconds, during)
	}
	return ofWindow(during.PressureIOSeconds, during)
}

// ofWindow is a time as a share of its window. No time is no share, however long the window.
func ofWindow(seconds *float64, window *record.Noise) (float64, bool) {
	switch {
	case seconds == nil:
		return 0, false
	case *seconds == 0:
		return 0, true
	case window.WindowSeconds == nil || *window.WindowSeconds <= 0:
		return 0, false
	}
	return *seconds / *window.WindowSeconds, true
}

func (r reading) words(kind Kind, limit float64) string {
	percent := func(share float64) string { return quantity.Percent(share, 3) }
	switch kind {
	case Canary, Spin:
		return fmt.Sprintf("%s %sx its best, limit %sx", kind, quantity.Decimals(1+r.share, 2), quantity.Decimals(1+limit, 2))
	case PressureMemory, PressureIO:
		return fmt.Sprintf("%s %s beyond what the trials of its arm and point have when it is quiet, limit %s", kind, percent(r.share),
			percent(limit))
	default:
		return fmt.Sprintf("%s %s, limit %s", kind, percent(r.share), percent(limit))
	}
}
