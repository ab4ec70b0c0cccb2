package report

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
)

func TestReport_RejectedTrialsShowBothVerdicts(t *testing.T) {
	estimate := func(value, half float64) *analysis.Estimate {
		return &analysis.Estimate{Value: value, Unit: "1", Ratio: true, Low: ptr.To(value - half), High: ptr.To(value + half), Blocks: 10}
	}
	gate := func(with experiment.Verdict) analysis.GateResult {
		return analysis.GateResult{
			Gate: "gain", Candidate: "new", Severity: experiment.Blocking, Outcome: experiment.VerdictInconclusive, Estimate: estimate(1.06, 0.01),
			WithRejected: &analysis.Recomputed{Outcome: with, Without: experiment.VerdictGo, Estimate: estimate(0.93, 0.08), Rejected: 6},
		}
	}
	cases := map[string]struct {
		gates []analysis.GateResult
		says  string
		rows  int
		line  string
	}{
		"nothing rejected, nothing said": {gates: []analysis.GateResult{{Gate: "gain"}}},
		"both say the same":              {gates: []analysis.GateResult{gate(experiment.VerdictGo)}, says: "Every gate has the same outcome"},
		"they differ": {
			gates: []analysis.GateResult{gate(experiment.VerdictNoGo), gate(experiment.VerdictGo)}, says: "1 of 2 gates have another outcome", rows: 1,
			line: "gain of new at the only point: without them Go 1.060x [1.050, 1.070], with 6 of them NoGo 0.9300x [0.8500, 1.010]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := &analysis.Analysis{Gates: tc.gates}
			says, table := Recomputed(result)
			if !strings.HasPrefix(says, tc.says) || (tc.says == "") != (says == "") || len(table.Rows) != tc.rows {
				t.Errorf("says %q with %d rows, want %q with %d", says, len(table.Rows), tc.says, tc.rows)
			}
			if lines := strings.Join(recomputedLines(result), "\n"); !strings.Contains(lines, tc.line) {
				t.Errorf("the terminal shows %q, want %q", lines, tc.line)
			}
		})
	}
}

func TestReport_ReadingsBeyondLimitsByArm(t *testing.T) {
	quiet := analysis.ArmNoise{Arm: "old", Trials: 20}
	if rows := ArmNoise(&analysis.Analysis{Noise: []analysis.ArmNoise{quiet}}).Rows; rows != nil {
		t.Errorf("rows %v of a quiet run", rows)
	}
	loud := analysis.ArmNoise{Arm: "new", Trials: 20, Rejected: 1, Beyond: map[noise.Kind]int{noise.Canary: 3, noise.OtherWork: 1}}
	rows := ArmNoise(&analysis.Analysis{Noise: []analysis.ArmNoise{quiet, loud}}).Rows
	if len(rows) != 2 || strings.Join(rows[1], "|") != "new|20|1|otherWork 1, canary 3" {
		t.Errorf("rows %v", rows)
	}
}
