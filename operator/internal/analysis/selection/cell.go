package selection

import (
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Cell is one arm at one point, as indices into the experiment.
type Cell struct{ Point, Arm int }

// At is the cell of an arm at a point.
func At(point, arm int) Cell { return Cell{point, arm} }

// Inner is the map that a map has for a key, made where there is none.
func Inner[K, L comparable, V any](of map[K]map[L]V, key K) map[L]V {
	if of[key] == nil {
		of[key] = map[L]V{}
	}
	return of[key]
}

// VisitGates calls visit for every gate, candidate and point that it applies to, in a fixed order; but for those on completing,
// which look at all their points at once.
func VisitGates(exp *experiment.Experiment, visit func(gate experiment.Gate, candidate string, point int)) {
	for _, gate := range exp.Plan.Gates {
		if gate.Op == experiment.Completes {
			continue
		}
		for _, candidate := range exp.Candidates() {
			if gate.Candidate != "" && gate.Candidate != candidate {
				continue
			}
			for point := range exp.Points {
				if experiment.Matches(gate.At, exp.Points[point].Parameters) {
					visit(gate, candidate, point)
				}
			}
		}
	}
}

// ArmIndex is the place of an arm in the experiment; -1 where it has none of that name.
func ArmIndex(exp *experiment.Experiment, name string) int {
	return slices.IndexFunc(exp.Arms, func(arm record.Arm) bool { return arm.Name == name })
}

func indexes(exp *experiment.Experiment) (points, arms map[string]int) {
	points, arms = map[string]int{}, map[string]int{}
	for i, point := range exp.Points {
		points[point.Key] = i
	}
	for i, arm := range exp.Arms {
		arms[arm.Name] = i
	}
	return points, arms
}
