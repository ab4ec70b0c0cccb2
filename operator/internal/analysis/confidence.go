package analysis

import (
	"strconv"

	"assay.dev/assay/operator/internal/experiment"
)

// confidence is the level of the intervals in results. Reading a ledger has checked the text already.
func confidence(exp *experiment.Experiment) float64 {
	return level(exp.Spec.Design.Confidence, 0.95)
}

// gateConfidence is the level of the intervals that gates are judged by. Runs frozen before there was one judged their gates
// by the intervals they showed, and are judged so for ever.
func gateConfidence(exp *experiment.Experiment) float64 {
	return level(exp.Spec.Design.GateConfidence, confidence(exp))
}

func level(text string, otherwise float64) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0.5 && value < 1) {
		return otherwise
	}
	return value
}
