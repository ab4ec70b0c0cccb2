package experiment

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func checkSearch(spec *assayv1alpha1.BenchmarkRunSpec, e *Experiment, problems *Invalid) {
	if e.Plan.Search == nil {
		return
	}
	checkAlone(spec, problems)
	if spec.Design.Blocks.Min < MinBlocks {
		problems.add("spec.design.blocks.min", "a search tries every load in that many blocks, and %d are too few for an interval: use "+
			"at least %d", spec.Design.Blocks.Min, MinBlocks)
	}
	for i, constraint := range e.Plan.Search.SubjectTo {
		checkCondition(e, constraint, fmt.Sprintf("spec.search.subjectTo[%d]", i), selectPoints(nil, e.Points), " at a load", problems)
	}
	checkConstraintContradictions(spec.Search, e.Plan.Search.SubjectTo, problems)
}

// checkAlone rejects fields that a search does not support, and other values for the searched parameter.
func checkAlone(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	axis := spec.Search.Over.Axis
	if spec.Sweep != nil && !isAxis(spec.Sweep, axis) {
		problems.add("spec.sweep", "a search has one answer per arm and a sweep many points: create a run for every point, or make the "+
			"points arms")
	}
	for i, gate := range spec.Gates {
		if _, ok := gate.At[axis]; ok {
			problems.add(fmt.Sprintf("spec.gates[%d].at.%s", i, axis),
				"%q is the search axis, and the loads to try are not known beforehand: create a run with a sweep over %s for this gate", axis, axis)
		}
	}
	if len(spec.Gates) > 0 {
		problems.add("spec.gates", "a search has no verdict: put the requirements of a load into spec.search.subjectTo, and gates "+
			"into a separate run")
	}
	if len(spec.Predictions) > 0 {
		problems.add("spec.predictions", "a prediction is made for a point, and a search chooses its points: remove it")
	}
	const remedy = "is the search axis, whose values the search chooses: remove it here or from spec.search"
	axes := ptr.Deref(spec.Sweep, assayv1alpha1.Sweep{}).Axes
	if i := slices.IndexFunc(axes, func(a assayv1alpha1.SweepAxis) bool { return a.Name == axis }); i >= 0 {
		problems.add(fmt.Sprintf("spec.sweep.axes[%d].name", i), "%q %s", axis, remedy)
	}
	for i, arm := range spec.Arms {
		if _, ok := arm.Parameters[axis]; ok {
			problems.add(fmt.Sprintf("spec.arms[%d].parameters.%s", i, axis), "%q %s", axis, remedy)
		}
	}
	if _, ok := spec.Parameters[axis]; ok {
		problems.add("spec.parameters."+axis, "%q %s", axis, remedy)
	}
}

func checkConstraintContradictions(spec *assayv1alpha1.Search, all []Condition, problems *Invalid) {
	for i, least := range all {
		for j, most := range all {
			if least.excludes(most) {
				problems.add(fmt.Sprintf("spec.search.subjectTo[%d]", i),
					"it asks for %s and spec.search.subjectTo[%d] for %s of the same %s: no load meets both; change one",
					least.Op.Against(spec.SubjectTo[i].Bound), j, most.Op.Against(spec.SubjectTo[j].Bound), least.Metric)
			}
		}
	}
}
