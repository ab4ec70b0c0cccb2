package experiment

import (
	"math"
	"strconv"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

// maxLevels bounds the loads of a search times its arms, so that the grid stays an ordinary experiment.
const maxLevels = 512

// Search returns the search over the experiment's points, each of which is a load; empty without spec.search.
func (e *Experiment) Search() search.Search {
	out := search.Search{}
	if e.Plan.Search == nil {
		return out
	}
	for _, point := range e.Points {
		out.Loads = append(out.Loads, point.Parameters[e.Plan.Search.Axis])
	}
	design := e.Plan.Design
	out.Rules = search.Rules{Probe: design.Blocks.Min, Max: design.Blocks.Max, Confirm: design.Blocks.Min}
	if design.Confirm != nil {
		out.Rules.Confirm = design.Confirm.Blocks
	}
	return out
}

// Axes returns the names of the parameters that distinguish the points.
func (e *Experiment) Axes() []string {
	if e.Plan.Search != nil {
		return []string{e.Plan.Search.Axis}
	}
	if e.Plan.Sweep == nil {
		return nil
	}
	return NamesOf(e.Plan.Sweep.Axes, func(a Axis) string { return a.Name })
}

// expandLoads returns one point per load of the grid low, low*(1+resolution), … and, last, high.
func expandLoads(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) []record.Point {
	over := spec.Search.Over
	field := "spec.search.over"
	low, high := over.Low.AsApproximateFloat64(), over.High.AsApproximateFloat64()
	step, ok := quantity.Share(over.Resolution)
	before := problems.found()
	switch {
	case !ok || step <= 0:
		problems.add(field+".resolution", "invalid value %q: loads would not differ; write a share above 0 such as 5%%", over.Resolution)
	case low <= 0:
		problems.add(field+".low", "invalid value %s: the loads are multiples of it; write a number above 0", over.Low.String())
	case low == high:
		problems.add(field, "low and high are both %s: there is nothing to search; make high larger", over.Low.String())
	}
	parameter := findParameter(template, over.Axis)
	switch {
	case parameter == nil:
		problems.add(field+".axis", "%s", noParameter(template, over.Axis))
	case parameter.Type != assayv1alpha1.IntegerParameter && parameter.Type != assayv1alpha1.NumberParameter:
		problems.add(field+".axis", "parameter %q has type %s: a load must be an Integer or a Number", over.Axis, parameter.Type)
	}
	if problems.found() > before {
		return nil
	}
	arms := len(arms(spec))
	if levels := countLoads(low, high, step); levels*float64(max(1, arms)) > maxLevels {
		problems.add(field+".resolution",
			"%s loads from %s to %s in steps of %s times %d arms are more than %d: use a coarser resolution or a smaller range",
			quantity.Decimals(levels, 0), over.Low.String(), over.High.String(), over.Resolution, arms, maxLevels)
		return nil
	}
	var points []record.Point
	last := ""
	add := func(load float64) {
		text := formatLoad(load, parameter.Type)
		if text == last {
			return // Integers closer together than one.
		}
		last = text
		points = append(points, record.Point{Key: over.Axis + "=" + text, Parameters: map[string]string{over.Axis: text}})
	}
	for load := low; load < high*(1-1e-9); load *= 1 + step {
		if parameter.Type == assayv1alpha1.IntegerParameter && math.Round(load) >= high {
			break
		}
		add(load)
	}
	add(high)
	checkLoad(parameter, points[0], field+".low", problems)
	checkLoad(parameter, points[len(points)-1], field+".high", problems)
	return points
}

// countLoads returns the number of loads of the grid from low to high in relative steps.
func countLoads(low, high, step float64) float64 {
	return 1 + math.Ceil(math.Log(high/low)/math.Log1p(step)-1e-9)
}

// checkLoad compares an end of the range with the parameter's bounds.
func checkLoad(parameter *assayv1alpha1.Parameter, end record.Point, field string, problems *Invalid) {
	if message := checkValue(*parameter, end.Parameters[parameter.Name]); message != "" {
		problems.add(field, "%s", message)
	}
}

// formatLoad formats a load: without decimals for an Integer, with five significant digits otherwise, and never with an exponent.
func formatLoad(load float64, kind assayv1alpha1.ParameterType) string {
	if kind == assayv1alpha1.IntegerParameter {
		return quantity.Decimals(math.Round(load), 0)
	}
	rounded, _ := strconv.ParseFloat(quantity.Plain(load, 5), 64) // It was written just now, and quantities are below 1e19.
	return quantity.Decimals(rounded, -1)
}
