package experiment

import (
	"slices"

	"k8s.io/utils/ptr"
)

// CompletesGate is the name of the gate that every run with gates has, explicit or implicit.
const CompletesGate = "completes"

// Completion is a gate of op Completes for one arm: the share of its trials at these points that gave a usable result.
type Completion struct {
	Gate Gate
	Arm  int
	// Points are indices into the experiment's.
	Points []int
	// Implicit reports whether the run does not define the gate.
	Implicit bool
}

// Completions returns the gates of op Completes: those that the run defines, and an implicit one for every arm and point that no defined
// one covers. An implicit gate is Blocking and requires all trials. They are derived from the experiment and not stored in it. A run
// without gates has none of them.
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
