package analysis

import (
	"fmt"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// armResults shows every metric of every arm at every point. An arm whose outputs are wrong has none.
func armResults(d *data, parity *parityReport) []ArmResult {
	out := []ArmResult{}
	for point := range d.exp.Points {
		for arm := range d.exp.Arms {
			if parity.wrong[d.exp.Arms[arm].Name] != "" {
				continue
			}
			c := cell{point, arm}
			ceiling := d.bindingCeiling(c)
			for _, metric := range d.exp.Metrics() {
				for _, statistic := range statistics(d.exp, metric) {
					estimate := d.level(quantityOf{c, metric.Name, statistic}).estimate(metric.Unit)
					if estimate == nil || !d.enoughSamples(c, metric.Name, statistic) {
						continue
					}
					result := ArmResult{
						Point: d.exp.Points[point].Key, Arm: d.exp.Arms[arm].Name, Metric: metric.Name, Statistic: statistic, Estimate: *estimate,
					}
					if ceiling != nil {
						result.Ceiling, result.ShareOfCeiling = ceiling.name, finite(ceiling.share)
					}
					out = append(out, result)
				}
			}
		}
	}
	return out
}

// ceiling is what an arm achieved of one physical limit, as the mean over its trials. A limit measured in another way is another one.
type ceiling struct {
	name  string
	share float64
}

// ceilings are those that the arm's processes measured and could compare themselves with, in the order they report them.
func (d *data) ceilings(c cell) []ceiling {
	var names []string
	shares := map[string][]float64{}
	for _, attempt := range d.trials[c] {
		for _, reported := range attempt.Reported().Ceilings {
			if reported.Achieved == nil {
				continue
			}
			name := reported.String()
			if shares[name] == nil {
				names = append(names, name)
			}
			shares[name] = append(shares[name], *reported.Achieved/reported.Limit)
		}
	}
	var out []ceiling
	for _, name := range names {
		out = append(out, ceiling{name, mean(shares[name])})
	}
	return out
}

// bindingCeiling is the limit that the arm came closest to.
func (d *data) bindingCeiling(c cell) *ceiling {
	var closest *ceiling
	for _, candidate := range d.ceilings(c) {
		if closest == nil || candidate.share > closest.share {
			closest = &candidate
		}
	}
	return closest
}

// phaseResults is the mean time of every phase per iteration.
func phaseResults(d *data, parity *parityReport) []PhaseResult {
	var out []PhaseResult
	for point := range d.exp.Points {
		for arm := range d.exp.Arms {
			if parity.wrong[d.exp.Arms[arm].Name] != "" {
				continue
			}
			names, series := d.phases(cell{point, arm})
			for _, name := range names {
				found := studentInference(blockMeans(series[name].blocks, false), d.confidence, false)
				found.samples = series[name].samples
				if estimate := found.estimate("s"); estimate != nil {
					out = append(out, PhaseResult{Point: d.exp.Points[point].Key, Arm: d.exp.Arms[arm].Name, Phase: name, Estimate: *estimate})
				}
			}
		}
	}
	return out
}

type phaseSeries struct {
	blocks  map[string][]float64
	samples int
}

// phases are the mean seconds per iteration of every trial by block, and the names in the order the process reports them.
func (d *data) phases(c cell) ([]string, map[string]*phaseSeries) {
	var names []string
	series := map[string]*phaseSeries{}
	for _, attempt := range d.trials[c] {
		for _, phase := range attempt.Reported().Phases {
			average, samples := phase.Mean()
			if samples == 0 {
				continue
			}
			s := series[phase.Name]
			if s == nil {
				names = append(names, phase.Name)
				s = &phaseSeries{blocks: map[string][]float64{}}
				series[phase.Name] = s
			}
			s.blocks[attempt.Block] = append(s.blocks[attempt.Block], average)
			s.samples += samples
		}
	}
	return names, series
}

// comparePredictions sets what the author expected beside what was measured.
func comparePredictions(d *data, parity *parityReport) []PredictionResult {
	var out []PredictionResult
	for _, prediction := range d.exp.Plan.Predictions {
		predicted, metric := prediction.Ratio, d.exp.Metric(prediction.Metric)
		for _, candidate := range d.exp.Candidates() {
			if prediction.Candidate != "" && prediction.Candidate != candidate {
				continue
			}
			for point := range d.exp.Points {
				if !experiment.Matches(prediction.At, d.exp.Points[point].Parameters) {
					continue
				}
				result := PredictionResult{
					Metric: metric.Name, Point: d.exp.Points[point].Key, Candidate: candidate, Predicted: predicted,
				}
				if parity.refused(candidate) == "" {
					result.Measured = d.ratio(point, armIndex(d.exp, candidate), metric.Name, metric.Statistic).ratio()
				}
				_, result.Message = judgePrediction(predicted, result.Measured)
				out = append(out, result)
			}
		}
	}
	return out
}

// judgePrediction reports whether a prediction was missed: by more than a factor of two, or in its direction.
func judgePrediction(predicted float64, measured *Estimate) (missed bool, message string) {
	if measured == nil {
		return false, "not measured"
	}
	off := measured.Value / predicted
	text := fmt.Sprintf("predicted %s, measured %s", quantity.Format(predicted, quantity.Times), Describe(measured))
	switch {
	case measured.High != nil && predicted > 1 && *measured.High < 1, measured.Low != nil && predicted < 1 && *measured.Low > 1:
		return true, text + ": the change goes the other way"
	case off > 2:
		return true, fmt.Sprintf("%s: %.1f times what was predicted", text, off)
	case off < 0.5:
		return true, fmt.Sprintf("%s: 1/%.1f of what was predicted", text, 1/off)
	default:
		return false, text + ": within a factor of two"
	}
}
