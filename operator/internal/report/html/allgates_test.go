package html

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

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

// A figure is drawn left of 1 if it is in the region of its gate, whether the region has one end or two.
func TestWithin_FiguresInsideAreAtMostOne(t *testing.T) {
	regions := map[string]experiment.Region{"both ends": {Low: 0.5, High: 2}}
	for _, op := range experiment.Ops(experiment.SubjectRatio, experiment.SubjectLevel) {
		regions[string(op)] = experiment.Condition{Op: op, Bound: ptr.To(1.25)}.Region()
	}
	for name, region := range regions {
		for _, figure := range []float64{0.1, 0.4, 0.6, 1, 1.2, 1.3, 1.9, 2.1, 30} {
			inside := region.Low <= figure && figure <= region.High
			if row := within(region, figure, figure, figure); (row.Value <= 1) != inside || row.Low != row.Value || row.High != row.Value {
				t.Errorf("%s: %g is at %+v and inside: %v", name, figure, row, inside)
			}
		}
		for _, ends := range [][2]float64{{0.1, 0.4}, {0.4, 0.6}, {0.8, 1.2}, {0.6, 1.6}, {1.5, 3}, {0.1, 30}} {
			row := within(region, ends[0], (ends[0]+ends[1])/2, ends[1])
			for part := 0.0; part <= 1; part += 0.01 {
				figure := ends[0] + part*(ends[1]-ends[0])
				if at := within(region, figure, figure, figure).Value; at < row.Low-1e-9 || at > row.High+1e-9 {
					t.Errorf("%s: %g of %v is at %g, outside %+v", name, figure, ends, at, row)
				}
			}
		}
	}
}

// A page of several gates has them on one axis, and one of a single gate does not.
func TestPage_AllGatesAreOnOneAxis(t *testing.T) {
	if page := simulated(t, nil, nil).page(t); strings.Count(page, `<figure class="one all">`) != 1 ||
		!strings.Contains(page, "Every gate in units of its own bound") {
		t.Error("the page lacks the plot of all gates")
	}
}
