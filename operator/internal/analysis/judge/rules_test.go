package judge

import (
	order "cmp"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
)

// known returns data for the rules: the baseline old and the candidates new and newer at two points.
func known() *estimate.Data {
	exp := &experiment.Experiment{
		Points: []record.Point{{Key: "size=1"}, {Key: "size=2"}},
		Arms:   []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}, {Name: "newer"}},
	}
	d := estimate.New(exp, &selection.Selection{}, nil)
	d.GateConfidence = 0.95
	return d
}

// addLosses sets the losses of a cell.
func addLosses(d *estimate.Data, c selection.Cell, lost selection.Balance) {
	cells := map[selection.Cell]selection.Balance{c: lost}
	for other, balance := range d.Chosen.Lost.Cells {
		if other != c {
			cells[other] = balance
		}
	}
	d.Chosen.Lost = selection.NewLost(cells)
}

// onePoint leaves of it the first point, and ofSearch makes it a search.
func onePoint(d *estimate.Data) { d.Exp.Points = d.Exp.Points[:1] }
func ofSearch(d *estimate.Data) { d.Exp.Plan.Search = &experiment.Search{} }

// says reports a text without the wanted substring; an empty substring is not checked.
func says(t *testing.T, got, want string) {
	t.Helper()
	if (got == "") != (want == "") || !strings.Contains(got, want) {
		t.Errorf("says %q, want %q", got, want)
	}
}

func TestPrediction_MissedByFactorTwoOrDirection(t *testing.T) {
	measured := func(low, value, high float64) *analysis.Estimate {
		return &analysis.Estimate{Value: value, Ratio: true, Low: ptr.To(low), High: ptr.To(high)}
	}
	for name, c := range map[string]struct {
		predicted float64
		measured  *analysis.Estimate
		missed    bool
		says      string
	}{
		"an unmeasured prediction is not missed":        {2, nil, false, "not measured"},
		"half as much more":                             {2, measured(2.9, 3, 3.1), false, "within a factor of two"},
		"exactly twice":                                 {2, measured(3.9, 4, 4.1), false, "within a factor of two"},
		"exactly half":                                  {4, measured(1.9, 2, 2.1), false, "within a factor of two"},
		"more than twice":                               {2, measured(5, 6, 7), true, "3.0 times the prediction"},
		"less than half":                                {6, measured(1.5, 2, 2.5), true, "1/3.0 of the prediction"},
		"a count of which none is left":                 {0.6, measured(0, 0, 1e-12), true, "the measured ratio is 0"},
		"a gain that is a loss":                         {1.2, measured(0.8, 0.9, 0.99), true, "the opposite direction"},
		"a loss that is a gain":                         {0.8, measured(1.01, 1.1, 1.2), true, "the opposite direction"},
		"a gain that may be none":                       {1.2, measured(0.8, 0.9, 1), false, "within a factor of two"},
		"a loss that may be none":                       {0.8, measured(1, 1.1, 1.2), false, "within a factor of two"},
		"no change predicted, and a loss within a half": {1, measured(0.8, 0.9, 0.99), false, "within a factor of two"},
		"no change predicted, and a gain within a half": {1, measured(1.01, 1.1, 1.2), false, "within a factor of two"},
		"a loss predicted and no interval found":        {0.8, &analysis.Estimate{Value: 0.9, Ratio: true}, false, "within a factor of two"},
	} {
		t.Run(name, func(t *testing.T) {
			missed, message := JudgePrediction(c.predicted, c.measured)
			if says(t, message, c.says); missed != c.missed {
				t.Errorf("missed: %v, want %v: %s", missed, c.missed, message)
			}
		})
	}
}

func TestPredictions_ApplyToNamedCandidatesAndPoints(t *testing.T) {
	d := known()
	d.Exp.Plan.Metrics = []experiment.Metric{{Name: "latency", Unit: "s"}}
	d.Exp.Points[0].Parameters, d.Exp.Points[1].Parameters = map[string]string{"size": "1"}, map[string]string{"size": "2"}
	for name, c := range map[string]struct {
		candidate string
		at        map[string]string
		want      []string
	}{
		"all":           {"", nil, []string{"new size=1", "new size=2", "newer size=1", "newer size=2"}},
		"one candidate": {"newer", nil, []string{"newer size=1", "newer size=2"}},
		"one point":     {"", map[string]string{"size": "2"}, []string{"new size=2", "newer size=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			d.Exp.Plan.Predictions = []experiment.Prediction{{Candidate: c.candidate, Metric: "latency", At: c.at, Ratio: 2}}
			var got []string
			for _, one := range Predictions(d, &selection.Parity{Baseline: "outputs differ"}) {
				got = append(got, one.Candidate+" "+one.Point)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// of is a gate on the times of a candidate with an outcome.
func of(candidate string, severity experiment.Severity, outcome experiment.Verdict) analysis.GateResult {
	return analysis.GateResult{Candidate: candidate, Severity: severity, Op: experiment.RatioAtMost, Outcome: outcome}
}

// With many gates one would be missed by accident, and with many candidates one would hold. Holm's procedure uses the level
// (1 - confidence) / 2, here 0.025.
func TestHolm_CorrectsGatesAndCandidates(t *testing.T) {
	const blocking, advisory = experiment.Blocking, experiment.Advisory
	for name, c := range map[string]struct {
		gates []analysis.GateResult
		p     []float64
		want  []experiment.Verdict
		says  string
	}{
		"a gate alone is missed at its own level": {
			[]analysis.GateResult{of("new", blocking, noGo)}, []float64{0.024}, []experiment.Verdict{noGo}, "",
		},
		"one of two needs half of it": {
			[]analysis.GateResult{of("new", blocking, noGo), of("new", blocking, goes)}, []float64{0.013, 1},
			[]experiment.Verdict{inconclusive, goes},
			"not NoGo after correction for 2 gates (Holm: p = 0.013, needed 0.013)",
		},
		"and has it": {
			[]analysis.GateResult{of("new", blocking, noGo), of("new", blocking, goes)}, []float64{0.0124, 1},
			[]experiment.Verdict{noGo, goes}, "",
		},
		"exactly half is enough": {
			[]analysis.GateResult{of("new", blocking, noGo), of("new", blocking, goes)}, []float64{(1 - known().GateConfidence) / 2 / 2, 1},
			[]experiment.Verdict{noGo, goes}, "",
		},
		"the next has the rest of the level": {
			[]analysis.GateResult{of("new", blocking, noGo), of("new", blocking, noGo), of("new", blocking, goes)}, []float64{0.0124, 0.008, 1},
			[]experiment.Verdict{noGo, noGo, goes}, "",
		},
		"the last of all that are missed is one alone": {
			[]analysis.GateResult{of("new", blocking, noGo), of("new", blocking, noGo)}, []float64{0.03, 0.012},
			[]experiment.Verdict{noGo, noGo}, "",
		},
		"after one that is not missed none is": {
			[]analysis.GateResult{of("new", blocking, noGo), of("new", blocking, noGo)}, []float64{0.013, 0.014},
			[]experiment.Verdict{inconclusive, inconclusive}, "correction for 2 gates",
		},
		"a gate that never decides is no chance": {
			[]analysis.GateResult{of("new", blocking, noGo), of("new", advisory, noGo)}, []float64{0.02, 0.001},
			[]experiment.Verdict{noGo, noGo}, "",
		},
		"nor is one without figures": {
			[]analysis.GateResult{of("new", blocking, noGo), of("new", blocking, invalid)}, []float64{0.02, 1},
			[]experiment.Verdict{noGo, invalid}, "",
		},
		"nor is another candidate's": {
			[]analysis.GateResult{of("new", blocking, noGo), of("newer", blocking, noGo)}, []float64{0.02, 0.02},
			[]experiment.Verdict{noGo, noGo}, "",
		},
	} {
		t.Run("gates: "+name, func(t *testing.T) {
			var p []tails
			for _, fails := range c.p {
				p = append(p, tails{1, fails})
			}
			holm(known(), c.gates, p)
			var got []experiment.Verdict
			for _, gate := range c.gates {
				got = append(got, gate.Outcome)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			says(t, c.gates[0].Message, c.says)
		})
	}
	for name, c := range map[string]struct {
		gates      []analysis.GateResult
		p          []float64
		contenders []string
		want       [2]experiment.Verdict
	}{
		"one of two needs half of the level": {
			[]analysis.GateResult{of("new", blocking, goes), of("newer", blocking, goes)}, []float64{0.013, 0.02}, []string{"new", "newer"},
			[2]experiment.Verdict{inconclusive, inconclusive},
		},
		"with half of it the other one is alone": {
			[]analysis.GateResult{of("new", blocking, goes), of("newer", blocking, goes)}, []float64{0.012, 0.02}, []string{"new", "newer"},
			[2]experiment.Verdict{goes, goes},
		},
		"the weakest of its gates counts": {
			[]analysis.GateResult{of("new", blocking, goes), of("new", blocking, goes), of("newer", blocking, goes)}, []float64{0.001, 0.013, 0.02},
			[]string{"new", "newer"}, [2]experiment.Verdict{inconclusive, inconclusive},
		},
		"one that never decides does not": {
			[]analysis.GateResult{of("new", blocking, goes), of("new", advisory, goes), of("newer", blocking, goes)}, []float64{0.001, 0.5, 0.02},
			[]string{"new", "newer"}, [2]experiment.Verdict{goes, goes},
		},
		"who is out of the running is no chance": {
			[]analysis.GateResult{of("new", blocking, goes), of("newer", blocking, goes)}, []float64{0.02, 0.02}, []string{"new"},
			[2]experiment.Verdict{goes, goes},
		},
	} {
		t.Run("candidates: "+name, func(t *testing.T) {
			j := &judgement{gates: c.gates, candidates: []analysis.Candidate{{Name: "new", Verdict: goes}, {Name: "newer", Verdict: goes}}}
			var p []tails
			for _, goes := range c.p {
				p = append(p, tails{goes, 1})
			}
			holmOverCandidates(known(), j, p, c.contenders)
			if got := [2]experiment.Verdict{j.candidates[0].Verdict, j.candidates[1].Verdict}; got != c.want {
				t.Errorf("%v, want %v: %s", got, c.want, j.candidates[0].Reason)
			}
		})
	}
}

// The rejection of trials by noise must not depend on their arm.
func TestNoise_BesideOneArmIsInconclusive(t *testing.T) {
	type counts map[selection.Cell][2]int // Rejected and left.
	at := selection.At
	for name, c := range map[string]struct {
		counts            counts
		edit              func(d *estimate.Data)
		candidate, point  string
		outcome, excluded experiment.Verdict
		want              string
	}{
		"as often beside both": {
			counts: counts{at(0, 0): {2, 10}, at(0, 1): {2, 10}, at(1, 0): {2, 10}, at(1, 1): {2, 10}}, excluded: inconclusive,
		},
		"by chance a little more often": {
			counts: counts{at(0, 0): {2, 10}, at(0, 1): {3, 9}, at(1, 0): {2, 10}, at(1, 1): {2, 10}}, excluded: inconclusive,
		},
		"at one point more often than by chance, but for the number of points": {
			counts: counts{at(0, 0): {1, 11}, at(0, 1): {7, 5}, at(1, 0): {6, 6}, at(1, 1): {1, 11}}, excluded: inconclusive,
		},
		"far more often beside the candidate": {
			counts: counts{at(0, 0): {1, 11}, at(0, 1): {9, 3}, at(1, 0): {1, 11}, at(1, 1): {9, 3}}, excluded: inconclusive,
			want: "leave out 18 of 24 trials of new and 2 of 24 of old over all points",
		},
		"at the gate's point only": {
			counts: counts{at(0, 0): {1, 11}, at(0, 1): {10, 2}, at(1, 0): {10, 2}, at(1, 1): {1, 11}}, excluded: inconclusive,
			want: "leave out 10 of 12 trials of new and 1 of 12 of old at size=1",
		},
		"at the other point, whose gate it is": {
			counts: counts{at(0, 0): {1, 11}, at(0, 1): {1, 11}, at(1, 0): {10, 2}, at(1, 1): {1, 11}, at(2, 1): {9, 0}}, point: "size=2",
			excluded: inconclusive, want: "leave out 2 of 24 trials of new and 11 of 24 of old over all points",
		},
		"once, and never beside the baseline": {
			counts: counts{at(0, 0): {0, 12}, at(0, 1): {1, 11}, at(1, 0): {0, 12}, at(1, 1): {0, 12}}, excluded: inconclusive,
			want: "leave out 1 of 24 trials of new and 0 of 24 of old over all points",
		},
		"once, and never beside the candidate": {
			counts: counts{at(0, 0): {1, 11}, at(0, 1): {0, 12}, at(1, 0): {0, 12}, at(1, 1): {0, 12}}, excluded: inconclusive,
			want: "leave out 0 of 24 trials of new and 1 of 24 of old over all points",
		},
		"where the gate says the same with them": {counts: counts{at(0, 1): {9, 3}}, excluded: goes},
		"where nothing is left out":              {},
		"the baseline's own gate":                {counts: counts{at(0, 0): {9, 3}}, candidate: "old", excluded: inconclusive},
		"a run without a baseline": {
			counts: counts{at(0, 1): {9, 3}}, excluded: inconclusive, edit: func(d *estimate.Data) { d.Exp.Arms[0].Baseline = false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			for cell, n := range c.counts {
				d.Rejected[cell], d.Trials[cell] = n[0], make([]*record.Attempt, n[1])
			}
			if c.edit != nil {
				c.edit(d)
			}
			gate := &analysis.GateResult{Candidate: "new", Point: "size=1", Outcome: goes}
			if c.candidate != "" {
				gate.Candidate = c.candidate
			}
			if c.point != "" {
				gate.Point = c.point
			}
			if c.excluded != "" {
				gate.WithRejected = &analysis.Recomputed{Outcome: c.excluded}
			}
			says(t, rejectedUnevenly(d, nil, gate), c.want)
		})
	}
}

func TestEnvironmentDecides_ReportsOtherOutcome(t *testing.T) {
	d := known()
	d.Chosen.OtherKeys = "cpuModel is another one"
	whole := &analysis.Estimate{Value: 2, Ratio: true, Low: ptr.To(1.9), High: ptr.To(2.1)}
	for name, c := range map[string]struct {
		again *analysis.Recomputed
		want  string
	}{
		"there are none":           {nil, ""},
		"they say the same":        {&analysis.Recomputed{Outcome: goes, Estimate: whole}, ""},
		"they say something else":  {&analysis.Recomputed{Outcome: noGo, Rejected: 3, Estimate: whole}, "3 trials of other environments (cpuModel is another one), each of which counts as a node, it is 2.000x [1.900, 2.100], NoGo"},
		"they leave no figure":     {&analysis.Recomputed{Outcome: invalid}, "it is Invalid"},
		"they leave no lower end":  {&analysis.Recomputed{Outcome: invalid, Estimate: &analysis.Estimate{High: ptr.To(2.0)}}, "it is Invalid"},
		"they leave no higher end": {&analysis.Recomputed{Outcome: invalid, Estimate: &analysis.Estimate{Low: ptr.To(2.0)}}, "it is Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, environmentDecides(d, nil, &analysis.GateResult{Outcome: goes, Everywhere: c.again}), c.want)
		})
	}
}

func TestBaselineIncomplete_IsReported(t *testing.T) {
	completes := func(arm string, severity experiment.Severity, outcome experiment.Verdict) analysis.GateResult {
		return analysis.GateResult{
			Candidate: arm, Op: experiment.Completes, Severity: severity, Outcome: outcome, Message: "3 of 4 trials completed",
		}
	}
	d := known()
	d.Exp.Arms = append(d.Exp.Arms, record.Arm{Name: "null", Null: true})
	for name, c := range map[string]struct {
		op    experiment.Op
		other analysis.GateResult
		want  string
	}{
		"the baseline":                {experiment.RatioAtMost, completes("old", experiment.Blocking, noGo), "the baseline does not complete (arm old: 3 of 4 trials completed)"},
		"the null arm, which is it":   {experiment.RatioAtMost, completes("null", experiment.Blocking, inconclusive), "arm null: 3 of 4"},
		"one that completes":          {experiment.RatioAtMost, completes("old", experiment.Blocking, goes), ""},
		"without a limit":             {experiment.RatioAtMost, completes("old", experiment.Advisory, noGo), ""},
		"a candidate":                 {experiment.RatioAtMost, completes("new", experiment.Blocking, noGo), ""},
		"a gate on one arm's figure":  {experiment.AtMost, completes("old", experiment.Blocking, noGo), ""},
		"another gate that it misses": {experiment.RatioAtMost, of("old", experiment.Blocking, noGo), ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := &judgement{gates: []analysis.GateResult{c.other}}
			says(t, brokenBaseline(d, j, &analysis.GateResult{Candidate: "new", Op: c.op}), c.want)
		})
	}
}

func TestParity_DecidesVerdict(t *testing.T) {
	compared := func(edit func(*selection.Parity)) *selection.Parity {
		seen := map[selection.Cell]bool{selection.At(0, 0): true, selection.At(0, 1): true}
		out := &selection.Parity{Compared: true, Seen: seen, Wrong: map[string]string{}}
		edit(out)
		return out
	}
	for name, c := range map[string]struct {
		parity  *selection.Parity
		edit    func(*estimate.Data)
		outcome experiment.Verdict
		says    string
	}{
		"they agree":                             {compared(func(*selection.Parity) {}), nil, goes, "all outputs agree"},
		"they cannot be compared":                {compared(func(p *selection.Parity) { p.Compared = false }), nil, invalid, "cannot be compared"},
		"the baseline's differ":                  {compared(func(p *selection.Parity) { p.Baseline = "arm old disagrees" }), nil, invalid, "arm old disagrees"},
		"the candidate's differ":                 {compared(func(p *selection.Parity) { p.Wrong["new"] = "another output" }), nil, noGo, "another output"},
		"the candidate gave none":                {compared(func(p *selection.Parity) { p.Seen[selection.At(0, 1)] = false }), nil, invalid, "arm new has no output at size=1"},
		"the baseline gave none":                 {compared(func(p *selection.Parity) { p.Seen[selection.At(0, 0)] = false }), nil, invalid, "the baseline has no output at size=1"},
		"there is no baseline, and need be none": {compared(func(p *selection.Parity) { p.Seen[selection.At(0, 0)] = false }), func(d *estimate.Data) { d.Exp.Arms[0].Baseline = false }, goes, "all outputs agree"},
		"some of the candidate's are not known": {compared(func(*selection.Parity) {}), func(d *estimate.Data) {
			d.Chosen.Outputless = map[int]selection.Outputless{2: {Count: 1, First: "a"}, 1: {Count: 2, First: "b"}}
		}, inconclusive, "the outputs of 2 trials of arm new are not known (first b)"},
		"some of another candidate's are not": {compared(func(*selection.Parity) {}), func(d *estimate.Data) {
			d.Chosen.Outputless = map[int]selection.Outputless{2: {Count: 1, First: "a"}}
		}, goes, "all outputs agree"},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			if c.edit != nil {
				c.edit(d)
			}
			result := analysis.GateResult{Candidate: "new", Point: "size=1"}
			judgeParity(d, c.parity, 0, &result)
			if says(t, result.Message, c.says); result.Outcome != c.outcome {
				t.Errorf("%s, want %s", result.Outcome, c.outcome)
			}
		})
	}
}

func TestGate_MissingDataReportsLosses(t *testing.T) {
	d := known()
	addLosses(d, selection.At(0, 0), selection.Balance{Of: 9, Lost: selection.Losses{"missing": 1}})
	addLosses(d, selection.At(0, 1), selection.Balance{Of: 9, Lost: selection.Losses{"failed": 2}})
	without := known()
	without.Exp.Arms[0].Baseline = false
	without.Chosen.Lost = d.Chosen.Lost
	for name, c := range map[string]struct {
		d        *estimate.Data
		arm      int
		relative bool
		want     string
	}{
		"the candidate's and the baseline's": {d, 1, true, "; of arm new: 2 failed; of arm old: 1 missing"},
		"the candidate's alone":              {d, 1, false, "; of arm new: 2 failed"},
		"of one that lost nothing":           {d, 2, false, ""},
		"where there is no baseline":         {without, 1, true, "; of arm new: 2 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := losses(c.d, 0, c.arm, c.relative); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestCompletes_UnknownTrialsAreDescribed(t *testing.T) {
	for name, c := range map[string]struct {
		done, unknown int
		outcome       experiment.Verdict
		says, without string
	}{
		"all completed":            {20, 0, goes, "20 of 20 trials completed against at least 0.95", "first"},
		"two failed":               {18, 0, inconclusive, "the share may still reach the bound", "results of trials without"},
		"two are unknown":          {18, 2, inconclusive, "because the results of trials without an end", "begun and ended"},
		"half of them failed":      {10, 0, noGo, "10 of 20", "results of trials without"},
		"half of them are unknown": {10, 10, inconclusive, "results of trials without", "begun and ended"},
	} {
		t.Run(name, func(t *testing.T) {
			result := analysis.GateResult{Confidence: 0.95}
			all := selection.Completion{Of: 20, Done: c.done, Unknown: c.unknown, Blocks: map[string]bool{}, Failures: selection.Losses{}}
			judgeShare(&all, 0.95, &result)
			if says(t, result.Message, c.says); result.Outcome != c.outcome || strings.Contains(result.Message, c.without) {
				t.Errorf("%s: %s, want %s without %q", result.Outcome, result.Message, c.outcome, c.without)
			}
		})
	}
}

func TestAsksFor_BlocksOfAPurpose(t *testing.T) {
	design := experiment.Design{Blocks: experiment.Blocks{Min: 8}, Confirm: &experiment.Confirm{Blocks: 6}}
	for purpose, want := range map[record.Purpose]string{
		record.Screen: "8 spec.design.blocks.min", record.Confirm: "6 spec.design.confirm.blocks",
	} {
		least, field := asksFor(design, purpose)
		if got := fmt.Sprint(least, " ", field); got != want {
			t.Errorf("%s: %s, want %s", purpose, got, want)
		}
	}
}

func TestValidBlocks_CellWithFewest(t *testing.T) {
	blocks := func(n int) map[string]bool {
		out := map[string]bool{}
		for i := range n {
			out[record.BlockName(0, i)] = true
		}
		return out
	}
	for name, c := range map[string]struct {
		of   []int // Of the arms at the points, point by point.
		want int
	}{
		"all have as many":   {[]int{8, 8, 8, 8, 8, 8}, 8},
		"the first has less": {[]int{5, 8, 8, 8, 8, 8}, 5},
		"the last has less":  {[]int{8, 8, 8, 8, 8, 6}, 6},
		"the first has none": {[]int{0, 8, 8, 8, 8, 8}, 0},
		"one has none":       {[]int{8, 8, 0, 8, 8, 8}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			for i, n := range c.of {
				d.Measured[selection.At(i/3, i%3)] = blocks(n)
			}
			if got := validBlocks(d); got != c.want {
				t.Errorf("%d valid blocks, want %d", got, c.want)
			}
		})
	}
}

// The half width stops a design, so it depends on the gates that further blocks make precise.
func TestRelativeHalfWidth_LeastPreciseImprovableGate(t *testing.T) {
	with := func(edit func(*analysis.GateResult)) analysis.GateResult {
		out := of("new", experiment.Blocking, inconclusive)
		out.Estimate = &analysis.Estimate{Value: 2, Low: ptr.To(1.8), High: ptr.To(2.2), Blocks: 5}
		edit(&out)
		return out
	}
	precise := with(func(*analysis.GateResult) {})
	wide := with(func(g *analysis.GateResult) { g.Estimate.Low, g.Estimate.High = ptr.To(1.0), ptr.To(3.0) })
	for name, c := range map[string]struct {
		gates []analysis.GateResult
		valid int
		want  float64 // 0 is no estimate.
	}{
		"one gate":                           {[]analysis.GateResult{precise}, 5, 0.1},
		"the wider of two":                   {[]analysis.GateResult{precise, wide}, 5, 0.5},
		"in any order":                       {[]analysis.GateResult{wide, precise}, 5, 0.5},
		"advisory ones are not waited for":   {[]analysis.GateResult{precise, with(func(g *analysis.GateResult) { *g = wide; g.Severity = experiment.Advisory })}, 5, 0.1},
		"outputs have no width":              {[]analysis.GateResult{precise, with(func(g *analysis.GateResult) { g.Op, g.Estimate = experiment.ParityEqual, nil })}, 5, 0.1},
		"a refused candidate's do not count": {[]analysis.GateResult{precise, with(func(g *analysis.GateResult) { *g = wide; g.Candidate = "wrong" })}, 5, 0.1},
		"a figure below zero has a width": {[]analysis.GateResult{with(func(g *analysis.GateResult) {
			g.Estimate = &analysis.Estimate{Value: -2, Low: ptr.To(-2.2), High: ptr.To(-1.8), Blocks: 5}
		})}, 5, 0.1},
		"a figure of zero has none":                       {[]analysis.GateResult{precise, with(func(g *analysis.GateResult) { g.Estimate.Value = 0 })}, 5, 0},
		"before there are blocks enough nothing is known": {[]analysis.GateResult{precise, with(func(g *analysis.GateResult) { g.Estimate = nil })}, 2, 0},
		"then a gate without a figure is skipped":         {[]analysis.GateResult{precise, with(func(g *analysis.GateResult) { g.Estimate = nil })}, 3, 0.1},
		"and so is a figure of too few blocks":            {[]analysis.GateResult{precise, with(func(g *analysis.GateResult) { g.Estimate = &analysis.Estimate{Value: 1, Blocks: 2} })}, 3, 0.1},
		"three blocks are enough":                         {[]analysis.GateResult{precise, with(func(g *analysis.GateResult) { *g = wide; g.Estimate.Blocks = 3 })}, 3, 0.5},
		"no gate, no width":                               {nil, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := relativeHalfWidth(c.gates, &selection.Parity{Wrong: map[string]string{"wrong": "another output"}}, c.valid)
			if (got == nil) != (c.want == 0) || got != nil && math.Abs(*got-c.want) > 1e-9 {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestConfirm_OutputDecisionsAreExempt(t *testing.T) {
	outputs := of("new", experiment.Blocking, goes)
	outputs.Op = experiment.ParityEqual
	incomplete := of("new", experiment.Blocking, noGo)
	incomplete.Op = experiment.Completes
	another := incomplete
	another.Candidate = "newer"
	for name, c := range map[string]struct {
		gates []analysis.GateResult
		want  bool
	}{
		"times decide":              {[]analysis.GateResult{of("new", experiment.Blocking, goes)}, true},
		"outputs do":                {[]analysis.GateResult{outputs}, false},
		"and times only of another": {[]analysis.GateResult{outputs, of("newer", experiment.Blocking, goes)}, false},
		"and times decide nothing":  {[]analysis.GateResult{outputs, of("new", experiment.Advisory, goes)}, false},
		"trials of another failed":  {[]analysis.GateResult{of("new", experiment.Blocking, goes), another}, true},
		"trials that failed decide": {[]analysis.GateResult{of("new", experiment.Blocking, goes), incomplete}, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := &judgement{gates: c.gates, candidates: []analysis.Candidate{{Name: "new", Verdict: goes}}}
			if got := len(j.decided(&selection.Parity{})) == 1; got != c.want {
				t.Errorf("it is confirmed: %v, want %v", got, c.want)
			}
		})
	}
}

func TestQuoted_ManyValuesAreTruncated(t *testing.T) {
	for name, c := range map[string]struct {
		made map[string]int
		want string
	}{
		"one":   {map[string]int{"samples": 2}, `"samples" in 2 trials`},
		"three": {map[string]int{"a": 1, "b": 2, "c": 3}, `"a" in 1 trial and "b" in 2 trials and "c" in 3 trials`},
		"five":  {map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, `"a" in 1 trial and "b" in 2 trials and "c" in 3 trials and 2 others`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quoted(c.made); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Losses of two arms are compared at the gate's point and over all points, which share one level, and among the comparisons.
func TestLosses_DifferentRatesAreInconclusive(t *testing.T) {
	type lost map[selection.Cell][2]int // How many of how many.
	at := selection.At
	for name, c := range map[string]struct {
		lost        lost
		edit        func(*estimate.Data)
		theirs      int
		comparisons float64
		want        string
	}{
		"as much":  {lost{at(0, 0): {3, 20}, at(0, 1): {3, 20}}, nil, 0, 1, ""},
		"far more": {lost{at(0, 0): {0, 20}, at(0, 1): {8, 20}, at(1, 0): {0, 20}, at(1, 1): {0, 20}}, nil, 0, 1, "at size=1 arm new lost 8 of 20 trials"},
		"far less": {lost{at(0, 0): {8, 20}, at(0, 1): {0, 20}, at(1, 0): {0, 20}, at(1, 1): {0, 20}}, nil, 0, 1, "at size=1 arm new lost 0 of 20 trials"},
		"at another point, which says little of this one": {
			lost{at(0, 0): {0, 20}, at(0, 1): {0, 20}, at(1, 0): {15, 200}, at(1, 1): {29, 200}}, nil, 0, 1, "",
		},
		"a little everywhere": {
			lost{at(0, 0): {0, 20}, at(0, 1): {4, 20}, at(1, 0): {0, 20}, at(1, 1): {4, 20}}, nil, 0, 1, "at all points arm new lost 8 of 40 trials",
		},
		"at one of two points no more than one of them has by chance": {
			lost{at(0, 0): {1, 20}, at(0, 1): {7, 20}, at(1, 0): {6, 20}, at(1, 1): {0, 20}}, nil, 0, 1, "",
		},
		"hardly more than one of them has": {
			lost{at(0, 0): {1, 20}, at(0, 1): {8, 20}, at(1, 0): {8, 20}, at(1, 1): {1, 20}}, nil, 0, 1, "",
		},
		"as much at the only point": {
			lost{at(0, 0): {1, 20}, at(0, 1): {7, 20}}, onePoint, 0, 1, "at size=1 arm new lost 7 of 20",
		},
		"as one of three comparisons": {
			lost{at(0, 0): {1, 20}, at(0, 1): {7, 20}}, onePoint, 0, 3, "",
		},
		"another candidate": {
			lost{at(0, 2): {0, 20}, at(0, 1): {8, 20}, at(1, 2): {0, 20}, at(1, 1): {0, 20}}, nil, 2, 1, "and arm newer 0 of 20 trials",
		},
		"without another arm": {
			lost{at(0, 1): {8, 20}, at(1, 1): {0, 20}}, nil, -1, 1, "and as many of no arm 0 of 20 trials",
		},
		"in a search losses of the other arm are no finding": {
			lost{at(0, 0): {9, 20}, at(0, 1): {1, 20}}, ofSearch, 0, 1, "",
		},
		"in a search losses of this arm are one": {
			lost{at(0, 0): {1, 20}, at(0, 1): {9, 20}}, ofSearch, 0, 1, "arm new lost 9 of 20",
		},
		"in a search loads are no repetitions of each other": {
			lost{at(0, 0): {0, 20}, at(0, 1): {4, 20}, at(1, 0): {0, 20}, at(1, 1): {4, 20}}, ofSearch,
			0, 1, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			d.Exp.Plan.Metrics = []experiment.Metric{{Name: "latency", Unit: "s"}}
			for cell, n := range c.lost {
				addLosses(d, cell, selection.Balance{Of: n[1], Lost: selection.Losses{"failed": n[0]}})
			}
			if c.edit != nil {
				c.edit(d)
			}
			says(t, lostDifferently(d, "latency", 0, 1, c.theirs, c.comparisons), c.want)
		})
	}
}

func TestBlockCorrelation_NeedsSixBlocks(t *testing.T) {
	blocks := func(n int) *analysis.Estimate { return &analysis.Estimate{Blocks: n} }
	for name, c := range map[string]struct {
		rho      float64
		estimate *analysis.Estimate
		want     string
	}{
		"none is declared": {0, blocks(3), ""},
		"five":             {0.2, blocks(5), "it has 5 blocks"},
		"six":              {0.2, blocks(6), ""},
		"no figure":        {0.2, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			d.Exp.Plan.Design.BlockCorrelation = c.rho
			says(t, fewForCorrelation(d, nil, &analysis.GateResult{Estimate: c.estimate}), c.want)
		})
	}
}

// Arms that were measured in different ways are not compared, by the same rule of levels.
func TestApart_DifferentNodesWithinBlockAreInconclusive(t *testing.T) {
	type shared map[selection.Cell][2]int // How many trials had their CPUs to themselves, and how many not.
	at := selection.At
	for name, c := range map[string]struct {
		shared      shared
		edit        func(*estimate.Data)
		comparisons float64
		want        string
	}{
		"alike":                       {shared{at(0, 0): {10, 10}, at(0, 1): {10, 10}}, onePoint, 1, ""},
		"by chance not quite":         {shared{at(0, 0): {10, 10}, at(0, 1): {12, 8}}, onePoint, 1, ""},
		"beyond it":                   {shared{at(0, 0): {18, 2}, at(0, 1): {9, 11}}, onePoint, 1, "at size=1 isolation.level of arm new is"},
		"not beyond it as one of ten": {shared{at(0, 0): {18, 2}, at(0, 1): {9, 11}}, onePoint, 10, ""},
		"hardly, at the only point":   {shared{at(0, 0): {19, 1}, at(0, 1): {12, 8}}, onePoint, 1, "at size=1 isolation.level of arm new is"},
		"hardly, at one of two points": {
			shared{at(0, 0): {19, 1}, at(0, 1): {12, 8}, at(1, 0): {12, 8}, at(1, 1): {19, 1}}, nil, 1, "",
		},
		"a little at all points": {
			shared{at(0, 0): {19, 1}, at(0, 1): {14, 6}, at(1, 0): {19, 1}, at(1, 1): {14, 6}}, nil, 1,
			"over all points isolation.level of arm new is",
		},
		"a little at all loads of a search": {
			shared{at(0, 0): {19, 1}, at(0, 1): {14, 6}, at(1, 0): {19, 1}, at(1, 1): {14, 6}},
			ofSearch, 1, "",
		},
		"in no trial alike":    {shared{at(0, 0): {2, 0}, at(0, 1): {0, 2}}, onePoint, 1, "no trial has the same value"},
		"one of them ran none": {shared{at(0, 0): {20, 20}}, onePoint, 1, ""},
		"the other ran none":   {shared{at(0, 1): {20, 20}}, onePoint, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			for cell, n := range c.shared {
				for i := range n[0] + n[1] {
					attempt := &record.Attempt{}
					if attempt.Isolation.Level = "Exclusive"; i >= n[0] {
						attempt.Isolation.Level = "Shared"
					}
					d.Trials[cell] = append(d.Trials[cell], attempt)
				}
			}
			if c.edit != nil {
				c.edit(d)
			}
			says(t, unlike(d, 0, 1, 0, c.comparisons), c.want)
		})
	}
}

// Which of two arms runs first is the toss of a coin, and of many coins some fall on one side more often.
func TestPlace_UnbalancedOrderIsInconclusive(t *testing.T) {
	for name, c := range map[string]struct {
		first, blocks int
		comparisons   float64
		want          string
	}{
		"in turns":                      {6, 12, 1, ""},
		"in all of seven blocks":        {7, 7, 1, ""},
		"in all of eight":               {8, 8, 1, "arm new ran before arm old in 8 of 8 blocks"},
		"in all but one of twelve":      {11, 12, 1, "arm new ran before arm old in 11 of 12 blocks"},
		"in one of twelve":              {1, 12, 1, "arm old ran before arm new in 11 of 12 blocks"},
		"as one of three comparisons":   {11, 12, 3, ""},
		"and of three in all of twelve": {12, 12, 3, "arm new ran before arm old in 12 of 12 blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			chosen := &selection.Selection{Admission: selection.Admission{Cells: map[*record.Attempt]selection.Cell{}}}
			for i := range c.blocks {
				old := i < c.first // Then it has the second slot.
				for arm, second := range []bool{old, !old} {
					attempt := &record.Attempt{Block: record.BlockName(0, i), Slot: map[bool]int{true: 1}[second]}
					chosen.Used, chosen.Cells[attempt] = append(chosen.Used, attempt), selection.At(0, arm)
				}
			}
			says(t, placed(estimate.New(known().Exp, chosen, nil), 0, 1, 0, c.comparisons), c.want)
		})
	}
}

// Each arm is set beside the baseline as a gate would; all other pairs share one level, so that many arms are not doubted by accident.
func TestDoubts_OtherPairsShareTheLevel(t *testing.T) {
	for name, c := range map[string]struct {
		lost [4]int // Of 20 trials, of old, new, newer and newest.
		want []string
	}{
		"the baseline lost least":                  {[4]int{1, 7, 4, 4}, []string{"new over old"}},
		"a candidate did, and by no more than one": {[4]int{4, 7, 1, 4}, nil},
		"and by more than one of three would":      {[4]int{4, 9, 1, 4}, []string{"newer over new"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			d.Exp.Points = d.Exp.Points[:1]
			d.Exp.Arms = append(d.Exp.Arms, record.Arm{Name: "newest"})
			d.Exp.Plan.Metrics = []experiment.Metric{{Name: "latency", Unit: "s"}}
			for arm, n := range c.lost {
				addLosses(d, selection.At(0, arm), selection.Balance{Of: 20, Lost: selection.Losses{"failed": n}})
			}
			var got []string
			ratios := []analysis.RatioResult{{
				Point: "size=1", Metric: "latency", Statistic: experiment.StatisticMean, PerBlock: map[string]float64{"b": 1},
			}}
			for _, doubt := range Doubts(d, &selection.Parity{}, ratios) {
				if doubt.Reason == analysis.CapLostApart {
					got = append(got, strings.Join(doubt.Arms, " over "))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A loss that a metric takes into account is not a doubt about it, and a doubt about all metrics is listed once.
func TestDoubts_LossesConcernAffectedMetricsOnly(t *testing.T) {
	latency := experiment.Metric{Name: "latency", Unit: "s", Direction: experiment.LowerIsBetter}
	items := experiment.Metric{Name: "items", Unit: "items"}
	for name, c := range map[string]struct {
		how  string
		lost [2]int      // Of 20 trials of each arm at the first point.
		of   [2][]string // The metrics that have a figure at each point.
		want []string
	}{
		"trials that failed": {"failed", [2]int{0, 12}, [2][]string{{"latency", "items"}, nil}, []string{"size=1 of all"}},
		"timeouts of the baseline": {
			"timed out", [2]int{12, 0}, [2][]string{{"latency", "items"}, nil}, []string{"size=1 of items"},
		},
		"timeouts, which times allow for": {
			"timed out", [2]int{0, 12}, [2][]string{{"latency", "items"}, {"items", "latency"}}, []string{"size=1 of items", "size=2 of items"},
		},
		"a point without figures of the metric that does not": {
			"timed out", [2]int{0, 12}, [2][]string{{"latency"}, {"items", "latency"}}, []string{"size=2 of items"},
		},
		"a metric that has several": {
			"failed", [2]int{0, 12}, [2][]string{{"items", "items p95"}, nil}, []string{"size=1 of all"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			d.Exp.Arms, d.Exp.Plan.Metrics = d.Exp.Arms[:2], []experiment.Metric{latency, items}
			for arm, n := range c.lost {
				addLosses(d, selection.At(0, arm), selection.Balance{Of: 20, Lost: selection.Losses{c.how: n}})
			}
			var ratios []analysis.RatioResult
			for point, metrics := range c.of {
				for _, metric := range metrics {
					metric, percentile := strings.CutSuffix(metric, " p95")
					statistic := map[bool]experiment.Statistic{true: experiment.StatisticP95, false: experiment.StatisticMean}[percentile]
					ratios = append(ratios, analysis.RatioResult{
						Point: d.Exp.Points[point].Key, Metric: metric, Statistic: statistic, PerBlock: map[string]float64{"b": 1},
					})
				}
			}
			var got []string
			for _, doubt := range Doubts(d, &selection.Parity{}, ratios) {
				if doubt.Reason == analysis.CapLostApart {
					got = append(got, doubt.Point+" of "+order.Or(doubt.Metric, "all"))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The number of further blocks of an undecided gate brings its interval within the bound, and one less does not.
func TestMoreBlocks_WouldDecide(t *testing.T) {
	const bound, value, se, blocks = 1.5, 1.6, 0.06, 8
	found := estimate.Inference{Value: value, Low: 1.4, High: 1.8, SE: se, Blocks: blocks}
	result := analysis.GateResult{
		Op: experiment.AtLeast, Bound: ptr.To(bound), Estimate: &analysis.Estimate{Value: value, Low: ptr.To(1.4), High: ptr.To(1.8)},
	}
	decide(&experiment.Experiment{}, found, 0.95, &result)
	half := func(n int) float64 {
		return stats.StudentQuantile(0.975, float64(n-1)) * se * math.Sqrt(blocks) / math.Sqrt(float64(n))
	}
	if more := result.MoreBlocks; more == nil || half(blocks+*more) > value-bound || half(blocks+*more-1) <= value-bound {
		t.Errorf("%s: %v", result.Message, more)
	}
}

func TestContenders_GoInScreening(t *testing.T) {
	j := &judgement{candidates: []analysis.Candidate{{Name: "a", Verdict: goes}, {Name: "b", Verdict: noGo}, {Name: "c", Verdict: goes}}}
	if diff := cmp.Diff([]string{"a", "c"}, j.contenders()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChangedProgram_IsReportedByGates(t *testing.T) {
	for name, c := range map[string]struct {
		changed  int
		baseline bool
		relative bool
		want     string
	}{
		"the candidate":                        {1, true, true, "arm new changed during the run: its image is another one; name its image by digest"},
		"the baseline that it is held to":      {0, true, true, "arm old changed"},
		"the baseline, and it is held to none": {0, true, false, ""},
		"a run without a baseline":             {0, false, true, ""},
		"another candidate":                    {2, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			d.Exp.Arms[0].Baseline = c.baseline
			d.Chosen.Changed = map[int]string{c.changed: "its image is another one"}
			says(t, changed(d, 1, c.relative), c.want)
		})
	}
}

// A run that asks for nothing has no verdict, though every run has a gate on completing.
func TestVerdict_DependsOnRequestedGatesOnly(t *testing.T) {
	completes := func(gate string) analysis.GateResult {
		return analysis.GateResult{Gate: gate, Candidate: "new", Op: experiment.Completes, Severity: experiment.Blocking, Outcome: goes}
	}
	asked := of("new", experiment.Blocking, goes)
	asked.Gate = "faster"
	advisory := of("new", experiment.Advisory, noGo)
	for name, c := range map[string]struct {
		gates   []analysis.GateResult
		verdict experiment.Verdict
		reason  string
	}{
		"the gate that every run has":         {[]analysis.GateResult{completes("completes")}, "", "no blocking gate applies to it"},
		"one on completing that is asked for": {[]analysis.GateResult{completes("works")}, goes, "its blocking gate holds"},
		"one on times beside it":              {[]analysis.GateResult{asked, completes("completes")}, goes, "its blocking gate holds"},
		"both":                                {[]analysis.GateResult{asked, completes("works")}, goes, "all 2 blocking gates hold"},
		"one that never decides":              {[]analysis.GateResult{advisory, completes("completes")}, "", "no blocking gate applies to it"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := known().Exp
			exp.Plan.Gates = []experiment.Gate{{Name: "faster"}, {Name: "works"}}
			got := judgeCandidates(exp, c.gates, &selection.Parity{}, "")[0]
			if got.Name != "new" || got.Verdict != c.verdict || got.Reason != c.reason {
				t.Errorf("%s: %q %s, want %q: %s", got.Name, got.Verdict, got.Reason, c.verdict, c.reason)
			}
		})
	}
}

func TestPartlyRead_GateIsInconclusive(t *testing.T) {
	for name, c := range map[string]struct {
		read [2]int // Of four trials of the baseline and of the candidate.
		want string
	}{
		"of all":                         {[2]int{4, 4}, ""},
		"of none, which has no figure":   {[2]int{0, 0}, ""},
		"of one of the candidate":        {[2]int{4, 1}, "has no value in 3 of 4 trials of arm new and one in 1"},
		"of all but one of the baseline": {[2]int{3, 4}, "has no value in 1 of 4 trials of arm old and one in 3"},
	} {
		t.Run(name, func(t *testing.T) {
			d := known()
			for arm, read := range c.read {
				for i := range 4 {
					attempt := &record.Attempt{}
					if i < read {
						attempt.Resources.UserSeconds, attempt.Resources.SystemSeconds = ptr.To(1.0), ptr.To(1.0)
					}
					d.Trials[selection.At(0, arm)] = append(d.Trials[selection.At(0, arm)], attempt)
				}
			}
			gate := &analysis.GateResult{Candidate: "new", Point: "size=1", Op: experiment.RatioAtMost, Metric: record.ProcessPrefix + "cpuTime"}
			says(t, partlyRead(d, nil, gate), c.want)
		})
	}
}

// A run of 64 gates at 2,048 points has 131,072 gate results, and each checks completion.
func TestBaselineIncomplete_FastWithManyGates(t *testing.T) {
	const many = 64 * 2048
	d, j := known(), &judgement{gates: make([]analysis.GateResult, many)}
	for i := range j.gates {
		j.gates[i] = analysis.GateResult{Candidate: "new", Op: experiment.RatioAtMost, Severity: experiment.Blocking}
	}
	j.gates = append(j.gates, analysis.GateResult{
		Candidate: "old", Op: experiment.Completes, Severity: experiment.Blocking, Outcome: experiment.VerdictNoGo, Message: "9 of 20",
	})
	used := cputime.Start()
	for i := range many {
		if why := brokenBaseline(d, j, &j.gates[i]); !strings.Contains(why, "9 of 20") {
			t.Fatalf("says %q", why)
		}
	}
	if took := used(); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Many metrics at many points are many figures, and each is known when its ratio comes.
func TestDoubts_ManyFiguresAreFast(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time: runs in the long form")
	}
	const points, metrics = 1365, 48
	d := known()
	d.Exp.Points = nil
	for i := range points {
		d.Exp.Points = append(d.Exp.Points, record.Point{Key: fmt.Sprint("size=", i)})
	}
	for i := range metrics {
		d.Exp.Plan.Metrics = append(d.Exp.Plan.Metrics, experiment.Metric{
			Name: fmt.Sprint("metric", i), Unit: "By", Statistic: experiment.StatisticValue,
		})
	}
	var ratios []analysis.RatioResult
	for _, point := range d.Exp.Points {
		for _, metric := range d.Exp.Plan.Metrics {
			ratios = append(ratios, analysis.RatioResult{
				Point: point.Key, Candidate: "new", Metric: metric.Name, Statistic: metric.Statistic,
				PerBlock: map[string]float64{"w000-b0000": 1},
			})
		}
	}
	used := cputime.Start()
	Doubts(d, &selection.Parity{}, ratios)
	if took := used(); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
