package experiment

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// expandPoints returns the points of the sweep in the order of the report, without duplicates. Without a sweep
// there is one point with an empty key; a search has one point per load of its grid.
func expandPoints(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) []record.Point {
	if spec.Search != nil {
		return expandLoads(spec, template, problems)
	}
	if spec.Sweep == nil {
		return []record.Point{{Parameters: map[string]string{}}}
	}
	sweep := spec.Sweep
	var combinations []map[string]string
	for values := range combine(sweep) {
		combinations = append(combinations, maps.Clone(values))
	}
	combinations = append(combinations, included(sweep, problems)...)
	checkSelectors(sweep, problems)

	var points []record.Point
	seen := map[string]int{}
	for i, values := range combinations {
		if excluded(sweep, values) {
			continue
		}
		key := strings.Join(NamesOf(sweep.Axes, func(a assayv1alpha1.SweepAxis) string { return a.Name + "=" + values[a.Name] }), ",")
		if first, ok := seen[key]; ok {
			problems.add("spec.sweep", "point %q appears twice (combinations %d and %d): remove the duplicate value or include", key, first, i)
			continue
		}
		seen[key] = i
		points = append(points, record.Point{Key: key, Parameters: values})
	}
	if len(points) == 0 {
		problems.add("spec.sweep", "no point is left: exclude removes every combination of the axes")
	}
	return points
}

// combine visits the combinations of the axes, the last axis fastest, in one map that the next one overwrites.
func combine(sweep *assayv1alpha1.Sweep) iter.Seq[map[string]string] {
	return func(yield func(map[string]string) bool) {
		values := map[string]string{}
		for i := range int(countCombinations(sweep)) - len(sweep.Include) {
			rest := i
			for _, axis := range slices.Backward(sweep.Axes) {
				if len(axis.Values) == 0 {
					continue // The CRD schema requires a value.
				}
				at := i
				if sweep.Mode != assayv1alpha1.ZipSweep {
					at, rest = rest%len(axis.Values), rest/len(axis.Values)
				}
				if at < len(axis.Values) {
					values[axis.Name] = axis.Values[at]
				}
			}
			if !yield(values) {
				return
			}
		}
	}
}

func excluded(sweep *assayv1alpha1.Sweep, values map[string]string) bool {
	return slices.ContainsFunc(sweep.Exclude, func(at assayv1alpha1.ParameterValues) bool { return Matches(at, values) })
}

func included(sweep *assayv1alpha1.Sweep, problems *Invalid) []map[string]string {
	var out []map[string]string
	for i, values := range sweep.Include {
		field := fmt.Sprintf("spec.sweep.include[%d]", i)
		before := problems.found()
		for _, axis := range sweep.Axes {
			if _, ok := values[axis.Name]; !ok {
				problems.add(field, "axis %q is missing: an included point names every axis", axis.Name)
			}
		}
		checkAxes(sweep, values, field, problems)
		if problems.found() == before {
			out = append(out, maps.Clone(map[string]string(values)))
		}
	}
	return out
}

// noAxis is the message for a name that is not an axis.
func noAxis(axes []string, name string) lazily {
	return func() string {
		if len(axes) == 0 {
			return fmt.Sprintf("invalid axis %q: the run has no axes; remove it, or add the axis to spec.sweep.axes", name)
		}
		return fmt.Sprintf("invalid axis %q: %s", name, suggest.Allowed(name, axes))
	}
}

// checkAxes rejects names that are not axes.
func checkAxes(sweep *assayv1alpha1.Sweep, values assayv1alpha1.ParameterValues, field string, problems *Invalid) {
	axes := NamesOf(sweep.Axes, func(a assayv1alpha1.SweepAxis) string { return a.Name })
	for name := range sorted(values) {
		if !slices.Contains(axes, name) {
			problems.add(field, "%s", noAxis(axes, name))
		}
	}
}

func checkSelectors(sweep *assayv1alpha1.Sweep, problems *Invalid) {
	for i, at := range sweep.Exclude {
		field := fmt.Sprintf("spec.sweep.exclude[%d]", i)
		if len(at) == 0 {
			problems.add(field, "no axis is named, so that every point would be removed: name at least one")
		}
		checkAxes(sweep, at, field, problems)
	}
	for i, override := range sweep.Overrides {
		checkAxes(sweep, override.At, fmt.Sprintf("spec.sweep.overrides[%d].at", i), problems)
	}
}

// Matches reports whether the point has every value the selector names. An empty selector matches every point.
func Matches(at assayv1alpha1.ParameterValues, point map[string]string) bool {
	for name, value := range at {
		if actual, ok := point[name]; !ok || actual != value {
			return false
		}
	}
	return true
}

func isAxis(sweep *assayv1alpha1.Sweep, name string) bool {
	return sweep != nil && slices.ContainsFunc(sweep.Axes, func(a assayv1alpha1.SweepAxis) bool { return a.Name == name })
}

// sorted iterates over a map in the order of its keys, so that messages are stable.
func sorted[M ~map[string]V, V any](m M) func(yield func(string, V) bool) {
	keys := slices.Sorted(maps.Keys(m))
	return func(yield func(string, V) bool) {
		for _, key := range keys {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
