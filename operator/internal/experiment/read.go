package experiment

import (
	"cmp"
	"fmt"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// read derives the plan from a run and its template. It is the only place that parses words into numbers, and reports numbers that are
// invalid for their field. Rules over several fields are checked on the plan.
func read(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) *Plan {
	out := &Plan{
		Version: PlanVersion, Template: ptr.Deref(spec.TemplateRef, assayv1alpha1.TemplateReference{}).Name,
		Workload: record.Workload{
			Image: template.Image, Output: readOutput(template), ParityRequired: template.Parity == assayv1alpha1.ParityRequired,
			Prepares:       template.Prepares,
			TimeoutSeconds: template.TrialTimeout.Seconds(), Roles: readRoles(template),
		},
		Command: resultCommand(template), Files: template.Files,
		Placement: PlacementOf(spec.Placement),
		Retries:   int(ptr.Deref(spec.Retry.Limit, 0)),
		Budget:    Budget{spec.Budget.WallClock, int(spec.Budget.Trials)},
	}
	for i, metric := range template.Metrics {
		field := fmt.Sprintf("template.metrics[%d]", i)
		out.Metrics = append(out.Metrics, Metric{
			metric.Name, metric.Unit, checkWord(problems, field+".direction", Direction(metric.Direction), LowerIsBetter, HigherIsBetter),
			checkWord(problems, field+".statistic", Statistic(metric.Statistic), Statistics()...), metric.SamplesFrom, metric.Optional,
		})
	}
	if spec.Sweep != nil {
		out.Sweep = &Sweep{Zipped: spec.Sweep.Mode == assayv1alpha1.ZipSweep}
		for _, axis := range spec.Sweep.Axes {
			out.Sweep.Axes = append(out.Sweep.Axes, Axis(axis))
		}
	}
	checkWord(problems, "template.parity", template.Parity, "", assayv1alpha1.ParityRequired, assayv1alpha1.ParityNone)
	out.Parity = checkWord(problems, "spec.parity", Parity(spec.Parity), Parities...)
	if template.Parity == assayv1alpha1.ParityNone {
		out.Parity = ParityNone
	}
	checkWord(problems, "spec.placement.exclusive", out.Placement.Exclusive, "", ExclusiveNode, ExclusiveCPUs, ExclusiveNone)
	out.Design = readDesign(&spec.Design, problems)
	if spec.Design.Layout != assayv1alpha1.LayoutFixed {
		out.Workload.LayoutSeed = ptr.To(spec.Design.Seed)
	}
	readEnvironment(spec, out, problems)
	for i, gate := range spec.Gates {
		field := fmt.Sprintf("spec.gates[%d]", i)
		condition := out.condition(field, gate.Metric, gate.Statistic, gate.Op, gate.Bound, gate.AllowWorse, Ops(), problems)
		severity := checkWord(problems, field+".severity", Severity(gate.Severity), Blocking, Advisory)
		out.Gates = append(out.Gates, Gate{gate.Name, condition, gate.At, gate.Candidate, severity})
	}
	if spec.Search != nil {
		out.Search = &Search{Axis: spec.Search.Over.Axis, Maximize: spec.Search.Maximize}
		for i, c := range spec.Search.SubjectTo {
			out.Search.SubjectTo = append(out.Search.SubjectTo,
				out.condition(fmt.Sprintf("spec.search.subjectTo[%d]", i), c.Metric, c.Statistic, c.Op, c.Bound, c.AllowWorse,
					Ops(SubjectLevel), problems))
		}
	}
	for i, p := range spec.Predictions {
		ratio, err := quantity.Number(p.Ratio)
		if err != nil || !(ratio > 0) {
			problems.add(fmt.Sprintf("spec.predictions[%d].ratio", i), "invalid value %q: allowed are numbers above 0; write it as 1.5", p.Ratio)
		}
		out.Predictions = append(out.Predictions, Prediction{p.Metric, p.At, p.Candidate, ratio})
	}
	for i, table := range ptr.Deref(spec.Report, assayv1alpha1.Report{}).Tables {
		out.Tables = append(out.Tables, out.table(table, fmt.Sprintf("spec.report.tables[%d]", i), problems))
	}
	return out
}

// PlacementOf converts a placement of the API to one of a plan.
func PlacementOf(p assayv1alpha1.Placement) Placement {
	return Placement{p.NodeSelector, p.Tolerations, p.CPUs, p.Memory, Exclusivity(p.Exclusive), p.MaxNodes}
}

// readOutput returns the location of the result and, for another tool's output, the mapping of its figures to metrics.
func readOutput(template *assayv1alpha1.BenchmarkTemplateSpec) record.Output {
	out := record.Output{Format: string(template.Output.Format), Path: template.Output.Path}
	if template.Output.Format == assayv1alpha1.AssayResult || template.Output.Format == assayv1alpha1.NoOutput {
		return out
	}
	if csv := template.Output.CSV; csv != nil {
		out.CSV = &record.CSV{
			Separator: csv.Separator, DecimalMark: csv.DecimalMark, ThousandsMark: csv.ThousandsMark, Comment: csv.Comment,
			Section: int(ptr.Deref(csv.Section, 0)),
		}
	}
	if json := template.Output.JSON; json != nil {
		out.JSON = &record.JSON{ErrorPath: json.ErrorPath}
	}
	for _, metric := range template.Metrics {
		from := ptr.Deref(metric.From, assayv1alpha1.MetricSource{})
		out.Metrics = append(out.Metrics, record.MetricSource{
			Name: metric.Name, Unit: metric.Unit, Benchmark: from.Benchmark, Field: from.Field, Path: from.Path,
			FieldUnit: from.Unit,
		})
	}
	return out
}

// readRoles returns the processes of a trial for the runner; nil for a single process.
func readRoles(template *assayv1alpha1.BenchmarkTemplateSpec) []record.Role {
	var out []record.Role
	for _, role := range template.Roles {
		of := record.Role{Name: role.Name, Result: role.Result, CPUs: int(role.CPUs)}
		if !role.Result {
			of.StopGraceSeconds = ptr.To(role.StopGracePeriod.Seconds())
		}
		if ready := role.Readiness; ready != nil {
			of.Readiness = &record.RoleReadiness{On: record.ReadyOnPort, TimeoutSeconds: ready.Timeout.Seconds()}
			switch {
			case ready.Line != "":
				of.Readiness.On, of.Readiness.Text = record.ReadyOnLine, ready.Line
			case ready.File != "":
				of.Readiness.On, of.Readiness.Text = record.ReadyOnFile, ready.File
			}
		}
		out = append(out, of)
	}
	return out
}

func readDesign(design *assayv1alpha1.Design, problems *Invalid) Design {
	out := Design{
		Blocks: Blocks{int(design.Blocks.Min), int(design.Blocks.Max)}, Order: Order(design.Order), Seed: design.Seed,
		WarmupTrials: int(design.WarmupTrials), NullArm: design.NullArm, ControlPhases: design.ControlPhases,
	}
	checkWord(problems, "spec.design.order", out.Order, "", OrderABBA, OrderRandom, OrderSequential)
	confidence := func(field, text, example string) float64 {
		value, err := quantity.Number(text)
		if err != nil || !(value >= 0.5 && value < 1) {
			problems.add(field, "invalid value %q: allowed are numbers between 0.5 and 1; write it as %s", text, example)
			return 0
		}
		return value
	}
	out.Confidence = confidence("spec.design.confidence", design.Confidence, "0.95")
	out.GateConfidence = confidence("spec.design.gateConfidence", design.GateConfidence, "0.995")
	if out.GateConfidence > 0 && out.GateConfidence < out.Confidence {
		problems.add("spec.design.gateConfidence",
			"value %s is below spec.design.confidence %s: a verdict would rest on less than the results shown beside it; raise it",
			design.GateConfidence, design.Confidence)
	}
	if design.RareSlowdown != "" {
		share, ok := quantity.Share(design.RareSlowdown)
		if out.RareSlowdown = share; !ok || !(share > 0 && share <= maxRareSlowdown) {
			problems.add("spec.design.rareSlowdown", "invalid value %q: allowed are shares above 0%% and up to %d%%; write one such as 20%%, or "+
				"remove it", design.RareSlowdown, 100*maxRareSlowdown)
		}
	}
	if design.BlockCorrelation != "" {
		value, err := quantity.Number(design.BlockCorrelation)
		if out.BlockCorrelation = value; err != nil || !(value >= 0 && value <= maxCorrelation) {
			problems.add("spec.design.blockCorrelation", "invalid value %q: allowed are numbers between 0 and %g; write it as 0.85, or remove it",
				design.BlockCorrelation, maxCorrelation)
		}
	}
	if design.Stop != nil {
		share, ok := quantity.Share(design.Stop.RelativeHalfWidth)
		if out.Stop = (&Stop{share}); !ok || !(share > 0) {
			problems.add("spec.design.stop.relativeHalfWidth",
				"invalid value %q: no interval is ever that narrow; write a share above zero such as 1%%", design.Stop.RelativeHalfWidth)
		}
	}
	if design.Confirm != nil {
		out.Confirm = &Confirm{int(design.Confirm.Blocks)}
	}
	return out
}

func readEnvironment(spec *assayv1alpha1.BenchmarkRunSpec, out *Plan, problems *Invalid) {
	environment := ptr.Deref(spec.Environment, assayv1alpha1.Environment{})
	limits, wrong := noise.Read(environment.Noise.Texts(), out.Placement.AsksExclusiveCPUs())
	for _, kind := range noise.Kinds {
		if err := wrong[kind]; err != nil {
			problems.add("spec.environment.noise."+string(kind), "%s", err)
		}
	}
	out.Noise = limits
	out.OnViolation = checkWord(problems, "spec.environment.onViolation", cmp.Or(noise.Policy(environment.OnViolation), noise.Retry),
		noise.Policies...)
	out.Requires.Require = environment.Require
	if spec.Placement.RequireStaticCPUManager {
		out.Requires.Isolation = exclusiveCPUs
	}
}

// exclusiveCPUs is the isolation level that every block verifies under placement.requireStaticCPUManager.
const exclusiveCPUs = "ExclusiveCPUs"

// condition parses a gate or a constraint with one of these operators. A bound needs the unit of its metric; a missing metric is reported
// elsewhere.
func (p *Plan) condition(field, name string, statistic assayv1alpha1.Statistic, op assayv1alpha1.GateOperator, text string, allowWorse bool,
	ops []Op, problems *Invalid) Condition {
	out := Condition{
		Metric: name, Statistic: Statistic(statistic), Op: checkWord(problems, field+".op", Op(op), ops...), AllowWorse: allowWorse,
	}
	checkWord(problems, field+".statistic", out.Statistic, append(Statistics(), "")...)
	metric := p.metric(name)
	if _, has := out.Op.leastBound(); !has || out.Op.Timed() && metric == nil {
		return out
	}
	unit := ""
	if metric != nil {
		unit = metric.Unit
	}
	bound, err := out.Op.parseBound(text, unit)
	if metric != nil && out.Op.Timed() {
		out.Statistic = cmp.Or(out.Statistic, metric.Statistic)
	}
	if err != nil {
		problems.add(field+".bound", "%s", err)
		return out
	}
	out.Bound = &bound
	return out
}

func (p *Plan) table(asked assayv1alpha1.ReportTable, field string, problems *Invalid) Table {
	out := Table{
		Name: asked.Name, Title: asked.Title, Phases: asked.Rows == assayv1alpha1.PhaseRows, Arms: asked.Arms, At: asked.At, Total: asked.Total,
		Unit: asked.Unit, Scale: map[string]float64{"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[asked.Unit],
	}
	for j, c := range asked.Columns {
		scale, ok := ScaleOf(c.Scale)
		if !ok {
			problems.add(fmt.Sprintf("%s.columns[%d].scale", field, j), "invalid scale %q: allowed are n, u, m, k, M, G, T, Ki, Mi, Gi and Ti",
				c.Scale)
		}
		column := Column{c.Title, c.Metric, Statistic(c.Statistic), c.Phase, scale, c.Compared}
		if metric := p.metric(c.Metric); metric != nil {
			column.Statistic = cmp.Or(column.Statistic, metric.Statistic)
		}
		out.Columns = append(out.Columns, column)
	}
	return out
}
