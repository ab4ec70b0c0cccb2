package judge

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

// What keeps a gate from a decision is about two arms, and who follows a figure through many runs compares arms that no gate compares: the
// gates of a schedule are on one arm, and a run need not have any. So the rules for gates are asked here of all arms and figures. Those
// that look at a decision have none to look at: what remains of them is whether a figure moves with the trials that are left out, which
// package contrast asks.

// mostDoubts bounds what is kept of them: whoever reads an analysis counts how large it is.
const mostDoubts = 2000

// figure is what two arms are compared in.
type figure struct {
	point     int
	metric    string
	statistic experiment.Statistic
}

// doubts collects them.
type doubts struct {
	// d is the data with a gate on each figure for all arms, and figures are those, in the order of the points.
	d       *estimate.Data
	figures []figure
	out     []analysis.Doubt
}

// Doubts are what keeps the comparisons of any two arms from a decision, in the figures that are ratios of blocks, whatever gates the run
// has. Fewer blocks than asked for are no such thing: an estimate has its error.
func Doubts(d *estimate.Data, parity *selection.Parity, ratios []analysis.RatioResult) []analysis.Doubt {
	exp, asked := *d.Exp, *d
	asked.Exp = &exp
	found := doubts{d: &asked}
	exp.Plan.Gates = slices.DeleteFunc(slices.Clone(exp.Plan.Gates), func(g experiment.Gate) bool { return g.Op != experiment.Completes })
	for i := range ratios {
		of := figure{pointOf(d, &analysis.GateResult{Point: ratios[i].Point}), ratios[i].Metric, ratios[i].Statistic}
		if len(ratios[i].PerBlock) == 0 || slices.Contains(found.figures, of) {
			continue
		}
		found.figures = append(found.figures, of)
		exp.Plan.Gates = append(exp.Plan.Gates, experiment.Gate{
			Name: of.metric, Severity: experiment.Blocking,
			Condition: experiment.Condition{Metric: of.metric, Statistic: of.statistic, Op: experiment.RatioAtMost, Bound: ptr.To(1.0)},
		})
	}
	if len(found.figures) == 0 {
		return nil
	}
	found.ofRun()
	found.ofControls(parity)
	for arm := range exp.Arms {
		found.ofArm(arm)
	}
	// Each pair of arms is set beside another as if a gate compared it with the baseline; those without it share one level.
	others := float64(len(exp.Arms) - 1)
	for mine := range exp.Arms {
		for theirs := range mine {
			comparisons := max(1, others*(others-1)/2)
			if baseline := exp.Baseline(); mine == baseline || theirs == baseline {
				comparisons = 1
			}
			found.ofPair(mine, theirs, comparisons)
		}
	}
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

// ofRun are the doubts about all that was measured.
func (f *doubts) ofRun() {
	f.add(analysis.CapApart, f.d.Chosen.Apart, analysis.Doubt{})
	f.add(analysis.CapEvidenceMissing, missingWave(f.d, nil, nil), analysis.Doubt{})
	f.add(analysis.CapCopied, f.d.Chosen.Copied, analysis.Doubt{})
	f.add(analysis.CapSequential, sequentialOrder(f.d, nil, nil), analysis.Doubt{})
}

// ofControls are the comparisons in which something moved, or of which there is too little: those of a phase are of one arm.
func (f *doubts) ofControls(parity *selection.Parity) {
	for _, c := range judgeControls(f.d, parity) {
		of := analysis.Doubt{Point: c.Point, Metric: c.Metric, Statistic: c.Statistic}
		if c.Phase != "" {
			of.Arms = []string{c.Arm}
		}
		if c.Moved {
			f.add(analysis.CapControlMoved, c.Message, of)
		}
		if c.Missing {
			f.add(analysis.CapControlMissing, c.Message, of)
		}
	}
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

// ofArm are the doubts about one arm, whatever it is compared with.
func (f *doubts) ofArm(arm int) {
	name := f.d.Exp.Arms[arm].Name
	f.add(analysis.DoubtChanged, changed(f.d, arm, false), analysis.Doubt{Arms: []string{name}})
	f.add(analysis.CapOtherWorkload, ContradictsBaseline(f.d, arm), analysis.Doubt{Arms: []string{name}})
	for _, of := range f.figures {
		point := f.d.Exp.Points[of.point].Key
		where := analysis.Doubt{Arms: []string{name}, Point: point, Metric: of.metric, Statistic: of.statistic}
		alone := analysis.GateResult{Op: experiment.AtMost, Candidate: name, Point: point, Metric: of.metric}
		f.add(analysis.CapPartlyRead, partlyRead(f.d, nil, &alone), where)
		q := estimate.Quantity{Cell: selection.At(of.point, arm), Metric: of.metric, Statistic: of.statistic}
		if f.d.OpenEnds(q) != (estimate.Open{}) {
			f.add(analysis.DoubtTimedOut, fmt.Sprintf("trials of arm %s timed out, of which only a bound is known", name), where)
		}
	}
}

// ofPair are the doubts about two arms beside each other, as one of several comparisons that share the levels.
func (f *doubts) ofPair(mine, theirs int, comparisons float64) {
	arms := []string{f.d.Exp.Arms[mine].Name, f.d.Exp.Arms[theirs].Name}
	for i, of := range f.figures {
		at := analysis.Doubt{Arms: arms, Point: f.d.Exp.Points[of.point].Key}
		if i == 0 || f.figures[i-1].point != of.point {
			f.add(analysis.CapOnePlace, placed(f.d, of.point, mine, theirs, comparisons), at)
			f.add(analysis.CapMeasuredUnlike, unlike(f.d, of.point, mine, theirs, comparisons), at)
			f.ofMetrics(analysis.CapLostApart, at, of.point, func(metric string) string {
				return lostDifferently(f.d, metric, of.point, mine, theirs, comparisons)
			})
		}
		at.Metric, at.Statistic = of.metric, of.statistic
		f.add(analysis.CapMadeUnlike, madeDifferently(f.d, of.metric, of.statistic, of.point, mine, theirs), at)
	}
}

// ofMetrics asks a rule of each metric at a point. What it says of all of them is kept once.
func (f *doubts) ofMetrics(reason analysis.CapReason, at analysis.Doubt, point int, rule func(metric string) string) {
	var metrics, details []string
	for _, of := range f.figures {
		if of.point == point && !slices.Contains(metrics, of.metric) {
			metrics, details = append(metrics, of.metric), append(details, rule(of.metric))
		}
	}
	if len(slices.Compact(slices.Clone(details))) == 1 {
		f.add(reason, details[0], at)
		return
	}
	for i, metric := range metrics {
		at.Metric = metric
		f.add(reason, details[i], at)
	}
}
