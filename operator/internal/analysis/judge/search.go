package judge

import (
	"cmp"
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

// Searches judges every load that was tried, at the gates' confidence, and derives the result of the search. Search blocks and
// confirming blocks are never mixed.
func Searches(all *estimate.Data, parity *selection.Parity, waves []record.Wave) []analysis.SearchResult {
	exp, chosen := all.Exp, all.Chosen
	if exp.Plan.Search == nil {
		return nil
	}
	probing := estimate.New(exp, chosen, chosen.Only(record.Search))
	fresh := estimate.New(exp, chosen, chosen.Only(record.Confirm))
	planned := map[record.Purpose]map[selection.Cell]int{record.Screen: {}, record.Search: {}, record.Confirm: {}}
	chosen.EachPlanned(exp, waves, func(purpose record.Purpose, _ string, c selection.Cell) { planned[purpose][c]++ })
	completed := map[record.Purpose]map[selection.Cell]*selection.Completion{}
	for _, purpose := range []record.Purpose{record.Search, record.Confirm} {
		completed[purpose] = chosen.Completions(chosen.Only(purpose))
	}
	rules := exp.Search()
	var out []analysis.SearchResult
	for arm := range exp.Arms {
		name := exp.Arms[arm].Name
		result := analysis.SearchResult{Arm: name, Axis: exp.Plan.Search.Axis, Metric: exp.Plan.Search.Maximize, Levels: []search.Level{}}
		metric := exp.Metric(result.Metric)
		result.Statistic = metric.Statistic
		for point := range exp.Points {
			c := selection.At(point, arm)
			n := planned[record.Search][c]
			if n == 0 {
				continue
			}
			level := search.Level{Index: point, Load: rules.Loads[point], Probe: judgeLoad(probing, c, n, completed[record.Search][c])}
			if n := planned[record.Confirm][c]; n > 0 {
				found := judgeLoad(fresh, c, n, completed[record.Confirm][c])
				level.Fresh = &found
			}
			result.Levels = append(result.Levels, level)
		}
		answer(&result, all, rules, arm)
		if refused := cmp.Or(parity.Refused(name), changed(all, arm, false), ContradictsBaseline(all, arm)); refused != "" {
			result = analysis.SearchResult{Arm: name, Axis: result.Axis, Metric: result.Metric, Statistic: result.Statistic, Levels: result.Levels,
				Complete: result.Complete, Reason: "not judged: " + refused}
		}
		out = append(out, result)
	}
	return out
}

func answer(r *analysis.SearchResult, all *estimate.Data, rules search.Search, arm int) {
	found := rules.Conclude(r.Levels)
	load := func(index int) string {
		if index < 0 {
			return ""
		}
		return rules.Loads[index]
	}
	r.FeasibleMax, r.InfeasibleMin, r.FirstBreach = load(found.FeasibleMax), load(found.InfeasibleMin), load(found.FirstBreach)
	r.BindingConstraint, r.Confirmed, r.Complete, r.Reason = found.Binding, found.Confirmed, found.Complete, found.Reason
	if found.FeasibleMax < 0 {
		return
	}
	c := selection.At(found.FeasibleMax, arm)
	if metric := all.Exp.Metric(r.Metric); all.EnoughSamples(c, r.Metric, r.Statistic) {
		r.Value = all.Level(estimate.Quantity{Cell: c, Metric: r.Metric, Statistic: r.Statistic}).Estimate(metric.Unit)
	}
	if found.InfeasibleMin >= 0 {
		r.Interval = &analysis.LoadInterval{Low: r.FeasibleMax, High: r.InfeasibleMin}
	}
}

// judgeLoad compares one arm at one load with every constraint. A load that a program does not complete is not sustained. The rule is
// that of the implicit gate of every run, by which one failure is enough.
func judgeLoad(d *estimate.Data, c selection.Cell, planned int, completed *selection.Completion) search.Finding {
	out := search.Finding{Outcome: search.Feasible, Planned: planned, Blocks: len(d.Measured[c])}
	if completed != nil && completed.First != nil {
		out.Outcome, out.Breached = search.Failed, true
		out.Constraint = fmt.Sprintf("completing: trial %s %s", completed.First.Trial, completed.Why)
		return out
	}
	if completed != nil && completed.Unknown > 0 {
		out.Outcome, out.Constraint = search.Uncertain, fmt.Sprintf("completing: trial %s was %s", completed.Unseen, completed.How)
	}
	for _, constraint := range d.Exp.Plan.Search.SubjectTo {
		outcome, breached := judgeConstraint(d, c, constraint)
		out.Breached = out.Breached || breached
		// A missed constraint decides. Without one, the first undecided constraint is reported.
		if outcome == search.Infeasible || outcome == search.Uncertain && out.Outcome == search.Feasible {
			out.Outcome, out.Constraint = outcome, analysis.Asked(d.Exp, constraint)
		}
		if outcome == search.Infeasible {
			break
		}
	}
	return out
}

// judgeConstraint judges a load as a gate on it would be, with recomputation and caps. breached reports whether the estimate misses the
// bound.
func judgeConstraint(d *estimate.Data, c selection.Cell, constraint experiment.Condition) (outcome search.Outcome, breached bool) {
	gate := experiment.Gate{Condition: constraint, Severity: experiment.Blocking}
	judged := func(d *estimate.Data) analysis.GateResult {
		result := analysis.GateResult{
			Candidate: d.Exp.Arms[c.Arm].Name, Point: d.Exp.Points[c.Point].Key, Op: gate.Op, Severity: gate.Severity, Metric: gate.Metric,
			Statistic: gate.Statistic,
		}
		judgeTiming(d, &selection.Parity{}, gate, c.Point, &result) // The caller rejects the whole result if outputs differ.
		return result
	}
	result := judged(d)
	if d.Rejected[c] > 0 {
		again := judged(d.Everything)
		result.WithRejected = recompute(d, d.Everything, &result, &again)
	}
	if d.Everywhere != nil {
		again := judged(d.Everywhere)
		result.Everywhere = recompute(d, d.Everywhere, &result, &again)
	}
	alone := &judgement{gates: []analysis.GateResult{result}}
	capGates(d, alone)
	if estimate := result.Estimate; estimate != nil && estimate.Low != nil {
		breached = constraint.Region().Side(estimate.Value, estimate.Value) != experiment.Inside
	}
	switch alone.gates[0].Outcome {
	case experiment.VerdictGo:
		return search.Feasible, breached
	case experiment.VerdictNoGo:
		return search.Infeasible, breached
	default:
		return search.Uncertain, breached
	}
}
