package experiment

import (
	"fmt"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// check rejects an experiment with ambiguous names, and gates, predictions and constraints that would have no effect. Freeze and Parse both
// call it, because an experiment may be written by hand. Rules of a good design are checked by Freeze alone: a later release may add one,
// and must still read the experiments that this one froze.
func (e *Experiment) check(problems *Invalid) {
	checkUnique(problems, "template.metrics", "name", e.Plan.Metrics, func(metric Metric) string { return metric.Name })
	checkUnique(problems, "spec.gates", "name", e.Plan.Gates, func(gate Gate) string { return gate.Name })
	e.Plan.checkMetrics(problems)
	e.checkGateTargets(problems)
	e.checkPredictionTargets(problems)
	e.checkSearchTargets(problems)
	if design := e.Plan.Design; design.Stop != nil && design.Blocks.Min < minStopBlocks {
		problems.add("spec.design.stop", "spec.design.blocks.min is %d and a stopping rule needs at least %d: with fewer, the first width is so "+
			"uncertain that runs stop where it is too narrow by accident; raise min, or remove stop", design.Blocks.Min, minStopBlocks)
	}
}

// checkUnique rejects elements of a list that have the same name.
func checkUnique[T any](problems *Invalid, list, field string, elements []T, name func(T) string) {
	seen := map[string]bool{}
	for i, one := range elements {
		if seen[name(one)] {
			problems.add(fmt.Sprintf("%s[%d].%s", list, i, field), "%q is used twice: give each another one", name(one))
		}
		seen[name(one)] = true
	}
}

// checkWord rejects a word that the field does not allow, and returns it.
func checkWord[T ~string](problems *Invalid, field string, word T, allowed ...T) T {
	if !slices.Contains(allowed, word) {
		problems.add(field, "invalid value %q: %s", word, lazily(func() string { return suggest.Allowed(string(word), allowed) }))
	}
	return word
}

// checkMetrics rejects metrics that no program can report.
func (p *Plan) checkMetrics(problems *Invalid) {
	for i, metric := range p.Metrics {
		if strings.HasPrefix(metric.Name, record.ProcessPrefix) {
			problems.add(fmt.Sprintf("template.metrics[%d].name", i),
				"invalid value %q: names that begin with %s are reserved for the process metrics of the runner", metric.Name, record.ProcessPrefix)
		}
	}
	if p.Workload.Output.Format == format.None && len(p.Metrics) > 0 {
		problems.add("template.metrics", "%d metrics are named and output.format is None, so the program reports no metrics: remove them",
			len(p.Metrics))
	}
}

func (e *Experiment) checkGateTargets(problems *Invalid) {
	for i, gate := range e.Plan.Gates {
		field, judged := fmt.Sprintf("spec.gates[%d]", i), e.Candidates()
		if gate.Op == Completes {
			judged = e.ArmNames()
		}
		if gate.Op.Timed() {
			e.Plan.checkMetric(field+".metric", gate.Metric, problems)
		}
		checkCandidate(field, gate.Candidate, judged, problems)
		e.checkAt(field, gate.At, problems)
	}
}

func (e *Experiment) checkPredictionTargets(problems *Invalid) {
	for i, prediction := range e.Plan.Predictions {
		field := fmt.Sprintf("spec.predictions[%d]", i)
		e.Plan.checkMetric(field+".metric", prediction.Metric, problems)
		checkCandidate(field, prediction.Candidate, e.Candidates(), problems)
		e.checkAt(field, prediction.At, problems)
	}
}

func (e *Experiment) checkSearchTargets(problems *Invalid) {
	search := e.Plan.Search
	if search == nil {
		return
	}
	e.Plan.checkMetric("spec.search.maximize", search.Maximize, problems)
	for i, constraint := range search.SubjectTo {
		e.Plan.checkMetric(fmt.Sprintf("spec.search.subjectTo[%d].metric", i), constraint.Metric, problems)
	}
}

func (p *Plan) checkMetric(field, name string, problems *Invalid) {
	if p.metric(name) == nil {
		problems.add(field, "%s", lazily(func() string { return p.NoMetric(name) }))
	}
}

func checkCandidate(field, candidate string, known []string, problems *Invalid) {
	if candidate != "" && !slices.Contains(known, candidate) {
		problems.add(field+".candidate", "invalid candidate %q: %s", candidate,
			lazily(func() string { return suggest.Allowed(candidate, known) }))
	}
}

// checkAt rejects a selector that selects no point. Without any point the sweep is invalid, which is reported elsewhere.
func (e *Experiment) checkAt(field string, at assayv1alpha1.ParameterValues, problems *Invalid) {
	selected := func(point record.Point) bool { return Matches(at, point.Parameters) }
	if len(e.Points) == 0 || slices.ContainsFunc(e.Points, selected) {
		return
	}
	for name := range sorted(at) {
		if axes := e.Axes(); !slices.Contains(axes, name) {
			problems.add(field+".at."+name, "%s", noAxis(axes, name))
			return
		}
	}
	problems.add(field+".at", "no point matches %s: use values of the sweep's axes", formatValues(at))
}
