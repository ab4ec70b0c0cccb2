package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

func checkTemplate(template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	checkCommands(template, problems)
	for i, role := range template.Roles {
		if role.Readiness != nil && strings.ContainsAny(role.Readiness.Line, "\r\n") {
			problems.add(fmt.Sprintf("template.roles[%d].readiness.line", i),
				"the text has a line break, so that no line can match it: remove the line break")
		}
	}
	checkArguments(template, problems)
	checkOutput(template, problems)
	for i, parameter := range template.Parameters {
		if parameter.Minimum != nil && parameter.Maximum != nil && parameter.Minimum.Cmp(*parameter.Maximum) > 0 {
			problems.add(fmt.Sprintf("template.parameters[%d]", i), "minimum %s of parameter %q exceeds its maximum %s", parameter.Minimum,
				parameter.Name, parameter.Maximum)
		}
	}
	if name := string(template.Output.Format); format.Named(name).ByTool() && len(template.Metrics) == 0 {
		problems.add("template.metrics", "output of format %s is read for metrics and the template has none: add one, or set output.format "+
			"None, with which only the process is measured", name)
	}
	for i, metric := range template.Metrics {
		if isUnknownTime(metric.Unit) {
			problems.add(fmt.Sprintf("template.metrics[%d].unit", i), "unknown time unit %q: use s, ms, us, ns or a rate such as queries/s, or "+
				"another word for a unit that is not a time", metric.Unit)
		}
		field := fmt.Sprintf("template.metrics[%d].samplesFrom", i)
		switch parameter := findParameter(template, metric.SamplesFrom); {
		case metric.SamplesFrom == "":
		case parameter == nil:
			problems.add(field, "%s", noParameter(template, metric.SamplesFrom))
		case parameter.Type != assayv1alpha1.IntegerParameter:
			problems.add(field, "parameter %q has type %s: it must be an Integer, the number of samples per trial", metric.SamplesFrom,
				parameter.Type)
		}
	}
}

func checkArms(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	if len(spec.Arms) == 0 {
		problems.add("spec.arms", "the run has no arm: name at least one")
		return
	}
	checkUnique(problems, "spec.arms", "name", spec.Arms, func(arm assayv1alpha1.Arm) string { return arm.Name })
	for i, arm := range spec.Arms {
		if arm.Name == "" {
			problems.add(fmt.Sprintf("spec.arms[%d].name", i), "the arm has no name: give it one")
		}
	}
	if !spec.Design.NullArm {
		return
	}
	if len(spec.Arms) == 1 {
		problems.add("spec.design.nullArm",
			"a null arm repeats the baseline that others are compared with, and the run has one arm: add an arm, or remove nullArm")
	}
	if slices.ContainsFunc(spec.Arms, func(arm assayv1alpha1.Arm) bool { return arm.Name == NullArm }) {
		problems.add("spec.arms", "an arm is named %q, as the one that spec.design.nullArm adds: rename it", NullArm)
	}
}

// checkGates rejects gates that cannot be judged, or that reward a worse result.
func checkGates(spec *assayv1alpha1.BenchmarkRunSpec, e *Experiment, problems *Invalid) {
	if spec.Parity == assayv1alpha1.ParityPerArm && e.Plan.Parity == ParityNone {
		problems.add("spec.parity", "PerArm compares an arm's outputs with each other and the template has parity: None: remove spec.parity")
	}
	for i, gate := range e.Plan.Gates {
		field := fmt.Sprintf("spec.gates[%d]", i)
		if gate.Op == Completes {
			if gate.AllowWorse {
				problems.add(field+".allowWorse", "Completes looks at no metric and so at no direction: remove it")
			}
			continue
		}
		if gate.Name == CompletesGate {
			problems.add(field+".name", "%q is the name of the gate that every run has: give this one another name, or op Completes", CompletesGate)
		}
		if gate.Op.NeedsBaseline() && len(spec.Arms) == 1 {
			problems.add(field+".op", "%s compares with a baseline and the run has one arm: add an arm, or use %s", gate.Op,
				listed(Ops(SubjectLevel)))
		}
		if gate.Op == ParityEqual {
			if e.Plan.Parity == ParityNone {
				problems.add(field+".op", "ParityEqual needs comparable outputs and the template has parity: None: remove the gate, or set "+
					"parity: Required")
			}
			if spec.Parity == assayv1alpha1.ParityPerArm {
				problems.add(field+".op", "ParityEqual compares arms and spec.parity is PerArm, by which their outputs differ: remove one "+
					"of the two")
			}
			continue
		}
		checkCondition(e, gate.Condition, field, selectPoints(gate.At, e.Points), "", problems)
	}
}

// checkCondition rejects a condition that rewards a worse metric, or has too few samples. at names the place of the points, with a leading
// blank.
func checkCondition(e *Experiment, of Condition, field string, points []int, at string, problems *Invalid) {
	metric := e.Metric(of.Metric)
	if metric == nil {
		return // It is reported already.
	}
	if why := of.RewardsWorse(metric); why != "" {
		problems.add(field+".op", "%s", why)
	}
	checkSamples(e, of, points, field+".statistic", at, problems)
}

// checkSamples rejects a percentile that the run cannot give enough samples.
func checkSamples(e *Experiment, of Condition, points []int, field, at string, problems *Invalid) {
	metric := e.Metric(of.Metric)
	need := MinSamples(of.Statistic)
	if need == 0 || metric.SamplesFrom == "" {
		return
	}
	trials := e.Plan.Design.Blocks.Min * e.countedPerBlock()
	for _, cell := range e.Cells {
		perTrial, err := strconv.Atoi(cell.Parameters[metric.SamplesFrom])
		if err != nil || !slices.Contains(points, cell.Point) {
			continue // An invalid number is reported as a wrong value already.
		}
		if have := min(max(perTrial, 0), need) * trials; have < need {
			// Limit perTrial first, because an author's number may overflow the product.
			problems.add(field, "%s of %s needs at least %d samples and arm %q gets %d%s (%d trials of %s=%d): raise %s or spec.design.blocks.min",
				of.Statistic, metric.Name, need, e.Arms[cell.Arm].Name, have, at, trials, metric.SamplesFrom, perTrial, metric.SamplesFrom)
			return
		}
	}
}

// selectPoints returns the indices of the points that a selector matches.
func selectPoints(at assayv1alpha1.ParameterValues, points []record.Point) []int {
	var selected []int
	for i, point := range points {
		if Matches(at, point.Parameters) {
			selected = append(selected, i)
		}
	}
	return selected
}

func checkPredictions(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	for i := range spec.Predictions {
		if len(spec.Arms) == 1 {
			problems.add(fmt.Sprintf("spec.predictions[%d]", i),
				"a prediction is a ratio to the baseline and the run has one arm: add an arm, or remove the prediction")
		}
	}
}

func findParameter(template *assayv1alpha1.BenchmarkTemplateSpec, name string) *assayv1alpha1.Parameter {
	if i := slices.IndexFunc(template.Parameters, func(p assayv1alpha1.Parameter) bool { return p.Name == name }); i >= 0 {
		return &template.Parameters[i]
	}
	return nil
}

// noParameter is the message for a parameter that the template lacks.
func noParameter(template *assayv1alpha1.BenchmarkTemplateSpec, name string) lazily {
	return func() string {
		known := NamesOf(template.Parameters, func(p assayv1alpha1.Parameter) string { return p.Name })
		return fmt.Sprintf("the template has no parameter %q: %s", name, suggest.Allowed(name, known))
	}
}

func formatValues(values assayv1alpha1.ParameterValues) string {
	parts := make([]string, 0, len(values))
	for name, value := range sorted(values) {
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, ",")
}
