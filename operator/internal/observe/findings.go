package observe

import (
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/plan"
)

// Findings is what an analysis says for the next plan.
func Findings(found *analysis.Analysis) plan.Findings {
	out := plan.Findings{
		Screened: found.Screened, Valid: found.ValidBlocks, Lost: found.LostBlocks, HalfWidth: found.RelativeHalfWidth,
		ConfirmValid: found.ConfirmBlocks, ConfirmLost: found.ConfirmLostBlocks, Unrun: found.Unrun,
	}
	for _, turn := range found.LostTurns {
		out.LostTurns = append(out.LostTurns, plan.LostTurn(turn))
	}
	for _, arm := range found.Search {
		out.Search = append(out.Search, plan.SearchedArm{Arm: arm.Arm, Levels: arm.Levels})
	}
	return out
}

// answers are those of a search, in a line.
func answers(found []analysis.SearchResult) string {
	var parts []string
	for _, result := range found {
		parts = append(parts, result.Arm+": "+result.Reason)
	}
	return strings.Join(parts, "; ")
}
