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

// What keeps a gate from a decision is about two arms, and who follows a figure through many runs compares arms that no gate compares: the
// gates of a schedule are on one arm, and a run need not have any. So the rules for gates are asked here of all arms and figures, each in
// the way that stands beside it in the list of caps. Those that look at a decision have none to look at: what remains of them is whether a
// figure moves with the trials that are left out, which package contrast asks.

// mostDoubts bounds what is kept of them: whoever reads an analysis counts how large it is.
const mostDoubts = 2000

// figure is what two arms are compared in, at a point.
type figure struct {
	point     int
	metric    string
	statistic experiment.Statistic
}

// doubts collects them.
type doubts struct {
	// d is the data with a gate on the figures for all arms, and figures are those, in the order of the points.
	d       *estimate.Data
	figures []figure
	// metrics are theirs, by point.
	metrics  map[int][]string
	controls []analysis.ControlResult
	out      []analysis.Doubt
}

// Doubts are what keeps the comparisons of any two arms from a decision, in the figures that are ratios of blocks, whatever gates the run
// has. Fewer blocks than asked for are no such thing: an estimate has its error.
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
	if len(found.figures) == 0 {
		return nil
	}
	found.controls = judgeControls(&asked, parity)
	for _, rule := range caps {
		rule.without(&found, rule.reason)
	}
	ofArms(func(d *estimate.Data, arm int) string { return changed(d, arm, false) })(&found, analysis.DoubtChanged)
	found.ofTimeouts()
	// Who names one names the first: what is of the whole run, then what is of one arm.
	slices.SortStableFunc(found.out, func(a, b analysis.Doubt) int { return cmp.Compare(len(a.Arms), len(b.Arms)) })
	if len(found.out) > mostDoubts {
		return []analysis.Doubt{{Reason: analysis.DoubtTooMany, Detail: fmt.Sprintf("%d comparisons of arms are doubted, the first: %s",
			len(found.out), found.out[0].Detail)}}
	}
	return found.out
}

// add keeps a finding, if there is one, and what it is of.
func (f *doubts) add(reason analysis.CapReason, detail string, of analysis.Doubt) {
	if detail != "" {
		of.Reason, of.Detail = reason, detail
		f.out = append(f.out, of)
	}
}

// unasked is of a rule that need not be asked here, because of what it says.
func unasked(string) func(*doubts, analysis.CapReason) { return func(*doubts, analysis.CapReason) {} }

// ofRun asks a rule about all that was measured.
func ofRun(rule func(d *estimate.Data) string) func(*doubts, analysis.CapReason) {
	return func(f *doubts, as analysis.CapReason) { f.add(as, rule(f.d), analysis.Doubt{}) }
}

// ofArms asks a rule about each arm, whatever it is compared with.
func ofArms(rule func(d *estimate.Data, arm int) string) func(*doubts, analysis.CapReason) {
	return func(f *doubts, as analysis.CapReason) {
		for arm := range f.d.Exp.Arms {
			f.add(as, rule(f.d, arm), analysis.Doubt{Arms: []string{f.d.Exp.Arms[arm].Name}})
		}
	}
}

// eachPair visits any two arms beside each other, as one of several comparisons that share the levels: a pair with the baseline is compared
// as if a gate did so, and those without it share one level.
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

// eachPoint visits the points that figures are of.
func (f *doubts) eachPoint(visit func(point int, key string)) {
	for i, of := range f.figures {
		if i == 0 || f.figures[i-1].point != of.point {
			visit(of.point, f.d.Exp.Points[of.point].Key)
		}
	}
}

// ofPairs is a rule about two arms at a point: those that a gate compares, or any two.
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

func (f *doubts) ofMadeUnlike(as analysis.CapReason) {
	var arms []int
	for arm := range f.d.Exp.Arms {
		arms = append(arms, arm)
	}
	// Where no arm's differ from any other's, no pair's do. There may be hundreds of pairs.
	differ := slices.DeleteFunc(slices.Clone(f.figures), func(of figure) bool {
		return madeDifferently(f.d, of.metric, of.statistic, of.point, arms...) == ""
	})
	f.eachPair(func(mine, theirs int, names []string, _ float64) {
		for _, of := range differ {
			f.add(as, madeDifferently(f.d, of.metric, of.statistic, of.point, mine, theirs), f.of(of, names...))
		}
	})
}

// of is where a finding about a figure of such arms is.
func (f *doubts) of(figure figure, arms ...string) analysis.Doubt {
	return analysis.Doubt{Arms: arms, Point: f.d.Exp.Points[figure.point].Key, Metric: figure.metric, Statistic: figure.statistic}
}

// ofControls keeps the controls in which something moved, or of which there is too little: that of a phase is of one arm.
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

// ofCompleting is about arms that do not complete, whichever they are: a word of its own. Of the null arm it is about the baseline.
func (f *doubts) ofCompleting(analysis.CapReason) {
	for _, gate := range judgeCompletes(f.d) {
		arm := f.d.Exp.Arms[selection.ArmIndex(f.d.Exp, gate.Candidate)]
		of := analysis.Doubt{Point: gate.Point, Arms: []string{arm.Name}}
		if arm.Null { // It is the baseline.
			of.Arms = []string{f.d.Exp.Arms[f.d.Exp.Baseline()].Name}
		}
		if gate.Outcome != experiment.VerdictGo {
			f.add(analysis.DoubtIncomplete, fmt.Sprintf("arm %s: gate %q is %s: %s", arm.Name, gate.Gate, gate.Outcome, gate.Message), of)
		}
	}
}

// ofTimeouts is about figures that are bounds.
func (f *doubts) ofTimeouts() {
	for arm := range f.d.Exp.Arms {
		name := f.d.Exp.Arms[arm].Name
		for _, of := range f.figures {
			q := estimate.Quantity{Cell: selection.At(of.point, arm), Metric: of.metric, Statistic: of.statistic}
			if f.d.OpenEnds(q) != (estimate.Open{}) {
				f.add(analysis.DoubtTimedOut, fmt.Sprintf("trials of arm %s timed out, of which only a bound is known", name), f.of(of, name))
			}
		}
	}
}

// ofMetrics asks a rule of each metric at a point. What it says of all of them is kept once.
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
