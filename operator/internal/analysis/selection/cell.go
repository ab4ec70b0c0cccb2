package selection

import (
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Cell is one arm at one point, as indices into the experiment.
type Cell struct{ Point, Arm int }

// At returns the cell of an arm at a point.
func At(point, arm int) Cell { return Cell{point, arm} }

// Inner returns the inner map of a key, and adds an empty one if the key is missing.
func Inner[K, L comparable, V any](of map[K]map[L]V, key K) map[L]V {
	if of[key] == nil {
		of[key] = map[L]V{}
	}
	return of[key]
}

// VisitGates calls visit for every gate with every candidate and point that it applies to, in a fixed order. It skips gates on completion,
// which are judged for all their points together.
func VisitGates(exp *experiment.Experiment, visit func(gate experiment.Gate, candidate string, point int)) {
	for _, gate := range exp.Plan.Gates {
		if gate.Op != experiment.Completes {
			VisitPlaces(exp, gate.Candidate, gate.At, func(candidate string, point int) { visit(gate, candidate, point) })
		}
	}
}

// VisitPlaces calls visit for every candidate, or only one if it is not empty, at every point that at selects.
func VisitPlaces(exp *experiment.Experiment, only string, at map[string]string, visit func(candidate string, point int)) {
	for _, candidate := range exp.Candidates() {
		for point := range exp.Points {
			if (only == "" || only == candidate) && experiment.Matches(at, exp.Points[point].Parameters) {
				visit(candidate, point)
			}
		}
	}
}

// ArmIndex returns the index of an arm in the experiment; -1 if there is no arm of that name.
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
