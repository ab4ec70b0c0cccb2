package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/record"
)

// Arms may only be compared if they measured the same thing, and their reports name it.
//
// A result names its workload. Arms for which the plan has the same program run one workload with any parameters: if their results name
// different workloads, one of the results is wrong.

// workloadNames returns the workload names in the results of every arm, including those of failed trials and warm-ups.
func workloadNames(counting []*record.Attempt, cells map[*record.Attempt]Cell) map[int]map[string]bool {
	out := map[int]map[string]bool{}
	for _, attempt := range counting {
		if name := attempt.Reported().Workload.Name; name != "" {
			Inner(out, cells[attempt].Arm)[name] = true
		}
	}
	return out
}

// OtherWorkload describes an arm whose results name another workload than the baseline's.
type OtherWorkload struct {
	Text string
	// SameProgram reports whether the plan has both arms run one program, so that the results contradict the plan.
	SameProgram bool
}

func findOtherWorkloads(exp *experiment.Experiment, waves []record.Wave, named map[int]map[string]bool) map[int]OtherWorkload {
	out := map[int]OtherWorkload{}
	baseline := exp.Baseline()
	theirs := slices.Collect(maps.Keys(named[baseline]))
	for arm := range exp.Arms {
		own := slices.Collect(maps.Keys(named[arm]))
		// An arm with several workloads is a changed arm.
		if len(own) != 1 || len(theirs) != 1 || own[0] == theirs[0] {
			continue
		}
		out[arm] = OtherWorkload{
			Text: fmt.Sprintf("the results of arm %s are of workload %q and those of %s of %q", exp.Arms[arm].Name, own[0],
				exp.Arms[baseline].Name, theirs[0]),
			SameProgram: maps.Equal(plannedPrograms(exp, waves, arm), plannedPrograms(exp, waves, baseline)),
		}
	}
	return out
}

// plannedPrograms returns the programs that the experiment and the plans have for an arm, each with its image. The plans of a local run
// name them by other paths.
func plannedPrograms(exp *experiment.Experiment, waves []record.Wave, arm int) map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, c := range exp.Cells {
		if c.Arm == arm && len(c.Argv) > 0 {
			out[[2]string{exp.Image(c), c.Argv[0]}] = true
		}
	}
	for i := range waves {
		for _, c := range waves[i].Cells {
			if waves[i].Arms[c.Arm].Name == exp.Arms[arm].Name && len(c.Argv) > 0 {
				out[[2]string{"", c.Argv[0]}] = true
			}
		}
	}
	return out
}

// Reports are the results of the arms, including those of unusable trials and warm-ups. Arms are comparable in a metric if their results
// have it under the same names, in the same unit and in the same shape; otherwise its figures are of different things.
type Reports struct {
	metrics map[string]metricSource
	cells   map[Cell]*cellReports
}

// cellReports are the results of a cell, with the units and the shapes that each metric of the experiment has in them.
type cellReports struct {
	attempts      []*record.Attempt
	units, shapes map[string]map[string]bool
}

// metricSource is the way from a report to a metric.
type metricSource struct {
	experiment.Metric
	// tool reports whether the output of another tool is read, so that the name of the figure is that of the tool.
	tool bool
	// mapped reports whether from.benchmark names the benchmark of each arm.
	mapped bool
}

func reportsOf(exp *experiment.Experiment, counting []*record.Attempt, cells map[*record.Attempt]Cell) Reports {
	out := Reports{metrics: map[string]metricSource{}, cells: map[Cell]*cellReports{}}
	for _, metric := range exp.Plan.Metrics {
		out.metrics[metric.Name] = metricSource{
			Metric: metric, tool: format.Named(exp.Plan.Workload.Output.Format).ByTool(),
			mapped: slices.ContainsFunc(exp.Plan.Workload.Output.Metrics, func(from record.MetricSource) bool {
				return from.Name == metric.Name && from.Benchmark != ""
			}),
		}
	}
	for _, attempt := range counting {
		if attempt.Result == nil {
			continue
		}
		of := out.cells[cells[attempt]]
		if of == nil {
			of = &cellReports{units: map[string]map[string]bool{}, shapes: map[string]map[string]bool{}}
			out.cells[cells[attempt]] = of
		}
		of.attempts = append(of.attempts, attempt)
		for name, source := range out.metrics {
			if reported := attempt.Result.Metrics[name]; reported != nil {
				Inner(of.units, name)[reported.Unit] = true
				Inner(of.shapes, name)[shapeOf(source.Metric, attempt)] = true
			}
		}
	}
	return out
}

// Differ describes how the results of two arms at a point differ in a metric. It returns "" if they do not, if the runner reads the
// metric from the processes, or if an arm has no results.
func (r Reports) Differ(exp *experiment.Experiment, point, mine, theirs int, metric string) string {
	a, b := r.cells[At(point, mine)], r.cells[At(point, theirs)]
	of, reported := r.metrics[metric]
	if !reported || mine == theirs || a == nil || b == nil {
		return ""
	}
	arms := armNames{exp.Arms[mine].Name, exp.Arms[theirs].Name}
	return cmp.Or(of.unreported(a, b, arms, r.metrics), of.unreported(b, a, armNames{arms.theirs, arms.mine}, r.metrics),
		of.apart("unit", a.units, b.units, arms), of.apart("shape", a.shapes, b.shapes, arms),
		of.renamed(partBenchmark, a, b, arms), of.renamed("field", a, b, arms), of.renamed("unit", a, b, arms))
}

// Unmeasured describes how the results of an arm contradict the template and those of the other arm do not, so that all of its trials
// are unusable: a required metric has another name or unit. It returns "" otherwise.
func (r Reports) Unmeasured(exp *experiment.Experiment, point, mine, theirs int) string {
	a, b := r.cells[At(point, mine)], r.cells[At(point, theirs)]
	if mine == theirs || a == nil || b == nil {
		return ""
	}
	arms := armNames{exp.Arms[mine].Name, exp.Arms[theirs].Name}
	for _, metric := range exp.Plan.Metrics {
		of := r.metrics[metric.Name]
		if why := cmp.Or(of.unreported(a, b, arms, r.metrics), of.apart("unit", a.units, b.units, arms)); why != "" {
			return why
		}
	}
	return ""
}

// partBenchmark is the tool's name of the benchmark that a metric is of, as an adapter records it in effective.
const partBenchmark = "benchmark"

type armNames struct{ mine, theirs string }

// unreported describes a required metric that one arm reports and the other has under a name that the template does not know. An arm that
// only lacks it has unusable trials.
func (m metricSource) unreported(lacking, having *cellReports, arms armNames, known map[string]metricSource) string {
	if m.Optional || len(lacking.units[m.Name]) > 0 || len(having.units[m.Name]) == 0 {
		return ""
	}
	names := map[string]bool{}
	for _, attempt := range lacking.attempts {
		for name := range attempt.Result.Metrics {
			if _, of := known[name]; !of {
				names[name] = true
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the results of arm %s have metric %q and those of arm %s have %s instead: report the same metrics in every arm",
		arms.theirs, m.Name, arms.mine, quotedList(names))
}

// apart describes a property of the metric of which no trial of one arm has a value of the other. Arms that share a value are compared
// by other rules.
func (m metricSource) apart(property string, mine, theirs map[string]map[string]bool, arms armNames) string {
	ofA, ofB := mine[m.Name], theirs[m.Name]
	for value := range ofA {
		if ofB[value] {
			return ""
		}
	}
	if len(ofA) == 0 || len(ofB) == 0 {
		return ""
	}
	return fmt.Sprintf("the %s of metric %s is %s in the results of arm %s and %s in those of arm %s: report the metric alike in every arm",
		property, m.Name, quotedList(ofA), arms.mine, quotedList(ofB), arms.theirs)
}

// shapeOf returns the form of a figure, without its number of samples.
func shapeOf(metric experiment.Metric, attempt *record.Attempt) string {
	reported := attempt.Result.Metrics[metric.Name]
	switch made := madeOf(*reported, &metric, attempt.Parameters, false); {
	case reported.Histogram != nil:
		return "histogram"
	case made == oneValue:
		return oneValue
	default:
		return "samples"
	}
}

// renamed describes a name of the tool that differs between the trials of the arms in a block. Across blocks it may differ, because some
// tools append the number of CPUs.
func (m metricSource) renamed(part string, a, b *cellReports, arms armNames) string {
	if !m.tool || m.mapped && part == partBenchmark {
		return ""
	}
	name := func(attempt *record.Attempt) string {
		text, _ := attempt.Result.Effective[m.Name+"."+part].(string)
		// Every trial has other ports.
		for _, role := range attempt.Roles {
			if role.Port != 0 {
				text = strings.ReplaceAll(text, ":"+strconv.Itoa(role.Port), ":$(port."+role.Name+")")
			}
		}
		return text
	}
	theirs := map[string]map[string]bool{}
	for _, attempt := range b.attempts {
		Inner(theirs, attempt.Block)[name(attempt)] = true
	}
	for _, attempt := range a.attempts {
		mine := name(attempt)
		for _, other := range slices.Sorted(maps.Keys(theirs[attempt.Block])) {
			if other == mine {
				continue
			}
			text := fmt.Sprintf("the %s of metric %s is %q in the results of arm %s and %q in those of arm %s", part, m.Name, mine, arms.mine,
				other, arms.theirs)
			if part == partBenchmark {
				return text + ": name the benchmark of each arm in from.benchmark, with $(parameter) for the part that differs"
			}
			return text + ": report the metric alike in every arm"
		}
	}
	return ""
}

// quotedList lists the first values in their order.
func quotedList(values map[string]bool) string {
	const shown = 3
	out := ""
	for i, value := range slices.Sorted(maps.Keys(values)) {
		switch {
		case i == shown:
			return out + fmt.Sprintf(" and %d others", len(values)-shown)
		case i > 0:
			out += ", "
		}
		out += fmt.Sprintf("%q", value)
	}
	return out
}
