package judge

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/quantity"
)

// Predictions compares the author's predictions with the measurements.
func Predictions(d *estimate.Data, parity *selection.Parity) []analysis.PredictionResult {
	var out []analysis.PredictionResult
	for _, prediction := range d.Exp.Plan.Predictions {
		predicted, metric := prediction.Ratio, d.Exp.Metric(prediction.Metric)
		selection.VisitPlaces(d.Exp, prediction.Candidate, prediction.At, func(candidate string, point int) {
			result := analysis.PredictionResult{Metric: metric.Name, Point: d.Exp.Points[point].Key, Candidate: candidate, Predicted: predicted}
			if parity.Refused(candidate) == "" {
				result.Measured = d.Ratio(point, selection.ArmIndex(d.Exp, candidate), metric.Name, metric.Statistic).Ratio()
			}
			_, result.Message = JudgePrediction(predicted, result.Measured)
			out = append(out, result)
		})
	}
	return out
}

// JudgePrediction reports whether a prediction was missed, by more than a factor of two or in its direction.
func JudgePrediction(predicted float64, measured *analysis.Estimate) (missed bool, message string) {
	if measured == nil {
		return false, "not measured"
	}
	off := measured.Value / predicted
	text := fmt.Sprintf("predicted %s, measured %s", quantity.Format(predicted, quantity.Times), analysis.Describe(measured))
	switch {
	case measured.High != nil && predicted > 1 && *measured.High < 1, measured.Low != nil && predicted < 1 && *measured.Low > 1:
		return true, text + ": the effect has the opposite direction"
	case off > 2:
		return true, fmt.Sprintf("%s: %s times the prediction", text, quantity.Decimals(off, 1))
	case off == 0:
		return true, text + ": the measured ratio is 0"
	case off < 0.5:
		return true, fmt.Sprintf("%s: 1/%s of the prediction", text, quantity.Decimals(1/off, 1))
	default:
		return false, text + ": within a factor of two"
	}
}
