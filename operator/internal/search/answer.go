package search

import (
	"fmt"
	"slices"
)

// Answer is the result of a search after the loads tried so far. An index is -1 if there is no such load.
type Answer struct {
	// FeasibleMax is the highest load shown to meet every constraint below the first that was shown to break one, and
	// InfeasibleMin that one. The highest feasible load lies between them.
	FeasibleMax, InfeasibleMin int
	// FirstBreach is the lowest load at which an estimate missed a bound, shown or not.
	FirstBreach int
	// Binding is the constraint that breaks at InfeasibleMin.
	Binding string
	// Confirmed reports whether fresh blocks repeated the outcome of each of the two that exists.
	Confirmed bool
	// Complete reports whether nothing is left to try.
	Complete bool
	// Reason states the state or the end of the search in a sentence.
	Reason string
}

// Conclude computes the current answer.
func (s Search) Conclude(tried []Level) Answer {
	k := s.know(tried)
	next := s.Next(tried)
	out := Answer{FeasibleMax: k.feasible, InfeasibleMin: -1, Complete: len(next.Probes) == 0}
	out.FirstBreach = slices.IndexFunc(k.levels, func(level *Level) bool {
		return level != nil && (level.Probe.Breached || level.Fresh != nil && level.Fresh.Breached)
	})
	if k.breach < len(k.levels) {
		out.InfeasibleMin, out.Binding = k.breach, k.levels[k.breach].constraint()
	}
	out.Confirmed = (out.FeasibleMax >= 0 || out.InfeasibleMin >= 0) && k.isConfirmed(out.FeasibleMax) && k.isConfirmed(out.InfeasibleMin)
	out.Reason = k.reason(out)
	if !out.Complete {
		out.Reason = fmt.Sprintf("not complete, next to try: %s; so far, %s", s.Loads[next.Probes[0].Level], out.Reason)
	}
	return out
}

func (k *knowledge) isConfirmed(index int) bool { return index < 0 || k.levels[index].confirmed() }

func (l *Level) constraint() string {
	if l.Fresh != nil && l.Fresh.Constraint != "" && l.Fresh.Outcome.breach() {
		return l.Fresh.Constraint
	}
	return l.Probe.Constraint
}

func (k *knowledge) reason(a Answer) string {
	last := len(k.levels) - 1
	text := ""
	switch {
	case k.tried == 0:
		return "no load was tried"
	case a.FeasibleMax < 0 && a.InfeasibleMin == 0:
		text = fmt.Sprintf("the lowest load tried, %s, already breaks %s", k.Loads[0], a.Binding)
	case a.FeasibleMax < 0 && a.InfeasibleMin < 0:
		text = "no load was shown to meet every constraint, and none to break one: " + k.tooClose(0, last)
	case a.FeasibleMax < 0:
		text = fmt.Sprintf("no load was shown to meet every constraint below %s, which breaks %s: %s", k.Loads[a.InfeasibleMin], a.Binding,
			k.tooClose(0, a.InfeasibleMin-1))
	case a.FeasibleMax == last:
		text = fmt.Sprintf("the highest load tried, %s, still meets every constraint", k.Loads[last])
	case a.InfeasibleMin < 0:
		text = fmt.Sprintf("%s meets every constraint and no load was shown to break one: %s", k.Loads[a.FeasibleMax],
			k.tooClose(a.FeasibleMax+1, last))
	default:
		text = fmt.Sprintf("%s meets every constraint and %s breaks %s", k.Loads[a.FeasibleMax], k.Loads[a.InfeasibleMin], a.Binding)
		if a.InfeasibleMin-a.FeasibleMax > 1 {
			text += "; " + k.tooClose(a.FeasibleMax+1, a.InfeasibleMin-1)
		}
	}
	if again := k.feasibleAbove(); again >= 0 {
		text += fmt.Sprintf("; not monotone: %s above it meets them again, and the answer stays below the first breach", k.Loads[again])
	}
	if contested := slices.IndexFunc(k.levels, k.contested); contested >= 0 {
		text += fmt.Sprintf("; fresh blocks did not repeat the outcome at %s", k.Loads[contested])
	}
	if a.Complete && a.Confirmed {
		text += "; confirmed on fresh blocks"
	}
	return text
}

// tooClose describes the loads of a range that are neither feasible nor infeasible.
func (k *knowledge) tooClose(from, to int) string {
	lowest, highest, blocks := -1, -1, 0
	for i := from; i <= to; i++ {
		if k.levels[i] != nil {
			if lowest < 0 {
				lowest = i
			}
			highest, blocks = i, max(blocks, k.levels[i].Probe.Blocks)
		}
	}
	switch {
	case lowest < 0:
		return "the loads between were not tried"
	case lowest == highest:
		return fmt.Sprintf("%s is undecided after %d blocks", k.Loads[lowest], blocks)
	default:
		return fmt.Sprintf("the loads tried from %s to %s are undecided after up to %d blocks", k.Loads[lowest], k.Loads[highest], blocks)
	}
}

// feasibleAbove is the first load above the breach that meets every constraint, -1 without one.
func (k *knowledge) feasibleAbove() int {
	for i := k.breach + 1; i < len(k.levels); i++ {
		if k.outcome(i) == Feasible {
			return i
		}
	}
	return -1
}
