package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

func checkTemplate(template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	checkCommands(template, problems)
	checkRoles(template, problems)
	checkArguments(template, problems)
	checkOutput(template, problems)
	for i, parameter := range template.Parameters {
		if parameter.Minimum != nil && parameter.Maximum != nil && parameter.Minimum.Cmp(*parameter.Maximum) > 0 {
			problems.add(fmt.Sprintf("template.parameters[%d]", i), "minimum %s of parameter %q exceeds its maximum %s", parameter.Minimum, parameter.Name, parameter.Maximum)
		}
	}
	checkMetricNames(template, problems)
	for i, metric := range template.Metrics {
		if metric.SamplesFrom == "" {
			continue
		}
		field := fmt.Sprintf("template.metrics[%d].samplesFrom", i)
		parameter := findParameter(template, metric.SamplesFrom)
		switch {
		case parameter == nil:
			problems.add(field, "the template has no parameter %q", metric.SamplesFrom)
		case parameter.Type != assayv1alpha1.IntegerParameter:
			problems.add(field, "parameter %q has type %s: it must be an Integer, the number of samples per trial", metric.SamplesFrom, parameter.Type)
		}
	}
}

func checkArms(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	if len(spec.Arms) == 0 {
		problems.add("spec.arms", "the run has no arm: name at least one")
		return
	}
	names := map[string]bool{}
	baselines := 0
	for i, arm := range spec.Arms {
		if arm.Name == "" {
			problems.add(fmt.Sprintf("spec.arms[%d].name", i), "the arm has no name: give it one")
		}
		if names[arm.Name] {
			problems.add(fmt.Sprintf("spec.arms[%d].name", i), "arm %q is named twice", arm.Name)
		}
		names[arm.Name] = true
		if arm.Baseline {
			baselines++
		}
	}
	if len(spec.Arms) > 1 && baselines != 1 {
		problems.add("spec.arms", "%d arms have baseline: true; exactly one must", baselines)
	}
	if !spec.Design.NullArm {
		return
	}
	if len(spec.Arms) == 1 {
		problems.add("spec.design.nullArm", "a null arm repeats the baseline that others are compared with, and the run has one arm: add an arm, or remove nullArm")
	}
	if names[NullArm] {
		problems.add("spec.arms", "an arm is named %q, as the one that spec.design.nullArm adds: rename it", NullArm)
	}
}

// TrialsPerBlock is how many processes one block launches, warm-ups included, given the number of cells.
func TrialsPerBlock(spec *assayv1alpha1.BenchmarkRunSpec, cells int) int {
	return cells * (SlotsPerCell(spec.Design.Order) + int(spec.Design.WarmupTrials))
}

// SlotsPerCell is how often a block launches every cell as a measured trial.
func SlotsPerCell(order assayv1alpha1.Order) int {
	if order == assayv1alpha1.OrderABBA {
		return 2
	}
	return 1
}

func checkGates(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, points []record.Point, cells []record.Cell, problems *Invalid) {
	if spec.Parity == assayv1alpha1.ParityPerArm && template.Parity == assayv1alpha1.ParityNone {
		problems.add("spec.parity", "PerArm compares an arm's outputs with each other and the template has parity: None: remove spec.parity")
	}
	names := map[string]bool{}
	for i, gate := range spec.Gates {
		field := fmt.Sprintf("spec.gates[%d]", i)
		if names[gate.Name] {
			problems.add(field+".name", "gate %q is named twice", gate.Name)
		}
		names[gate.Name] = true
		selected := checkAt(spec.Sweep, gate.At, points, field, problems)
		if gate.Op == assayv1alpha1.Completes {
			checkCompletes(spec, gate, field, problems)
			continue
		}
		if gate.Name == CompletesGate {
			problems.add(field+".name", "%q is the name of the gate that every run has: give this one another name, or op Completes", CompletesGate)
		}
		checkCandidate(spec, gate.Candidate, field, problems)
		needsBaseline := gate.Op != assayv1alpha1.AtLeast && gate.Op != assayv1alpha1.AtMost
		if needsBaseline && len(spec.Arms) == 1 {
			problems.add(field+".op", "%s compares with a baseline and the run has one arm: add an arm, or use AtLeast or AtMost", gate.Op)
		}
		if gate.Op == assayv1alpha1.ParityEqual {
			if template.Parity == assayv1alpha1.ParityNone {
				problems.add(field+".op", "ParityEqual needs outputs that can be compared and the template has parity: None")
			}
			if spec.Parity == assayv1alpha1.ParityPerArm {
				problems.add(field+".op", "ParityEqual compares arms and spec.parity is PerArm, which says that their outputs differ: remove one of the two")
			}
			continue
		}
		metric := findMetric(template, gate.Metric)
		if metric == nil {
			problems.add(field+".metric", "the template has no metric %q; it has %s", gate.Metric, metricNames(template))
			continue
		}
		checkBound(gate, metric, field, problems)
		if why := RewardsWorse(gate.Op, gate.AllowWorse, metric); why != "" {
			problems.add(field+".op", "%s", why)
		}
		checkSamples(spec, gate, metric, selected, cells, field, problems)
	}
}

func checkAt(sweep *assayv1alpha1.Sweep, at assayv1alpha1.ParameterValues, points []record.Point, field string, problems *Invalid) []int {
	for name := range sorted(at) {
		if !isAxis(sweep, name) {
			problems.add(field+".at."+name, "%q is not a sweep axis", name)
			return nil
		}
	}
	var selected []int
	for i, point := range points {
		if Matches(at, point.Parameters) {
			selected = append(selected, i)
		}
	}
	if len(selected) == 0 && len(points) > 0 {
		problems.add(field+".at", "no point matches %s: use values of the sweep's axes", formatValues(at))
	}
	return selected
}

func checkCandidate(spec *assayv1alpha1.BenchmarkRunSpec, candidate, field string, problems *Invalid) {
	if candidate == "" || slices.Contains(candidates(spec), candidate) {
		return
	}
	problems.add(field+".candidate", "%q is no candidate arm; candidates are %s", candidate, strings.Join(candidates(spec), ", "))
}

func checkBound(gate assayv1alpha1.Gate, metric *assayv1alpha1.Metric, field string, problems *Invalid) {
	unit := metric.Unit
	if gate.Op == assayv1alpha1.RatioAtLeast || gate.Op == assayv1alpha1.RatioAtMost {
		unit = ""
	}
	bound, err := ParseBound(gate.Bound, unit)
	if err != nil {
		problems.add(field+".bound", "%s", err)
		return
	}
	if unit == "" && bound <= 0 {
		problems.add(field+".bound", "a ratio of %s can never be missed or met: write a number above 0", gate.Bound)
	}
}

// checkSamples refuses a percentile that could never have enough samples within the run.
func checkSamples(spec *assayv1alpha1.BenchmarkRunSpec, gate assayv1alpha1.Gate, metric *assayv1alpha1.Metric, selected []int, cells []record.Cell, field string, problems *Invalid) {
	statistic := gate.Statistic
	if statistic == "" {
		statistic = metric.Statistic
	}
	need := MinSamples(statistic)
	if need == 0 || metric.SamplesFrom == "" {
		return
	}
	trials := int(spec.Design.Blocks.Min) * SlotsPerCell(spec.Design.Order)
	wanted := map[int]bool{}
	for _, point := range selected {
		wanted[point] = true
	}
	for _, cell := range cells {
		if !wanted[cell.Point] {
			continue
		}
		perTrial, err := strconv.Atoi(cell.Parameters[metric.SamplesFrom])
		if err != nil {
			continue // Reported as a wrong value already.
		}
		if have := perTrial * trials; have < need {
			problems.add(field+".statistic", "%s of %s needs at least %d samples and arm %q gets %d (%d trials of %s=%d): raise %s or spec.design.blocks.min",
				statistic, metric.Name, need, armName(spec, cell.Arm), have, trials, metric.SamplesFrom, perTrial, metric.SamplesFrom)
			return
		}
	}
}

func checkPredictions(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, points []record.Point, problems *Invalid) {
	for i, prediction := range spec.Predictions {
		field := fmt.Sprintf("spec.predictions[%d]", i)
		if findMetric(template, prediction.Metric) == nil {
			problems.add(field+".metric", "the template has no metric %q; it has %s", prediction.Metric, metricNames(template))
		}
		checkAt(spec.Sweep, prediction.At, points, field, problems)
		checkCandidate(spec, prediction.Candidate, field, problems)
		if ratio, err := strconv.ParseFloat(prediction.Ratio, 64); err != nil || ratio <= 0 {
			problems.add(field+".ratio", "value %q is no positive number: write it as 1.5", prediction.Ratio)
		}
		if len(spec.Arms) == 1 {
			problems.add(field, "a prediction is a ratio to the baseline and the run has one arm")
		}
	}
}

func findParameter(template *assayv1alpha1.BenchmarkTemplateSpec, name string) *assayv1alpha1.Parameter {
	for i := range template.Parameters {
		if template.Parameters[i].Name == name {
			return &template.Parameters[i]
		}
	}
	return nil
}

func findMetric(template *assayv1alpha1.BenchmarkTemplateSpec, name string) *assayv1alpha1.Metric {
	for i := range template.Metrics {
		if template.Metrics[i].Name == name {
			return &template.Metrics[i]
		}
	}
	return processMetric(template, name)
}

func parameterNames(template *assayv1alpha1.BenchmarkTemplateSpec) string {
	names := make([]string, 0, len(template.Parameters))
	for _, parameter := range template.Parameters {
		names = append(names, parameter.Name)
	}
	return strings.Join(names, ", ")
}

func metricNames(template *assayv1alpha1.BenchmarkTemplateSpec) string {
	names := make([]string, 0, len(template.Metrics))
	for _, metric := range template.Metrics {
		names = append(names, metric.Name)
	}
	return strings.Join(append(names, processMetricNames(template)...), ", ")
}

func formatValues(values assayv1alpha1.ParameterValues) string {
	parts := make([]string, 0, len(values))
	for name, value := range sorted(values) {
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, ",")
}
