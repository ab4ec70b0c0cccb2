package experiment

import (
	"fmt"
	"iter"
	"strings"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/quantity"
)

// Limits of an expanded experiment. A run of a few KiB can define a sweep of any size, and the operator expands it in memory on behalf of
// every tenant. Sizes are therefore counted before anything is expanded.
const (
	// maxCombinations limits the combinations to visit: those of the axes and the included points, before exclude.
	maxCombinations = 10000
	// maxCells limits points times the builds of all arms. A cell takes about 250 bytes in the plan of a wave, which must fit into a ConfigMap
	// of 1 MiB.
	maxCells = 4096
	// maxExpandedBytes limits the sum of the points' names and values and the cells' arguments, variables and parameters. It is four times the
	// capacity of a wave's plan, because a search plans a part of its cells at a time. With it, accepting an experiment takes the operator
	// about 20 MiB of memory.
	maxExpandedBytes = 4 << 20
)

// withinLimits reports an experiment that is too large to be expanded.
func withinLimits(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) bool {
	before := problems.found()
	arms := len(arms(spec))
	// A cell belongs to one build; an arm without builds counts as one.
	builds := 0
	for arm := range arms {
		builds += len(buildsOf(spec, arm))
	}
	// Missing arms are reported later, and the points are expanded nevertheless.
	arms, builds = max(1, arms), max(1, builds)
	if spec.Search == nil && spec.Sweep != nil {
		combinations := countCombinations(spec.Sweep)
		if combinations > maxCombinations || len(spec.Sweep.Exclude) == 0 && combinations*float64(builds) > maxCells {
			tooManyCells(combinations, arms, builds, problems)
			return false
		}
	}
	counter := newCounter(spec, template)
	points := 0
	for values := range pointsOf(spec) {
		if points++; points*builds <= maxCells {
			counter.point(values)
		}
	}
	if spec.Search != nil {
		points = loadsOf(spec.Search, arms)
		counter.total *= points
	}
	if points*builds > maxCells {
		tooManyCells(float64(points), arms, builds, problems)
	} else if counter.total > maxExpandedBytes {
		counter.refuse(points*builds, problems)
	}
	return problems.found() == before
}

func tooManyCells(points float64, arms, builds int, problems *Invalid) {
	what, fewer := fmt.Sprintf("%d arms, the null arm included,", arms), "arms"
	if builds > arms {
		what, fewer = fmt.Sprintf("%d builds of %s", builds, what), "arms, builds"
	}
	problems.add("spec.sweep", "%s points of %s are %s cells and at most %d cells of %d points are "+
		"allowed: use fewer values, %s or axes, mode Zip, or several runs",
		quantity.Decimals(points, 0), what, quantity.Decimals(points*float64(builds), 0), maxCells, maxCombinations, fewer)
}

// countCombinations returns the number of combinations before exclude. It is a float because 256 values of eight axes exceed an integer.
func countCombinations(sweep *assayv1alpha1.Sweep) float64 {
	count := 1.0
	for _, axis := range sweep.Axes {
		if sweep.Mode == assayv1alpha1.ZipSweep {
			count = float64(len(axis.Values))
			break
		}
		count *= float64(max(1, len(axis.Values)))
	}
	return count + float64(len(sweep.Include))
}

// loadsOf returns the number of loads of a search; 1 if its range is invalid.
func loadsOf(search *assayv1alpha1.Search, arms int) int {
	step, ok := quantity.Share(search.Over.Resolution)
	loads := countLoads(search.Over.Low.AsApproximateFloat64(), search.Over.High.AsApproximateFloat64(), step)
	if !ok || !(loads >= 1 && loads*float64(arms) <= maxLevels) {
		return 1
	}
	return int(loads)
}

// pointsOf visits the values of the axes at every point, in one map that it reuses. A search, whose loads are counted elsewhere, and a run
// without a sweep have one point.
func pointsOf(spec *assayv1alpha1.BenchmarkRunSpec) iter.Seq[map[string]string] {
	return func(yield func(map[string]string) bool) {
		if spec.Search != nil || spec.Sweep == nil {
			yield(nil)
			return
		}
		for values := range combine(spec.Sweep) {
			if !excluded(spec.Sweep, values) && !yield(values) {
				return
			}
		}
		for _, values := range spec.Sweep.Include {
			if !excluded(spec.Sweep, values) && !yield(values) {
				return
			}
		}
	}
}

// counter sums the bytes of the expanded experiment.
type counter struct {
	spec     *assayv1alpha1.BenchmarkRunSpec
	template *assayv1alpha1.BenchmarkTemplateSpec
	arms     int
	// fixed is the bytes of every cell without values; times counts how often each parameter's value appears in a cell.
	fixed int
	times []int
	// matching are the overrides of a point, in their order.
	matching []int
	total    int
	// most is the largest value times how often a cell has it, and its parameter; -1 without one.
	most, parameter int
}

func newCounter(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) *counter {
	out := &counter{spec: spec, template: template, arms: len(arms(spec)), times: make([]int, len(template.Parameters)), parameter: -1}
	for _, command := range commands(template) {
		for _, element := range command.elements {
			out.fixed += len(element)
		}
	}
	for i, parameter := range template.Parameters {
		// The value appears among the parameters, as ASSAY_PARAM_… and possibly as the parameter's env variable.
		out.times[i] = 2
		out.fixed += len("ASSAY_PARAM_") + 2*len(kebab(parameter.Name)) + len(parameter.Env)
		if parameter.Env != "" {
			out.times[i]++
		}
		in := 0
		for _, command := range commands(template) {
			for _, element := range command.elements {
				in += strings.Count(element, "$("+parameter.Name+")")
			}
		}
		if in == 0 && parameter.Argument != noArgument {
			in = 1
			out.fixed += len("--=") + len(kebab(parameter.Name)) + len(parameter.Argument)
		}
		out.times[i] += in
	}
	return out
}

// point adds a point and its cells.
func (c *counter) point(values map[string]string) {
	for name, value := range values {
		c.total += 2 * (len(name) + len(value))
	}
	c.matching = c.matching[:0]
	if c.spec.Sweep != nil && c.spec.Search == nil {
		for i := range c.spec.Sweep.Overrides {
			if Matches(c.spec.Sweep.Overrides[i].At, values) {
				c.matching = append(c.matching, i)
			}
		}
	}
	for arm := range c.arms {
		builds := buildsOf(c.spec, arm)
		c.total += len(builds) * c.fixed
		for _, build := range builds {
			c.total += len(build.Program)
		}
		for i := range c.template.Parameters {
			bytes := c.times[i] * len(c.value(i, values, source(c.spec, arm)))
			c.total += len(builds) * bytes
			if bytes > c.most {
				c.most, c.parameter = bytes, i
			}
		}
	}
}

// value returns the value that resolve gives a parameter in a cell.
func (c *counter) value(parameter int, point map[string]string, arm int) string {
	name := c.template.Parameters[parameter].Name
	if value, ok := c.spec.Arms[arm].Parameters[name]; ok {
		return value
	}
	for i := len(c.matching) - 1; i >= 0; i-- {
		if value, ok := c.spec.Sweep.Overrides[c.matching[i]].Parameters[name]; ok {
			return value
		}
	}
	if value, ok := point[name]; ok {
		return value
	}
	if value, ok := c.spec.Parameters[name]; ok {
		return value
	}
	return ptr.Deref(c.template.Parameters[parameter].Default, "")
}

// refuse adds a problem that names the largest contribution.
func (c *counter) refuse(cells int, problems *Invalid) {
	field, what := "template.command", fmt.Sprintf("%d bytes of each are the commands and the names of parameters", c.fixed)
	if len(c.template.Roles) > 0 {
		field = "template.roles"
	}
	if c.most > c.fixed {
		name := c.template.Parameters[c.parameter].Name
		field, what = "template.parameters",
			fmt.Sprintf("parameter %q alone takes up to %d bytes of one, its value written %d times", name, c.most, c.times[c.parameter])
	}
	problems.add(field, "the arguments, variables and parameters of %d cells take %d bytes and at most %d are allowed; %s: shorten it, or "+
		"use fewer points or arms, or several runs",
		cells, c.total, maxExpandedBytes, what)
}
