package experiment

import (
	"slices"

	"k8s.io/utils/ptr"
)

// CompletesGate is the name of the gate that every run with gates has, whether it names it or not.
const CompletesGate = "completes"

// Completion is a gate of op Completes for one arm: the share of its trials at these points that gave a usable result.
type Completion struct {
	Gate Gate
	Arm  int
	// Points are indices into the experiment's.
	Points []int
	// Implicit reports whether the run does not name it.
	Implicit bool
}

// Completions are the gates of op Completes: those that the run names, and for every arm and point that none of them looks at the
// implicit one, which is Blocking and asks for all trials. They follow from the experiment and are no part of it, so that a run
// frozen before the gate existed is judged like any other. A run without gates has no verdict and none of them.
func (e *Experiment) Completions() []Completion {
	if len(e.Plan.Gates) == 0 {
		return nil
	}
	var out []Completion
	seen := map[[2]int]bool{}
	implicit := Gate{Name: CompletesGate, Condition: Condition{Op: Completes, Bound: ptr.To(1.0)}, Severity: Blocking}
	for i, gate := range append(slices.Clone(e.Plan.Gates), implicit) {
		if gate.Op != Completes {
			continue
		}
		for arm := range e.Arms {
			if gate.Candidate != "" && gate.Candidate != e.Arms[arm].Name {
				continue
			}
			one := Completion{Gate: gate, Arm: arm, Implicit: i == len(e.Plan.Gates)}
			for point := range e.Points {
				if place := [2]int{point, arm}; Matches(gate.At, e.Points[point].Parameters) && !(one.Implicit && seen[place]) {
					one.Points = append(one.Points, point)
					seen[place] = true
				}
			}
			if len(one.Points) > 0 || !one.Implicit {
				out = append(out, one)
			}
		}
	}
	return out
}
