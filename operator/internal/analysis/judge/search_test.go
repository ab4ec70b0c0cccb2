package judge

import (
	"math"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

func TestSearch_UnfinishedTrialIsUncertain(t *testing.T) {
	exp := &experiment.Experiment{Plan: experiment.Plan{Search: &experiment.Search{}}}
	d := &estimate.Data{Chosen: &selection.Selection{}, Measured: map[selection.Cell]map[string]bool{}, Exp: exp}
	one := &selection.Completion{Of: 4, Done: 3, Unknown: 1, Unseen: "w000-b0000-s00001", How: selection.LostUnfinished}
	got := judgeLoad(d, selection.Cell{}, 4, one)
	if got.Outcome != "Uncertain" || !strings.Contains(got.Constraint, "begun and never ended") {
		t.Errorf("%+v", got)
	}
}

// A load is held against each constraint, here of figures a tenth around 1. One that is missed decides, and is named; else the first one
// that is open.
func TestSearch_LoadNamesDecidingConstraint(t *testing.T) {
	const holds, missed, open, below = 0.5, 2, 0.999, 1.001 // Of the last one the estimate misses the bound.
	unknown := &selection.Completion{Of: 9, Done: 8, Unknown: 1, Unseen: "w000-b0008-s00000", How: selection.LostUnfinished}
	for name, c := range map[string]struct {
		bounds    []float64
		completed *selection.Completion
		outcome   search.Outcome
		names     string
		breached  bool
	}{
		"all hold":                         {[]float64{holds, 0.6}, nil, search.Feasible, "", false},
		"the second is missed":             {[]float64{holds, missed}, nil, search.Infeasible, "at least 2.000", true},
		"of two that are missed the first": {[]float64{missed, 3}, nil, search.Infeasible, "at least 2.000", true},
		"one is open":                      {[]float64{open, holds}, nil, search.Uncertain, "at least 0.999", false},
		"of two that are open the first":   {[]float64{holds, open, below}, nil, search.Uncertain, "at least 0.999", true},
		"one that holds after it does not excuse an estimate below its bound": {
			[]float64{below, holds}, nil, search.Uncertain, "at least 1.001", true,
		},
		"one is open and a later one missed": {[]float64{open, missed, below}, nil, search.Infeasible, "at least 2.000", true},
		"one is missed and a later one open": {[]float64{missed, open}, nil, search.Infeasible, "at least 2.000", true},
		"a trial has an unknown end":         {[]float64{holds, open}, unknown, search.Uncertain, "completing: trial w000-b0008-s00000", false},
		"and one is missed":                  {[]float64{open, missed}, unknown, search.Infeasible, "at least 2.000", true},
	} {
		t.Run(name, func(t *testing.T) {
			exp := known().Exp
			exp.Points, exp.Arms, exp.Plan.Design.GateConfidence = exp.Points[:1], exp.Arms[:1], 0.95
			exp.Plan.Metrics = []experiment.Metric{{Name: "items", Unit: "items", Statistic: experiment.StatisticMean}}
			exp.Plan.Search = &experiment.Search{}
			for _, bound := range c.bounds {
				exp.Plan.Search.SubjectTo = append(exp.Plan.Search.SubjectTo, experiment.Condition{
					Metric: "items", Statistic: experiment.StatisticMean, Op: experiment.AtLeast, Bound: ptr.To(bound),
				})
			}
			chosen := &selection.Selection{Admission: selection.Admission{Cells: map[*record.Attempt]selection.Cell{}}}
			for block := range 8 {
				attempt := &record.Attempt{Block: record.BlockName(0, block), Result: &record.Result{Metrics: map[string]*record.Metric{
					"items": {Unit: "items", Value: ptr.To(1 + 0.1*math.Pow(-1, float64(block)))},
				}}}
				chosen.Used, chosen.Cells[attempt] = append(chosen.Used, attempt), selection.At(0, 0)
			}
			got := judgeLoad(estimate.New(exp, chosen, nil), selection.At(0, 0), 8, c.completed)
			says(t, got.Constraint, c.names)
			if got.Outcome != c.outcome || got.Breached != c.breached || got.Blocks != 8 {
				t.Errorf("%+v, want %s, breached %v", got, c.outcome, c.breached)
			}
		})
	}
}
