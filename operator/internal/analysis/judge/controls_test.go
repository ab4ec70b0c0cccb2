package judge

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// nulls returns the data of a null arm in eight blocks of each point, at the given number of standard errors from the baseline.
func nulls(errors []float64) *estimate.Data {
	exp := known().Exp
	exp.Arms = append(exp.Arms, record.Arm{Name: "null", Null: true})
	exp.Points = append(exp.Points, record.Point{Key: "size=3"})[:len(errors)]
	exp.Plan.Design.GateConfidence = 0.95
	exp.Plan.Metrics = []experiment.Metric{{Name: "items", Statistic: experiment.StatisticMean}}
	exp.Plan.Gates = []experiment.Gate{{
		Condition: experiment.Condition{Metric: "items", Op: experiment.RatioAtLeast, Bound: ptr.To(1.0)}, Severity: experiment.Blocking,
	}}
	chosen := &selection.Selection{Admission: selection.Admission{Cells: map[*record.Attempt]selection.Cell{}}}
	for point, t := range errors {
		for block := range 8 {
			around := []float64{0.01, -0.01}[block%2] + t*0.01/math.Sqrt(7)
			for arm, value := range map[int]float64{0: 1, 3: math.Exp(around)} {
				attempt := &record.Attempt{Block: record.BlockName(0, block), Result: &record.Result{
					Metrics: map[string]*record.Metric{"items": {Value: ptr.To(value)}},
				}}
				chosen.Used, chosen.Cells[attempt] = append(chosen.Used, attempt), selection.At(point, arm)
			}
		}
	}
	return estimate.New(exp, chosen, nil)
}

// Of many controls some would seem to move by accident. Student's t of eight blocks is 2.36 at the level of one, 2.84 at half of it and
// 3.13 at a third.
func TestControls_ShareTheLevelOfOneGate(t *testing.T) {
	for name, c := range map[string]struct {
		errors []float64
		moved  []bool
	}{
		"alone one moves at the level of a gate":              {[]float64{2.5}, []bool{true}},
		"and not below it":                                    {[]float64{2.2}, []bool{false}},
		"one of two has half of it":                           {[]float64{2.7, 0}, []bool{false, false}},
		"and moves beyond that":                               {[]float64{0, 3}, []bool{false, true}},
		"beside one that moved by far the other one is alone": {[]float64{9, 2.5}, []bool{true, true}},
		"whichever is the first":                              {[]float64{-2.5, -9}, []bool{true, true}},
		"of the two that are left then each has half":         {[]float64{2.7, 9, 2.7}, []bool{false, true, false}},
		"and the last one all of it":                          {[]float64{9, 2.5, 3}, []bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			found := judgeControls(nulls(c.errors), &selection.Parity{})
			if len(found) != len(c.moved) {
				t.Fatalf("%d controls, want %d", len(found), len(c.moved))
			}
			for i := range found {
				if found[i].Moved != c.moved[i] {
					t.Errorf("at %s it moved: %v, want %v: %s", found[i].Point, found[i].Moved, c.moved[i], found[i].Message)
				}
			}
		})
	}
}

// Of figures of 0 there is no ratio, so that a control says how far it moved in their unit.
func TestControls_MovedControlReportsItsDistance(t *testing.T) {
	for name, c := range map[string]struct {
		baseline float64
		want     string
	}{
		"beside 1":            {1, "items mean of the null arm null at size=1 is 1.035x [1.025, 1.044] of the baseline's and nothing was changed there"},
		"beside a count of 0": {0, "is 1.035 items [1.025, 1.044] from the baseline's and nothing was changed there"},
	} {
		t.Run(name, func(t *testing.T) {
			d := nulls([]float64{9})
			d.Exp.Plan.Metrics[0].Unit = "items"
			for _, attempt := range d.Trials[selection.At(0, 0)] {
				attempt.Result.Metrics["items"].Value = ptr.To(c.baseline)
			}
			says(t, judgeControls(d, &selection.Parity{})[0].Message, c.want)
		})
	}
}

// A control phase is of one candidate, and the null arm, which is the baseline, of every comparison in its metric.
func TestDoubts_ControlDoubtHasTheFigureOfTheControl(t *testing.T) {
	d := nulls([]float64{9})
	d.Exp.Plan.Design.ControlPhases = []string{"load"} // No trial reports it.
	ratios := []analysis.RatioResult{{
		Point: "size=1", Metric: "items", Statistic: experiment.StatisticMean, PerBlock: map[string]float64{"w000-b0000": 1},
	}}
	var got []string
	for _, doubt := range Doubts(d, &selection.Parity{}, ratios) {
		if doubt.Reason == analysis.CapControlMoved || doubt.Reason == analysis.CapControlMissing {
			got = append(got, fmt.Sprintf("%s of arms %q and metric %q", doubt.Reason, doubt.Arms, doubt.Metric))
		}
	}
	want := []string{
		`control-moved of arms [] and metric "items"`,
		`control-missing of arms ["new"] and metric ""`,
		`control-missing of arms ["newer"] and metric ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
