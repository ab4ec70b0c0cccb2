package estimate

import (
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Arms returns every metric of every arm at every point. An arm with wrong outputs has none.
func Arms(d *Data, parity *selection.Parity) []analysis.ArmResult {
	out := []analysis.ArmResult{}
	for point := range d.Exp.Points {
		for arm := range d.Exp.Arms {
			if parity.Wrong[d.Exp.Arms[arm].Name] != "" {
				continue
			}
			c := selection.At(point, arm)
			ceiling := d.BindingCeiling(c)
			for _, metric := range d.Exp.Metrics() {
				for _, statistic := range d.Exp.Statistics(metric) {
					estimate := d.Level(Quantity{c, metric.Name, statistic}).Estimate(metric.Unit)
					if estimate == nil || !d.EnoughSamples(c, metric.Name, statistic) {
						continue
					}
					result := analysis.ArmResult{
						Point: d.Exp.Points[point].Key, Arm: d.Exp.Arms[arm].Name, Metric: metric.Name, Statistic: statistic, Estimate: *estimate,
						Clock: d.Unresolved(Quantity{c, metric.Name, statistic}),
					}
					if ceiling != nil {
						result.Ceiling, result.ShareOfCeiling = ceiling.Name, stats.Finite(ceiling.Share)
					}
					out = append(out, result)
				}
			}
		}
	}
	return out
}

// Ceiling is the share of one physical limit that an arm achieved, as the mean over its trials. Limits measured in different ways are
// distinct.
type Ceiling struct {
	Name  string
	Share float64
}

// BindingCeiling returns the limit that the arm came closest to, among the limits that its processes measured with an achieved value. On a
// tie it returns the one reported first.
func (d *Data) BindingCeiling(c selection.Cell) *Ceiling {
	var names []string
	shares := map[string][]float64{}
	for _, attempt := range d.Trials[c] {
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
	var closest *Ceiling
	for _, name := range names {
		if share := stats.Mean(shares[name]); closest == nil || share > closest.Share {
			closest = &Ceiling{name, share}
		}
	}
	return closest
}

// Phases is the mean time of every phase per iteration.
func Phases(d *Data, parity *selection.Parity) []analysis.PhaseResult {
	var out []analysis.PhaseResult
	for point := range d.Exp.Points {
		for arm := range d.Exp.Arms {
			if parity.Wrong[d.Exp.Arms[arm].Name] != "" {
				continue
			}
			names, series := d.Phases(selection.At(point, arm))
			for _, name := range names {
				found := studentInference(BlockMeans(series[name].Blocks, false), d.Confidence, false)
				found = d.onClock(found, ofPhase(selection.At(point, arm), name))
				found.samples = series[name].samples
				if estimate := found.Estimate("s"); estimate != nil {
					out = append(out, analysis.PhaseResult{Point: d.Exp.Points[point].Key, Arm: d.Exp.Arms[arm].Name, Phase: name, Estimate: *estimate})
				}
			}
		}
	}
	return out
}

// phasePrefix makes of the name of a phase that of a quantity; no metric has a space in its name.
const phasePrefix = "phase "

// ofPhase returns the mean time of a phase as a quantity, which has a clock like any time.
func ofPhase(c selection.Cell, phase string) Quantity {
	return Quantity{c, phasePrefix + phase, experiment.StatisticMean}
}

// phaseTimes returns the mean times that an attempt reports for a phase, mostly one or none.
func phaseTimes(attempt *record.Attempt, name string) (out []float64) {
	for _, phase := range attempt.Reported().Phases {
		if average, samples := phase.Mean(); phase.Name == name && samples > 0 {
			out = append(out, average)
		}
	}
	return out
}

// PhaseSeries are the times of one phase in the trials of a cell, by block.
type PhaseSeries struct {
	Blocks  map[string][]float64
	samples int
}

// A program chooses the names of its phases, and may choose others in every trial. So the number of phases of a cell is limited to that of
// one trial, and with many cells to the size limit of an analysis: six in each of 4,096.
const (
	mostPhases    = 64
	mostAllPhases = 6 * 4096
)

// MostPhases returns the largest number of phases of a cell in the analysis, in the order of the reports.
func (d *Data) MostPhases() int {
	return max(1, min(mostPhases, mostAllPhases/max(1, len(d.Exp.Points)*len(d.Exp.Arms))))
}

// Phases are the mean seconds per iteration of every trial by block, and the names in the order the process reports them.
func (d *Data) Phases(c selection.Cell) ([]string, map[string]PhaseSeries) {
	var names []string
	most := d.MostPhases()
	series := map[string]PhaseSeries{}
	for _, attempt := range d.Trials[c] {
		for _, phase := range attempt.Reported().Phases {
			average, samples := phase.Mean()
			if samples == 0 {
				continue
			}
			s, known := series[phase.Name]
			if !known {
				if len(names) == most {
					continue
				}
				names = append(names, phase.Name)
				s.Blocks = map[string][]float64{}
			}
			s.Blocks[attempt.Block] = append(s.Blocks[attempt.Block], average)
			s.samples += samples
			series[phase.Name] = s
		}
	}
	return names, series
}
