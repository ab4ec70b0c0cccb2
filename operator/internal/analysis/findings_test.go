package analysis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/design"
)

func TestFindings_IncludeLostBlocks(t *testing.T) {
	found := Analysis{
		ValidBlocks: 7, LostBlocks: 2, ConfirmBlocks: 3, ConfirmLostBlocks: 1, CutBlocks: 4, ConfirmCutBlocks: 5, Unrun: []string{"w000-b0009"},
		LostTurns: []LostTurn{{Block: "w000-b0001", Point: "size=1", Arm: "new"}},
	}
	want := design.Findings{
		Valid: 7, Lost: 2, ConfirmValid: 3, ConfirmLost: 1, Cut: 4, ConfirmCut: 5, Unrun: []string{"w000-b0009"},
		LostTurns: []design.LostTurn{{Block: "w000-b0001", Point: "size=1", Arm: "new"}},
	}
	if diff := cmp.Diff(want, found.Findings()); diff != "" {
		t.Error(diff)
	}
}
