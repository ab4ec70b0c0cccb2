package report

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

func TestReport_GatesShowDetectableEffect(t *testing.T) {
	gate := func(edit func(*analysis.GateResult)) analysis.GateResult {
		out := analysis.GateResult{
			Gate: "gain", Candidate: "new", Op: experiment.RatioAtMost, Estimate: &analysis.Estimate{Value: 1, Low: ptr.To(0.9), High: ptr.To(1.1), Blocks: 10},
			Series: &analysis.BlockSeries{Autocorrelation: ptr.To(-0.123), Skewness: ptr.To(0.5), Unexplained: ptr.To(1.25)},
		}
		edit(&out)
		return out
	}
	cases := map[string]struct {
		gate analysis.GateResult
		row  string // Empty: none.
		says string
	}{
		"independent and symmetric blocks": {gate(func(*analysis.GateResult) {}), "gain|new||10|-0.12|+0.50|1.2x||from the spread of blocks", "No interval was widened"},
		"blocks that depend on each other and are skewed": {
			gate(func(g *analysis.GateResult) { g.Series.Dependent, g.Series.Skewed = true, true }),
			"gain|new||10|-0.12|+0.50|1.2x||wider: blocks depend on each other, blocks are skewed", "1 of 1 intervals were widened",
		},
		"a clock of low resolution": {
			gate(func(g *analysis.GateResult) { g.Resolution = &analysis.Resolution{Relative: 0.0123, Widened: true} }),
			"gain|new||10|-0.12|+0.50|1.2x|1.2 %|wider: the clock resolution is low", "1 of 1",
		},
		"a clock that is fine enough": {
			gate(func(g *analysis.GateResult) { g.Resolution = &analysis.Resolution{Relative: 0.0001} }),
			"gain|new||10|-0.12|+0.50|1.2x|0.01 %|from the spread of blocks", "No interval",
		},
		"few blocks": {gate(func(g *analysis.GateResult) { g.Series = nil }), "gain|new||10|||||from the spread of blocks, and too few or too similar to show more", "No interval"},
		"a percentile": {
			gate(func(g *analysis.GateResult) { g.Series, g.Statistic = nil, experiment.StatisticP95 }), "gain|new||10|||||drawn from whole blocks",
			"No interval",
		},
		"no interval":         {gate(func(g *analysis.GateResult) { g.Series, g.Estimate = nil, nil }), "gain|new|||||||not there", "No gate on a figure has an interval"},
		"outputs have none":   {gate(func(g *analysis.GateResult) { g.Op = experiment.ParityEqual }), "", ""},
		"completing has none": {gate(func(g *analysis.GateResult) { g.Op = experiment.Completes }), "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			says, table := Series(&analysis.Analysis{Gates: []analysis.GateResult{c.gate}})
			got := ""
			for _, row := range table.Rows {
				got += strings.Join(row, "|")
			}
			if got != c.row || !strings.HasPrefix(says, c.says) || (says == "") != (c.says == "") {
				t.Errorf("%s\n%s\nwant %s\n%s", says, got, c.says, c.row)
			}
		})
	}
}
