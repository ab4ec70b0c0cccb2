package judge

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// The caps of gates concern two arms, and users who follow a figure through many runs compare arms that no gate compares: the gates of
// a schedule are on one arm, and a run need not have any. Doubts apply the rules for gates to all arms and figures, each by its
// function "without" in the list of caps. Rules about a decision have nothing to check here, except whether excluded trials move a
// figure, which package contrast checks.

// mostDoubts bounds the number of doubts, because readers limit the size of an analysis.
const mostDoubts = 2000

// figure is a compared quantity at a point.
type figure struct {
	point     int
	metric    string
	statistic experiment.Statistic
}

// doubts collects findings.
type doubts struct {
	// d is the data with a gate on every figure for all arms. figures are these, in the order of the points.
	d       *estimate.Data
	figures []figure
	// metrics are the metrics of the figures, by point.
	metrics  map[int][]string
	controls []analysis.ControlResult
	out      []analysis.Doubt
}

// Doubts returns the reasons against comparing any two arms in figures that are ratios of blocks, independent of the run's gates. Too
// few blocks are not among them, because an estimate has its error.
func Doubts(d *estimate.Data, parity *selection.Parity, ratios []analysis.RatioResult) []analysis.Doubt {
	exp, asked := *d.Exp, *d
	asked.Exp = &exp
	found := doubts{d: &asked, metrics: map[int][]string{}}
	exp.Plan.Gates = slices.DeleteFunc(slices.Clone(exp.Plan.Gates), func(g experiment.Gate) bool { return g.Op != experiment.Completes })
	known := map[figure]bool{}
	for i := range ratios {
		of := figure{pointOf(d, &analysis.GateResult{Point: ratios[i].Point}), ratios[i].Metric, ratios[i].Statistic}
		if len(ratios[i].PerBlock) == 0 || known[of] {
			continue
		}
		known[of], found.figures = true, append(found.figures, of)
		if metrics := found.metrics[of.point]; !slices.Contains(metrics, of.metric) {
			found.metrics[of.point] = append(metrics, of.metric)
		}
		everywhere := figure{estimate.EveryPoint, of.metric, of.statistic}
		if known[everywhere] {
			continue
		}
		known[everywhere] = true // A gate is on all points.
		exp.Plan.Gates = append(exp.Plan.Gates, experiment.Gate{
			Name: of.metric, Severity: experiment.Blocking,
			Condition: experiment.Condition{Metric: of.metric, Statistic: of.statistic, Op: experiment.RatioAtMost, Bound: ptr.To(1.0)},
		})
	}
	found.ofReports()
	if len(found.figures) > 0 {
		found.controls = judgeControls(&asked, parity)
		for _, rule := range caps {
			rule.without(&found, rule.reason)
		}
		ofArms(func(d *estimate.Data, arm int) string { return changed(d, arm, false) })(&found, analysis.DoubtChanged)
		ofArms(ContradictsBaseline)(&found, analysis.DoubtOtherWorkload)
		found.ofTimeouts()
	}
	// A view that shows one doubt shows the first, so doubts about the whole run precede those about one arm.
	slices.SortStableFunc(found.out, func(a, b analysis.Doubt) int { return cmp.Compare(len(a.Arms), len(b.Arms)) })
	if len(found.out) > mostDoubts {
		return []analysis.Doubt{{Reason: analysis.DoubtTooMany, Detail: fmt.Sprintf("%d comparisons of arms are doubted, the first: %s",
			len(found.out), found.out[0].Detail)}}
	}
	return found.out
}

// add appends a finding with its arms and figure, unless detail is empty.
func (f *doubts) add(reason analysis.CapReason, detail string, of analysis.Doubt) {
	if detail != "" {
		of.Reason, of.Detail = reason, detail
		f.out = append(f.out, of)
	}
}

// unasked marks a rule that does not apply without gates; the argument is the reason.
func unasked(string) func(*doubts, analysis.CapReason) { return func(*doubts, analysis.CapReason) {} }

// ofRun applies a rule to the whole run.
func ofRun(rule func(d *estimate.Data) string) func(*doubts, analysis.CapReason) {
	return func(f *doubts, as analysis.CapReason) { f.add(as, rule(f.d), analysis.Doubt{}) }
}

// ofArms applies a rule to each arm, independent of the arm it is compared with.
func ofArms(rule func(d *estimate.Data, arm int) string) func(*doubts, analysis.CapReason) {
	return func(f *doubts, as analysis.CapReason) {
		for arm := range f.d.Exp.Arms {
			f.add(as, rule(f.d, arm), analysis.Doubt{Arms: []string{f.d.Exp.Arms[arm].Name}})
		}
	}
}

// eachPair visits all pairs of arms. Comparisons is the number of comparisons that share the level: 1 for a pair with the baseline, as
// for a gate, and the number of the other pairs for those.
func (f *doubts) eachPair(visit func(mine, theirs int, names []string, comparisons float64)) {
	arms, baseline := f.d.Exp.Arms, f.d.Exp.Baseline()
	others := float64(len(arms) - 1)
	for mine := range arms {
		for theirs := range mine {
			comparisons := max(1, others*(others-1)/2)
			if mine == baseline || theirs == baseline {
				comparisons = 1
			}
			visit(mine, theirs, []string{arms[mine].Name, arms[theirs].Name}, comparisons)
		}
	}
}

// eachPoint visits the points of the figures.
func (f *doubts) eachPoint(visit func(point int, key string)) {
	for i, of := range f.figures {
		if i == 0 || f.figures[i-1].point != of.point {
			visit(of.point, f.d.Exp.Points[of.point].Key)
		}
	}
}

// ofPairs is a rule about two arms at a point, for the pair of a gate and for any pair.
func ofPairs(reason analysis.CapReason, rule func(d *estimate.Data, point, mine, theirs int, comparisons float64) string) doubt {
	compared := func(d *estimate.Data, _ *judgement, gate *analysis.GateResult) string {
		if !gate.Op.Relative() {
			return ""
		}
		return rule(d, pointOf(d, gate), selection.ArmIndex(d.Exp, gate.Candidate), d.Exp.Baseline(), 1)
	}
	return doubt{reason, compared, always, func(f *doubts, as analysis.CapReason) {
		f.eachPair(func(mine, theirs int, names []string, comparisons float64) {
			f.eachPoint(func(point int, key string) {
				f.add(as, rule(f.d, point, mine, theirs, comparisons), analysis.Doubt{Arms: names, Point: key})
			})
		})
	}}
}

func (f *doubts) ofLosses(as analysis.CapReason) {
	f.eachPair(func(mine, theirs int, names []string, comparisons float64) {
		f.eachPoint(func(point int, key string) {
			f.ofMetrics(as, analysis.Doubt{Arms: names, Point: key}, point, func(metric string) string {
				return lostDifferently(f.d, metric, point, mine, theirs, comparisons)
			})
		})
	})
}

func (f *doubts) ofOtherComposition(as analysis.CapReason) {
	var arms []int
	for arm := range f.d.Exp.Arms {
		arms = append(arms, arm)
	}
	// If no arm differs from another, no pair does. There may be hundreds of pairs.
	differ := slices.DeleteFunc(slices.Clone(f.figures), func(of figure) bool {
		return madeDifferently(f.d, of.metric, of.statistic, of.point, arms...) == ""
	})
	f.eachPair(func(mine, theirs int, names []string, _ float64) {
		for _, of := range differ {
			f.add(as, madeDifferently(f.d, of.metric, of.statistic, of.point, mine, theirs), f.of(of, names...))
		}
	})
}

// ofLingering adds pairs of arms whose trials change differently inside their visits.
func (f *doubts) ofLingering(as analysis.CapReason) {
	f.eachPair(func(mine, theirs int, names []string, comparisons float64) {
		for _, of := range f.figures {
			a := estimate.Quantity{Cell: selection.At(of.point, mine), Metric: of.metric, Statistic: of.statistic}
			b := a
			b.Arm = theirs
			if _, significant := f.d.Lingering(a, b, comparisons*float64(len(f.figures))); significant {
				f.add(as, fmt.Sprintf("the trials of %s and %s change differently inside their visits, so an effect of the arm before lasts longer "+
					"than one trial", names[0], names[1]), f.of(of, names...))
			}
		}
	})
}

// of locates a finding about a figure of such arms.
func (f *doubts) of(figure figure, arms ...string) analysis.Doubt {
	return analysis.Doubt{Arms: arms, Point: f.d.Exp.Points[figure.point].Key, Metric: figure.metric, Statistic: figure.statistic}
}

// ofControls adds controls that moved or have too little data. A control phase concerns one arm.
func ofControls(is func(*analysis.ControlResult) bool) func(*doubts, analysis.CapReason) {
	return func(f *doubts, as analysis.CapReason) {
		for i := range f.controls {
			c := &f.controls[i]
			of := analysis.Doubt{Point: c.Point, Metric: c.Metric, Statistic: c.Statistic}
			if c.Phase != "" {
				of.Arms = []string{c.Arm}
			}
			if is(c) {
				f.add(as, c.Message, of)
			}
		}
	}
}

func (f *doubts) ofPartlyRead(as analysis.CapReason) {
	for _, arm := range f.d.Exp.Arms {
		for _, of := range f.figures {
			where := f.of(of, arm.Name)
			alone := analysis.GateResult{Op: experiment.AtMost, Candidate: arm.Name, Point: where.Point, Metric: of.metric}
			f.add(as, partlyRead(f.d, nil, &alone), where)
		}
	}
}

// ofCompleting adds arms that do not complete, with a separate reason. A finding on the null arm names the baseline.
func (f *doubts) ofCompleting(analysis.CapReason) {
	for _, gate := range judgeCompletes(f.d) {
		arm := f.d.Exp.Arms[selection.ArmIndex(f.d.Exp, gate.Candidate)]
		of := analysis.Doubt{Point: gate.Point, Arms: []string{arm.Name}}
		if experiment.RoleOf(arm).RepeatsBaseline() {
			of.Arms = []string{f.d.Exp.Arms[f.d.Exp.Baseline()].Name}
		}
		if gate.Outcome != experiment.VerdictGo {
			f.add(analysis.DoubtIncomplete, fmt.Sprintf("arm %s: gate %q is %s: %s", arm.Name, gate.Gate, gate.Outcome, gate.Message), of)
		}
	}
}

// ofReports adds the metrics in which the results of an arm are of another thing than the baseline's. They have no ratio.
func (f *doubts) ofReports() {
	baseline := f.d.Exp.Baseline()
	for point := range f.d.Exp.Points {
		for arm := range f.d.Exp.Arms {
			for _, metric := range f.d.Exp.Plan.Metrics {
				if baseline >= 0 {
					f.add(analysis.DoubtOtherThing, f.d.Chosen.Reports.Differ(f.d.Exp, point, arm, baseline, metric.Name), analysis.Doubt{
						Arms: []string{f.d.Exp.Arms[arm].Name}, Point: f.d.Exp.Points[point].Key, Metric: metric.Name,
					})
				}
			}
		}
	}
}

// ofTimeouts adds figures that timeouts censor, so that only a bound is known.
func (f *doubts) ofTimeouts() {
	for arm := range f.d.Exp.Arms {
		name := f.d.Exp.Arms[arm].Name
		for _, of := range f.figures {
			q := estimate.Quantity{Cell: selection.At(of.point, arm), Metric: of.metric, Statistic: of.statistic}
			if f.d.OpenEnds(q) != (estimate.Open{}) {
				f.add(analysis.DoubtTimedOut, fmt.Sprintf("trials of arm %s timed out, and only a bound of their result is known", name),
					f.of(of, name))
			}
		}
	}
}

// ofMetrics applies a rule to each metric at a point. A finding that is the same for all metrics is added once.
func (f *doubts) ofMetrics(reason analysis.CapReason, at analysis.Doubt, point int, rule func(metric string) string) {
	var details []string
	for _, metric := range f.metrics[point] {
		details = append(details, rule(metric))
	}
	if len(slices.Compact(slices.Clone(details))) == 1 {
		f.add(reason, details[0], at)
		return
	}
	for i, metric := range f.metrics[point] {
		at.Metric = metric
		f.add(reason, details[i], at)
	}
}
