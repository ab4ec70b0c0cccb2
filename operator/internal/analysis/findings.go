package analysis

import "assay.dev/assay/operator/internal/design"

// Findings is the part of the analysis that the next step of the design needs.
func (a *Analysis) Findings() design.Findings {
	out := design.Findings{
		Screened: a.Screened, Valid: a.ValidBlocks, Lost: a.LostBlocks, HalfWidth: a.RelativeHalfWidth,
		ConfirmValid: a.ConfirmBlocks, ConfirmLost: a.ConfirmLostBlocks, Unrun: a.Unrun,
		Cut: a.CutBlocks, ConfirmCut: a.ConfirmCutBlocks,
	}
	for _, turn := range a.LostTurns {
		out.LostTurns = append(out.LostTurns, design.LostTurn(turn))
	}
	for _, arm := range a.Search {
		out.Search = append(out.Search, design.SearchedArm{Arm: arm.Arm, Levels: arm.Levels})
	}
	return out
}
