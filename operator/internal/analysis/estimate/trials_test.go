package estimate

import (
	"fmt"
	"math"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// trials builds the data of one metric, trial by trial, for tests that calculate the expected figures themselves.
type trials struct {
	exp    *experiment.Experiment
	chosen *selection.Selection
}

// seconds is the metric of most tests.
var seconds = experiment.Metric{Name: "time", Unit: "s", Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticValue}

// newTrials returns data without trials. The first of several arms is the baseline.
func newTrials(metric experiment.Metric, points, arms int) *trials {
	exp := &experiment.Experiment{Plan: experiment.Plan{
		Metrics: []experiment.Metric{metric}, Design: experiment.Design{Confidence: 0.95, GateConfidence: 0.99, Seed: 1},
	}}
	for point := range points {
		exp.Points = append(exp.Points, record.Point{Key: fmt.Sprintf("p=%d", point)})
	}
	for arm := range arms {
		exp.Arms = append(exp.Arms, record.Arm{Name: fmt.Sprintf("arm%d", arm), Baseline: arm == 0 && arms > 1})
	}
	chosen := &selection.Selection{Admission: selection.Admission{
		Cells: map[*record.Attempt]selection.Cell{}, Kinds: map[*record.Attempt]selection.Rejection{},
	}}
	return &trials{exp, chosen}
}

// attempt adds an attempt that took a second and started a second after the one before it.
func (t *trials) attempt(c selection.Cell, block string) *record.Attempt {
	number := len(t.chosen.Cells)
	out := &record.Attempt{
		ID: fmt.Sprintf("pod/t%04d", number), Trial: fmt.Sprintf("t%04d", number), Block: block, Slot: number, Arm: t.exp.Arms[c.Arm].Name,
		StartedAt: time.Unix(int64(number), 0), DurationSeconds: 1, Outcome: record.Succeeded,
	}
	t.chosen.Cells[out] = c
	return out
}

// add adds a trial that counts. One value is the figure of the trial, and several are samples.
func (t *trials) add(c selection.Cell, block string, values ...float64) *record.Attempt {
	out, metric := t.attempt(c, block), &t.exp.Plan.Metrics[0]
	reported := &record.Metric{Unit: metric.Unit, Samples: values}
	if len(values) == 1 {
		reported = &record.Metric{Unit: metric.Unit, Value: &values[0]}
	}
	out.Result = &record.Result{Metrics: map[string]*record.Metric{metric.Name: reported}}
	t.chosen.Used, t.chosen.Judged = append(t.chosen.Used, out), append(t.chosen.Judged, out)
	return out
}

// addBlocks adds a trial in each block b00, b01 and so on.
func (t *trials) addBlocks(arm int, values ...float64) {
	for i, value := range values {
		t.add(selection.At(0, arm), fmt.Sprintf("b%02d", i), value)
	}
}

// timeOut adds a trial that a timeout ended.
func (t *trials) timeOut(c selection.Cell, block string) *record.Attempt {
	out := t.attempt(c, block)
	out.Outcome, t.chosen.Kinds[out] = record.TimedOut, selection.Failed
	return out
}

func (t *trials) data() *Data { return New(t.exp, t.chosen, nil) }

// of returns a statistic of the metric of an arm at the first point.
func (t *trials) of(arm int, statistic experiment.Statistic) Quantity {
	return Quantity{selection.At(0, arm), t.exp.Plan.Metrics[0].Name, statistic}
}

// near reports whether two numbers are equal up to rounding.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*max(1e-3, math.Abs(a), math.Abs(b))
}

// wantEnds compares the ends of an interval at a confidence, on the working scale.
func wantEnds(t *testing.T, found Inference, confidence, low, high float64) {
	t.Helper()
	if !found.HasInterval() {
		t.Fatalf("no interval: %s", found.Reason)
	}
	if a, b := found.Ends(confidence); !near(a, low) || !near(b, high) {
		t.Errorf("[%.12g, %.12g] at %g, want [%.12g, %.12g]", a, b, confidence, low, high)
	}
}
