package observe

import (
	"context"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// Whoever has a key of the namespace can write an analysis: what none of ours says is a damage of the ledger, as what is no JSON is.
func TestAnAnalysisThatCannotBeOursIsADamage(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  string
		says []string
	}{
		"what is no JSON": {"{", []string{"analysis/000/analysis.json", "unexpected end"}},
		"a verdict that no status may have": {`{"verdict": "Banana"}`,
			[]string{"analysis/000/analysis.json", `verdict is "Banana", which is none of Go, NoGo`}},
		"a candidate twice, which no status may have": {`{"candidates": [{"name": "a", "verdict": "Go"}, {"name": "a", "verdict": "Go"}]}`,
			[]string{"analysis/000/analysis.json", `candidates[1].name is "a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := ledger.Open(t.Context(), ledger.FolderURL(t.TempDir()), ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Create(t.Context(), ledger.AnalysisKey(0), []byte(tc.raw)); err != nil {
				t.Fatal(err)
			}
			world := &World{Observed: plan.Observed{Ledger: plan.LedgerState{Newest: &record.Wave{}}}}
			if err := away(t.Context(), world, readAnalysis(context.Background(), store, world, &remembered{})); err != nil {
				t.Fatal(err)
			}
			if world.Ledger.Problem != assayv1alpha1.ReasonLedgerDamaged || world.Analysis != nil || world.Ledger.Analysed {
				t.Errorf("problem %q, analysis %v", world.Ledger.Problem, world.Analysis)
			}
			for _, part := range append(tc.says, "delete it and it is made again") {
				if !strings.Contains(world.Ledger.Message, part) {
					t.Errorf("it says %q, without %q", world.Ledger.Message, part)
				}
			}
		})
	}
}
