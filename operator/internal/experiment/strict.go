package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// A frozen experiment was validated by Freeze; a handwritten one was not. These checks reject fields that would have no effect or another
// effect than documented. An absent word is allowed where absence has a meaning.

// paths are the names of the plan's fields in the file that they come from.
type paths struct{ spec, template, violation string }

var (
	inSpec = paths{"spec", "template", "spec.environment.onViolation"}
	inPlan = paths{"plan", "plan", "plan.onViolation"}
)

// check reports problems that Freeze would have rejected, and fields that it would have filled in. A handwritten experiment must contain
// them, because a gate without effect would pass unnoticed.
func (n paths) check(e *Experiment) error {
	return cmp.Or(n.checkFilledIn(e), n.checkWords(&e.Plan), n.checkMetrics(&e.Plan), n.checkReferences(e), n.checkNumbers(&e.Plan))
}

// checkFilledIn reports missing fields that Freeze would have filled in.
func (n paths) checkFilledIn(e *Experiment) error {
	if e.Plan.Design.Seed == 0 {
		return fmt.Errorf("%s.design.seed is missing: write the number that orders and intervals were drawn by, or 1", n.spec)
	}
	if search := e.Plan.Search; search != nil {
		for i, point := range e.Points {
			if point.Parameters[search.Axis] == "" {
				return fmt.Errorf("points[%d] has no value of %s, the axis of %s.search: every point of a search is a load, from the lowest", i,
					search.Axis, n.spec)
			}
		}
	}
	compared := slices.ContainsFunc(e.Plan.Gates, func(gate Gate) bool { return gate.Op == ParityEqual })
	if compared && e.Plan.Parity == ParityOfAll && !e.Plan.Workload.ParityRequired {
		return fmt.Errorf("%s.parity is missing, and a gate of op ParityEqual compares the outputs of all trials: write Required", n.template)
	}
	for i, metric := range e.Plan.Metrics {
		if metric.Statistic == "" {
			return fmt.Errorf("%s.metrics[%d].statistic is missing: write median, or value for one number per trial", n.template, i)
		}
	}
	return nil
}

// checkWords rejects unknown words.
func (n paths) checkWords(p *Plan) error {
	statistics := Statistics()
	errs := []error{
		word(n.spec+".parity", p.Parity, Parities...),
		word(n.spec+".design.order", p.Design.Order, "", OrderABBA, OrderRandom, OrderSequential),
		word(n.spec+".placement.exclusive", p.Placement.Exclusive, "", ExclusiveNode, ExclusiveCPUs, ExclusiveNone),
		word(n.violation, p.OnViolation, noise.Policies...),
	}
	for i, metric := range p.Metrics {
		field := fmt.Sprintf("%s.metrics[%d]", n.template, i)
		errs = append(errs,
			word(field+".direction", metric.Direction, LowerIsBetter, HigherIsBetter),
			word(field+".statistic", metric.Statistic, statistics...))
	}
	if i := repeated(p.Metrics, func(metric Metric) string { return metric.Name }); i >= 0 {
		errs = append(errs, fmt.Errorf("%s.metrics[%d].name %q is used twice: metric names must be unique", n.template, i,
			p.Metrics[i].Name))
	}
	for i, gate := range p.Gates {
		field := fmt.Sprintf("%s.gates[%d]", n.spec, i)
		errs = append(errs,
			word(field+".severity", gate.Severity, Blocking, Advisory),
			word(field+".op", gate.Op, Ops()...),
			word(field+".statistic", gate.Statistic, append(statistics, "")...))
	}
	for i, constraint := range ptr.Deref(p.Search, Search{}).SubjectTo {
		field := fmt.Sprintf("%s.search.subjectTo[%d]", n.spec, i)
		errs = append(errs, word(field+".op", constraint.Op, Ops(SubjectLevel)...),
			word(field+".statistic", constraint.Statistic, append(statistics, "")...))
	}
	return cmp.Or(errs...)
}

// checkMetrics rejects metrics that no program can report.
func (n paths) checkMetrics(p *Plan) error {
	for i, metric := range p.Metrics {
		if strings.HasPrefix(metric.Name, record.ProcessPrefix) {
			return fmt.Errorf("%s.metrics[%d].name: invalid value %q: names that begin with %s are reserved for the process metrics of the runner",
				n.template, i, metric.Name, record.ProcessPrefix)
		}
	}
	if p.Workload.Output.Format == format.None && len(p.Metrics) > 0 {
		return fmt.Errorf("%s.metrics: %d metrics are named and output.format is None, so the program reports no metrics: remove them",
			n.template, len(p.Metrics))
	}
	return nil
}

func word[T ~string](field string, value T, allowed ...T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: invalid value %q: %s", field, value, suggest.Allowed(string(value), allowed))
}

// checkReferences rejects gates, cells and names with a missing or an ambiguous target.
func (n paths) checkReferences(e *Experiment) error {
	if i := repeated(e.Arms, func(arm record.Arm) string { return arm.Name }); i >= 0 {
		return fmt.Errorf("arms[%d].name %q is used twice: arm names must be unique", i, e.Arms[i].Name)
	}
	for i, arm := range e.Arms {
		if arm.Baseline && i > e.Baseline() {
			return fmt.Errorf("arms[%d].baseline is true and so is an earlier arm's: a run has at most one baseline, and the others are "+
				"compared with it", i)
		}
	}
	if i := repeated(e.Points, func(point record.Point) string { return point.Key }); i >= 0 {
		return fmt.Errorf("points[%d].key %q is used twice: point keys must be unique", i, e.Points[i].Key)
	}
	if i := repeated(e.Plan.Gates, func(gate Gate) string { return gate.Name }); i >= 0 {
		return fmt.Errorf("%s.gates[%d].name %q is used twice: gate names must be unique", n.spec, i, e.Plan.Gates[i].Name)
	}
	for i, c := range e.Cells {
		if c.Point < 0 || c.Point >= len(e.Points) || c.Arm < 0 || c.Arm >= len(e.Arms) {
			return fmt.Errorf("cells[%d] is arm %d at point %d, and there are %d arms and %d points, counted from 0", i, c.Arm, c.Point, len(e.Arms),
				len(e.Points))
		}
	}
	if err := checkCells(e); err != nil {
		return err
	}
	for i, gate := range e.Plan.Gates {
		field, judged := fmt.Sprintf("%s.gates[%d]", n.spec, i), e.Candidates()
		if gate.Op == Completes {
			judged = e.ArmNames()
		}
		if gate.Op.Timed() && e.Metric(gate.Metric) == nil {
			return fmt.Errorf("%s.metric is %q and the template has no such metric: a gate needs one", field, gate.Metric)
		}
		if gate.Candidate != "" && !slices.Contains(judged, gate.Candidate) {
			return fmt.Errorf("%s.candidate: invalid value %q: %s", field, gate.Candidate, suggest.Allowed(gate.Candidate, judged))
		}
		if !slices.ContainsFunc(e.Points, func(point record.Point) bool { return Matches(gate.At, point.Parameters) }) {
			return fmt.Errorf("%s.at is %v and selects no point: the gate would have no effect", field, gate.At)
		}
	}
	var errs []error
	needs := func(what, field, metric string) {
		if e.Metric(metric) == nil {
			errs = append(errs, fmt.Errorf("%s.%s is %q and the template has no such metric: a %s needs one", n.spec, field, metric, what))
		}
	}
	for i, prediction := range e.Plan.Predictions {
		needs("prediction", fmt.Sprintf("predictions[%d].metric", i), prediction.Metric)
	}
	if search := e.Plan.Search; search != nil {
		needs("search", "search.maximize", search.Maximize)
		for i, constraint := range search.SubjectTo {
			needs("constraint", fmt.Sprintf("search.subjectTo[%d].metric", i), constraint.Metric)
		}
	}
	return cmp.Or(errs...)
}

// checkCells requires one cell for every arm and point, or for each build of the arm.
func checkCells(e *Experiment) error {
	if i := repeated(e.Cells, func(c record.Cell) string { return fmt.Sprintf("%d/%d/%s", c.Point, c.Arm, c.Build) }); i >= 0 {
		c := e.Cells[i]
		if c.Build != "" {
			return fmt.Errorf("cells[%d] is build %q of arm %d at point %d, which another one is already", i, c.Build, c.Arm, c.Point)
		}
		return fmt.Errorf("cells[%d] is arm %d at point %d, which another one is already", i, c.Arm, c.Point)
	}
	// No cell is repeated, so an equal count means that the set is complete.
	builds, wanted := make([]map[string]bool, len(e.Arms)), 0
	for i, c := range e.Cells {
		if builds[c.Arm] == nil {
			builds[c.Arm] = map[string]bool{}
		}
		if builds[c.Arm][c.Build] = true; builds[c.Arm][""] && len(builds[c.Arm]) > 1 {
			return fmt.Errorf("cells[%d] is of arm %d, which has cells with and without a build: write the build of each", i, c.Arm)
		}
	}
	for _, of := range builds {
		wanted += max(1, len(of)) * len(e.Points)
	}
	if len(e.Cells) != wanted {
		return fmt.Errorf("cells has %d and %d points of %d arms have %d: write one for every arm, or each of its builds, at every point",
			len(e.Cells), len(e.Points), len(e.Arms), wanted)
	}
	return nil
}

// repeated returns the index of the first element with the name of an earlier one; -1 without one.
func repeated[T any](of []T, name func(T) string) int {
	seen := map[string]bool{}
	for i, one := range of {
		if seen[name(one)] {
			return i
		}
		seen[name(one)] = true
	}
	return -1
}

// checkNumbers rejects numbers out of range. A plan derived from a spec has none.
func (n paths) checkNumbers(p *Plan) error {
	var errs []error
	below1 := math.Nextafter(1, 0)
	number := func(field string, value, low, high float64) {
		if value >= low && value <= high {
			return
		}
		to := fmt.Sprintf("to %g", high)
		if high == below1 {
			to = "to below 1"
		}
		errs = append(errs, fmt.Errorf("%s.%s: invalid value %g: allowed are numbers from %g %s", n.spec, field, value, low, to))
	}
	number("design.confidence", p.Design.Confidence, 0.5, below1)
	number("design.gateConfidence", p.Design.GateConfidence, p.Design.Confidence, below1)
	number("design.rareSlowdown", p.Design.RareSlowdown, 0, maxRareSlowdown)
	number("design.blockCorrelation", p.Design.BlockCorrelation, 0, maxCorrelation)
	if p.Design.Stop != nil {
		number("design.stop.relativeHalfWidth", p.Design.Stop.RelativeHalfWidth, math.SmallestNonzeroFloat64, math.MaxFloat64)
	}
	for i, prediction := range p.Predictions {
		number(fmt.Sprintf("predictions[%d].ratio", i), prediction.Ratio, math.SmallestNonzeroFloat64, math.MaxFloat64)
	}
	if p.Design.Stop != nil && p.Design.Blocks.Min < minStopBlocks {
		errs = append(errs, fmt.Errorf("%s.design.blocks.min: invalid value %d: a stopping rule (%s.design.stop) needs "+
			"at least %d blocks to take a first width from", n.spec, p.Design.Blocks.Min, n.spec, minStopBlocks))
	}
	bound := func(field string, c Condition) {
		least, most, has := c.Op.bounds()
		switch {
		case !has:
			return
		case c.Bound == nil:
			errs = append(errs, fmt.Errorf("%s.%s is missing: %s compares with one", n.spec, field, c.Op))
			return
		}
		number(field, *c.Bound, least, most)
	}
	for i, gate := range p.Gates {
		bound(fmt.Sprintf("gates[%d].bound", i), gate.Condition)
	}
	for i, constraint := range ptr.Deref(p.Search, Search{}).SubjectTo {
		bound(fmt.Sprintf("search.subjectTo[%d].bound", i), constraint)
	}
	return cmp.Or(errs...)
}
