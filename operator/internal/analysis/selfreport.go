package analysis

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// What a program says of itself cannot be proven. The runner reads the wall time of its process, and what the program says
// can contradict that. These warnings hold whatever the program does.

// timeUnits are the units in which a program can report a time.
var timeUnits = map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60}

const (
	// clockSlack is how much longer than its process a time may seem because two clocks were read.
	clockSlack = 1.01
	// leastSaving is the share of the process's wall time that the reported saving must make up to be looked for there.
	leastSaving = 0.2
)

// selfReportWarnings name the arms whose own figures contradict the wall time of their processes.
func selfReportWarnings(d *data) []string {
	var out []string
	for arm, named := range d.exp.Arms {
		for _, metric := range d.exp.Template.Metrics {
			scale, ok := timeUnits[metric.Unit]
			if !ok {
				continue
			}
			var beyond int
			var example string
			for point := range d.exp.Points {
				for _, attempt := range d.trials[cell{point, arm}] {
					longest, ok := longestTime(attempt, metric.Name)
					if !ok || longest*scale <= attempt.DurationSeconds*clockSlack {
						continue
					}
					if beyond++; beyond == 1 {
						example = fmt.Sprintf("%s reports %s %s and its process lived %.4g s by the runner's clock", attempt.ID, metric.Name, withUnit(longest, metric.Unit), attempt.DurationSeconds)
					}
				}
			}
			if beyond > 0 {
				out = append(out, fmt.Sprintf("arm %s contradicts the clock in %d trials: %s; nothing that ran there can have taken that long", named.Name, beyond, example))
			}
			out = append(out, savingWarnings(d, arm, metric.Name, scale)...)
		}
	}
	return out
}

func withUnit(value float64, unit string) string { return fmt.Sprintf("%.4g %s", value, unit) }

// longestTime is the longest single time that an attempt reports of a metric.
func longestTime(attempt *record.Attempt, name string) (float64, bool) {
	metric, ok := attempt.Metric(name)
	switch {
	case !ok:
		return 0, false
	case metric.Value != nil:
		return *metric.Value, true
	case len(metric.Samples) > 0:
		return slices.Max(metric.Samples), true
	}
	return 0, false
}

// savingWarnings compare what a candidate says that it saves with what its processes took. With as many samples as the
// baseline, one after the other, time that is saved is missing from the wall time of the process, unless it is spent where
// the program does not measure.
func savingWarnings(d *data, arm int, metric string, scale float64) []string {
	baseline := slices.IndexFunc(d.exp.Arms, func(a record.Arm) bool { return a.Baseline })
	if baseline < 0 || arm == baseline {
		return nil
	}
	for point, at := range d.exp.Points {
		theirs, ok := reported(d.trials[cell{point, baseline}], metric, scale)
		own, ok2 := reported(d.trials[cell{point, arm}], metric, scale)
		if !ok || !ok2 || theirs.samples != own.samples || theirs.sum > theirs.wall || own.sum > own.wall {
			continue
		}
		saved, seen := theirs.sum-own.sum, theirs.wall-own.wall
		if saved < leastSaving*theirs.wall || seen >= saved/2 {
			continue
		}
		where := ""
		if at.Key != "" {
			where = " at " + at.Key
		}
		return []string{fmt.Sprintf(
			"arm %s reports%s %.4g s of %s in all where %s reports %.4g s, and by the runner's clock its processes took %.4g s against %.4g s: "+
				"what it says that it saves is spent outside what it measures, or is not saved",
			d.exp.Arms[arm].Name, where, own.sum, metric, d.exp.Arms[baseline].Name, theirs.sum, own.wall, theirs.wall)}
	}
	return nil
}

// account is what the trials of an arm at a point say that they took, and what they took: medians over trials.
type account struct {
	sum, wall float64
	samples   int
}

func reported(trials []*record.Attempt, metric string, scale float64) (account, bool) {
	var sums, walls []float64
	samples := 0
	for _, attempt := range trials {
		reported, _ := attempt.Metric(metric)
		found := reported.Samples
		if len(found) == 0 || samples > 0 && len(found) != samples {
			return account{}, false
		}
		samples = len(found)
		sum := 0.0
		for _, sample := range found {
			sum += sample * scale
		}
		sums, walls = append(sums, sum), append(walls, attempt.DurationSeconds)
	}
	if len(sums) == 0 {
		return account{}, false
	}
	return account{median(sums), median(walls), samples}, true
}
