package analysis

import (
	"cmp"
	"fmt"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

// SearchResult is the answer of the search for one arm. Loads are written as the parameter's values.
type SearchResult struct {
	Arm string `json:"arm"`
	// Axis is the load, and Metric with Statistic what is maximized.
	Axis      string               `json:"axis"`
	Metric    string               `json:"metric"`
	Statistic experiment.Statistic `json:"statistic"`
	// FeasibleMax is the highest load shown to meet every constraint below the first that was shown to break one, which is
	// InfeasibleMin. FirstBreach is the lowest load at which an estimate missed a bound, shown or not.
	FeasibleMax       string `json:"feasibleMax,omitempty"`
	InfeasibleMin     string `json:"infeasibleMin,omitempty"`
	FirstBreach       string `json:"firstBreach,omitempty"`
	BindingConstraint string `json:"bindingConstraint,omitempty"`
	// Interval holds the highest feasible load; absent while either end is.
	Interval *LoadInterval `json:"interval,omitempty"`
	// Value is the metric at FeasibleMax, over all its blocks.
	Value *Estimate `json:"value,omitempty"`
	// Confirmed reports whether fresh blocks repeated both ends, and Complete whether nothing is left to try.
	Confirmed bool   `json:"confirmed"`
	Complete  bool   `json:"complete"`
	Reason    string `json:"reason"`
	// Levels are the loads tried, from the lowest.
	Levels []search.Level `json:"levels"`
}

// LoadInterval is a range of loads.
type LoadInterval struct {
	Low  string `json:"low"`
	High string `json:"high"`
}

// searchResults judges every load that was tried, at the gates' confidence, and draws the answer from them. Blocks that
// searched and blocks that confirm are never mixed.
func searchResults(all *data, parity *parityReport, waves []record.Wave) []SearchResult {
	exp, chosen := all.exp, all.chosen
	if exp.Plan.Search == nil {
		return nil
	}
	probing := newData(exp, chosen, chosen.only(record.Search))
	fresh := newData(exp, chosen, chosen.only(record.Confirm))
	planned := map[record.Purpose]map[cell]int{record.Screen: {}, record.Search: {}, record.Confirm: {}}
	chosen.eachPlanned(exp, waves, func(purpose record.Purpose, _ string, c cell) { planned[purpose][c]++ })
	completed := map[record.Purpose]map[cell]*completion{}
	for _, purpose := range []record.Purpose{record.Search, record.Confirm} {
		completed[purpose] = chosen.completions(chosen.only(purpose))
	}
	rules := exp.Search()
	var out []SearchResult
	for arm := range exp.Arms {
		name := exp.Arms[arm].Name
		result := SearchResult{Arm: name, Axis: exp.Plan.Search.Axis, Metric: exp.Plan.Search.Maximize, Levels: []search.Level{}}
		metric := exp.Metric(result.Metric)
		result.Statistic = metric.Statistic
		for point := range exp.Points {
			c := cell{point, arm}
			n := planned[record.Search][c]
			if n == 0 {
				continue
			}
			level := search.Level{Index: point, Load: rules.Loads[point], Probe: probing.judgeLoad(c, n, completed[record.Search][c])}
			if n := planned[record.Confirm][c]; n > 0 {
				found := fresh.judgeLoad(c, n, completed[record.Confirm][c])
				level.Fresh = &found
			}
			result.Levels = append(result.Levels, level)
		}
		result.answer(all, rules, arm)
		if refused := cmp.Or(parity.refused(name), all.changed(arm, false), all.contradictsBaseline(arm)); refused != "" {
			result = SearchResult{Arm: name, Axis: result.Axis, Metric: result.Metric, Statistic: result.Statistic, Levels: result.Levels,
				Complete: result.Complete, Reason: "not judged: " + refused}
		}
		out = append(out, result)
	}
	return out
}

func (r *SearchResult) answer(all *data, rules search.Search, arm int) {
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
	c := cell{found.FeasibleMax, arm}
	if metric := all.exp.Metric(r.Metric); all.enoughSamples(c, r.Metric, r.Statistic) {
		r.Value = all.level(quantityOf{c, r.Metric, r.Statistic}).estimate(metric.Unit)
	}
	if found.InfeasibleMin >= 0 {
		r.Interval = &LoadInterval{r.FeasibleMax, r.InfeasibleMin}
	}
}

// judgeLoad holds one arm at one load against every constraint. What a program does not complete at a load, it does not sustain: the
// rule is that of the gate that every run has, by which one failure is enough.
func (d *data) judgeLoad(c cell, planned int, completed *completion) search.Finding {
	out := search.Finding{Outcome: search.Feasible, Planned: planned, Blocks: len(d.measured[c])}
	if completed != nil && completed.first != nil {
		out.Outcome, out.Breached = search.Failed, true
		out.Constraint = fmt.Sprintf("completing: trial %s %s", completed.first.Trial, completed.why)
		return out
	}
	if completed != nil && completed.unknown > 0 {
		out.Outcome, out.Constraint = search.Uncertain, fmt.Sprintf("completing: trial %s was %s", completed.unended, lostUnended)
	}
	for _, constraint := range d.exp.Plan.Search.SubjectTo {
		outcome, breached := d.judgeConstraintTwice(c, constraint)
		out.Breached = out.Breached || breached
		// One that is missed decides; of the others, the first that is undecided is worth naming.
		if outcome == search.Infeasible || outcome == search.Uncertain && out.Outcome == search.Feasible {
			out.Outcome, out.Constraint = outcome, Asked(d.exp, constraint)
		}
		if outcome == search.Infeasible {
			break
		}
	}
	return out
}

// judgeConstraint compares the whole interval with the bound, as a gate does; breached reports whether the estimate misses it.
func (d *data) judgeConstraint(c cell, constraint experiment.Condition) (outcome search.Outcome, breached bool) {
	metric := d.exp.Metric(constraint.Metric)
	if constraint.RewardsWorse(metric) != "" {
		return search.Uncertain, false
	}
	bound, statistic := *constraint.Bound, constraint.Statistic
	found := d.level(quantityOf{c, constraint.Metric, statistic})
	if !found.hasInterval() || !d.enoughSamples(c, constraint.Metric, statistic) {
		return search.Uncertain, false
	}
	found = found.at(d.gateConfidence)
	holds, fails, breached := atLeast(bound, found.high), below(bound, found.low), below(bound, found.value)
	if constraint.Op == experiment.AtLeast {
		holds, fails, breached = atLeast(found.low, bound), below(found.high, bound), below(found.value, bound)
	}
	switch {
	case holds:
		return search.Feasible, breached
	case fails:
		return search.Infeasible, breached
	default:
		return search.Uncertain, breached
	}
}
