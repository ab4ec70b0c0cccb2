package noise

import (
	"cmp"
	"fmt"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// tick is the resolution, in seconds, of Linux's counter of stolen time, and of CPU time without a finer counter.
const tick = 0.01

// Violation is a limit that a trial exceeded.
type Violation struct {
	Kind Kind
	// Message holds the reading and the limit.
	Message string
}

// Judge compares a trial's readings with the limits. Unread are the limits without a reading, because the machine does not report it or
// the trial was too short for it. A missing reading is neither zero nor a violation.
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

// Share returns the value of a trial that a limit of the kind is compared with: a share of the time, or the slowdown over the best probe.
// It is false without a reading.
func (r *Reference) Share(kind Kind, attempt *record.Attempt) (float64, bool) {
	read := r.read(kind, attempt)
	return read.share, read.ok
}

// reading is the value that one limit is compared with.
type reading struct {
	share float64
	// uncertainty is the error of the counter. A violation exceeds the limit by more than it.
	uncertainty float64
	ok          bool
}

func (r *Reference) read(kind Kind, attempt *record.Attempt) reading {
	of := byKind[kind]
	switch during := &attempt.Noise.During; {
	case of == nil:
		return reading{}
	case of.share != nil:
		return of.share(during)
	case of.probe != nil:
		return r.slowdown(of, attempt)
	default:
		share, ok := ofWindow(of.stalled(during), during)
		// Without a reference the whole value may be the workload's own.
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

// steps returns a number of ticks as a share of the window of the shares; 0 without the length of the window.
func steps(count float64, window *record.Noise) float64 {
	seconds := ptr.Deref(cmp.Or(window.SharesWindowSeconds, window.WindowSeconds), 0)
	if seconds <= 0 {
		return 0
	}
	return count * tick / seconds
}

// slowdown returns the slower of the probes right before and right after the trial, relative to the best comparable one.
func (r *Reference) slowdown(of *definition, attempt *record.Attempt) reading {
	var out reading
	node := Node(attempt)
	for _, window := range around(attempt) {
		seconds, bytes := of.probe(window)
		if seconds == nil {
			continue
		}
		if best := r.quiet[place{kind: of.kind, node: node, bytes: bytes}]; best > 0 {
			out = reading{share: max(out.share, *seconds/best-1), ok: true}
		}
	}
	return out
}

// ofWindow returns a time as a share of its window. Zero time is a share of 0, also without the length of the window.
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
	switch of := byKind[kind]; {
	case of.probe != nil:
		return fmt.Sprintf("%s %sx its best, limit %sx", kind, quantity.Decimals(1+r.share, 2), quantity.Decimals(1+limit, 2))
	case of.stalled != nil:
		return fmt.Sprintf("%s %s above that of quiet trials of its arm and point, limit %s", kind, percent(r.share), percent(limit))
	default:
		return fmt.Sprintf("%s %s, limit %s", kind, percent(r.share), percent(limit))
	}
}
