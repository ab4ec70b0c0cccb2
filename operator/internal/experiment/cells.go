package experiment

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// reference is $(name) inside an element of a command.
var reference = regexp.MustCompile(`\$\(([a-z][A-Za-z0-9]*)\)`)

// expandCells returns one cell per point, arm and build, points outermost, with final arguments.
func expandCells(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, points []record.Point,
	problems *Invalid) []record.Cell {
	checkNames(spec, template, problems)
	arms := len(arms(spec))
	cells := make([]record.Cell, 0, len(points)*arms)
	reported, check := map[string]bool{}, checkingOnce()
	for p, point := range points {
		for a := range arms {
			values, origin := resolve(spec, template, point, source(spec, a))
			for _, parameter := range template.Parameters {
				value, ok := values[parameter.Name]
				if !ok {
					problems.addOnce(reported, parameter.Name, "spec.parameters",
						"parameter %q has no default and no value: set it in spec.parameters, an axis or an arm", parameter.Name)
					continue
				}
				if message := check(parameter, value); message != "" {
					field := origin[parameter.Name]
					key := field + message
					if field == searchField {
						key = field // All loads come from one range, so report the field once.
					}
					problems.addOnce(reported, key, field, "%s", message)
				}
			}
			checkPortValues(template, values, origin, reported, problems)
			for _, build := range buildsOf(spec, a) {
				command := argv(template, values)
				if build.Program != "" && len(command) > 0 {
					command[0] = build.Program
				}
				cells = append(cells, record.Cell{
					Point: p, Arm: a, Build: build.Name, Image: build.Image,
					Argv:       command,
					Ports:      ports(resultCommand(template)),
					Roles:      roleCommands(template, values),
					Env:        environment(template, values),
					Parameters: values,
				})
			}
		}
	}
	return cells
}

// resolve merges the values of one cell and remembers which field each came from. Later sources win: template default,
// run, sweep axis, overrides, arm.
func resolve(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, point record.Point, arm int) (values,
	origin map[string]string) {
	values, origin = map[string]string{}, map[string]string{}
	for i, parameter := range template.Parameters {
		if parameter.Default != nil {
			values[parameter.Name] = *parameter.Default
			origin[parameter.Name] = fmt.Sprintf("template.parameters[%d].default", i)
		}
	}
	set := func(field string, from map[string]string) {
		for name, value := range from {
			values[name] = value
			origin[name] = field + "." + name
		}
	}
	set("spec.parameters", spec.Parameters)
	for name, value := range point.Parameters {
		values[name], origin[name] = value, axisField(spec, name, value)
	}
	if spec.Sweep != nil && spec.Search == nil {
		for i, override := range spec.Sweep.Overrides {
			if Matches(override.At, point.Parameters) {
				set(fmt.Sprintf("spec.sweep.overrides[%d].parameters", i), override.Parameters)
			}
		}
	}
	set(fmt.Sprintf("spec.arms[%d].parameters", arm), spec.Arms[arm].Parameters)
	return values, origin
}

// searchField is the field that the loads of a search come from.
const searchField = "spec.search.over"

// axisField returns the field of a point's value: the axis, or the included point.
func axisField(spec *assayv1alpha1.BenchmarkRunSpec, name, value string) string {
	if spec.Search != nil {
		return searchField
	}
	for i, axis := range spec.Sweep.Axes {
		if j := slices.Index(axis.Values, value); axis.Name == name && j >= 0 {
			return fmt.Sprintf("spec.sweep.axes[%d].values[%d]", i, j)
		}
	}
	for i, values := range spec.Sweep.Include {
		if values[name] == value {
			return fmt.Sprintf("spec.sweep.include[%d].%s", i, name)
		}
	}
	return "spec.sweep"
}

// checkNames rejects values for parameters that the template lacks, and arms that override an axis.
func checkNames(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	check := func(field string, values assayv1alpha1.ParameterValues) {
		for name := range sorted(values) {
			if findParameter(template, name) == nil {
				problems.add(field+"."+name, "%s", noParameter(template, name))
			}
		}
	}
	check("spec.parameters", spec.Parameters)
	for i, arm := range spec.Arms {
		field := fmt.Sprintf("spec.arms[%d].parameters", i)
		check(field, arm.Parameters)
		for name := range sorted(arm.Parameters) {
			if isAxis(spec.Sweep, name) {
				problems.add(field+"."+name, "%q is a sweep axis, so the arm would be the same at every point: remove it here or from the sweep", name)
			}
		}
	}
	if spec.Sweep == nil {
		return
	}
	for i, axis := range spec.Sweep.Axes {
		if findParameter(template, axis.Name) == nil {
			problems.add(fmt.Sprintf("spec.sweep.axes[%d].name", i), "%s", noParameter(template, axis.Name))
		}
	}
	for i, override := range spec.Sweep.Overrides {
		field := fmt.Sprintf("spec.sweep.overrides[%d].parameters", i)
		check(field, override.Parameters)
		for name := range sorted(override.Parameters) {
			if isAxis(spec.Sweep, name) {
				problems.add(field+"."+name, "%q is a sweep axis, whose values cannot be overridden: remove it here", name)
			}
		}
	}
}

// argv replaces $(name) inside the elements of the command whose output is the result, and appends the parameters that no
// command names.
func argv(template *assayv1alpha1.BenchmarkTemplateSpec, values map[string]string) []string {
	out := substitute(resultCommand(template), values)
	for _, parameter := range template.Parameters {
		if value, ok := values[parameter.Name]; ok && !named(template, parameter.Name) {
			out = append(out, arguments(parameter, value)...)
		}
	}
	return out
}

// environment returns the variables of all parameters: ASSAY_PARAM_… and, if set, the parameter's env name.
func environment(template *assayv1alpha1.BenchmarkTemplateSpec, values map[string]string) map[string]string {
	out := make(map[string]string, 2*len(values))
	for _, parameter := range template.Parameters {
		if value, ok := values[parameter.Name]; ok && parameter.Env != "" {
			out[parameter.Env] = value
		}
	}
	for name, value := range values {
		out["ASSAY_PARAM_"+strings.ToUpper(strings.ReplaceAll(kebab(name), "-", "_"))] = value
	}
	return out
}

// kebab turns camelCase into kebab-case: batchSize becomes batch-size.
func kebab(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
