package html

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

// Every gate holds left of 1, for any operator, unit and bound.
func TestAllGates_EveryGateHoldsLeftOfItsBound(t *testing.T) {
	of := func(op experiment.Op, bound, low, value, high float64) *analysis.GateResult {
		estimate := analysis.Estimate{Value: value, Low: &low, High: &high}
		return &analysis.GateResult{Gate: "g", Candidate: "new", Op: op, Bound: &bound, Estimate: &estimate}
	}
	for name, c := range map[string]struct {
		gate  *analysis.GateResult
		drawn bool
		want  string
	}{
		"at most, holds":         {of(experiment.RatioAtMost, 2, 1, 1.2, 1.5), true, "0.50 0.60 0.75"},
		"at most, is missed":     {of(experiment.AtMost, 2, 4, 5, 6), true, "2.00 2.50 3.00"},
		"at least, holds":        {of(experiment.RatioAtLeast, 2, 4, 5, 8), true, "0.25 0.40 0.50"},
		"at least, is missed":    {of(experiment.AtLeast, 2, 1, 1.25, 1.6), true, "1.25 1.60 2.00"},
		"a difference":           {of(experiment.DifferenceAtMost, 2, 1, 2, 3), false, ""},
		"a figure of 0":          {of(experiment.AtMost, 2, 0, 0, 1), false, ""},
		"a bound of 0":           {of(experiment.AtMost, 0, 1, 2, 3), false, ""},
		"a gate without figures": {&analysis.GateResult{Op: experiment.ParityEqual}, false, ""},
	} {
		row, drawn := ofBound(c.gate)
		got := ""
		if drawn {
			got = fmt.Sprintf("%.2f %.2f %.2f", row.Low, row.Value, row.High)
		}
		if drawn != c.drawn || got != c.want {
			t.Errorf("%s: %v %s, want %v %s", name, drawn, got, c.drawn, c.want)
		}
	}
	var gates []analysis.GateResult
	for i := range 30 {
		high := 1 + float64(i)/10
		gates = append(gates, *of(experiment.AtMost, 1, 0.5, 0.6, high))
		gates[i].Gate = fmt.Sprintf("gate-%02d", i)
	}
	plot := allGates(gates)
	for _, svg := range []string{string(plot.Narrow), string(plot.Wide)} {
		first, second := strings.Index(svg, "gate-29"), strings.Index(svg, "gate-28")
		if plot.Shown != mostGates || plot.Left() != 6 || first < 0 || second < first || strings.Contains(svg, "gate-00") {
			t.Errorf("%d of %d gates, the least room at %d and the next at %d", plot.Shown, plot.All, first, second)
		}
	}
	if allGates(gates[:1]) != nil {
		t.Error("one gate has a plot of all")
	}
}

// A page of several gates has them on one axis, and one of a single gate does not.
func TestPage_AllGatesAreOnOneAxis(t *testing.T) {
	if page := simulated(t, nil, nil).page(t); strings.Count(page, `<figure class="one all">`) != 1 ||
		!strings.Contains(page, "Every gate in units of its own bound") {
		t.Error("the page lacks the plot of all gates")
	}
}
