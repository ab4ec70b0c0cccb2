package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/plan"
)

func TestThePlannerIsToldWhatWasLost(t *testing.T) {
	got := Findings(&analysis.Analysis{
		ValidBlocks: 7, LostBlocks: 2, ConfirmBlocks: 3, ConfirmLostBlocks: 1, Unrun: []string{"w000-b0009"},
		LostTurns: []analysis.LostTurn{{Block: "w000-b0001", Point: "size=1", Arm: "new"}},
	})
	want := plan.Findings{
		Valid: 7, Lost: 2, ConfirmValid: 3, ConfirmLost: 1, Unrun: []string{"w000-b0009"},
		LostTurns: []plan.LostTurn{{Block: "w000-b0001", Point: "size=1", Arm: "new"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
