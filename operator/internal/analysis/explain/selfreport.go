package explain

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Reports of a program about itself cannot be proven, but they can contradict the wall time and CPU time that the runner reads of its
// process. These warnings do not depend on the program's cooperation.

const (
	// clockSlack is the factor by which a time may exceed that of its process because two clocks were read. tickSlack is the error of CPU
	// time in seconds on a kernel that counts it in ticks of 100 Hz.
	clockSlack = 1.01
	tickSlack  = 0.01
	// overlapping is the allowed number of concurrent samples of a program that does not report its threads. Most have fewer.
	overlapping = 10
	// leastSaving is the share of the process's wall time that the reported saving must make up to be looked for there.
	leastSaving = 0.2
)

// selfReportWarnings name the arms whose reported figures contradict the runner's readings of their processes.
func selfReportWarnings(d *estimate.Data) []string {
	var out []string
	for arm, named := range d.Exp.Arms {
		for _, metric := range d.Exp.Plan.Metrics {
			scale, ok := experiment.InSeconds(metric.Unit)
			if !ok {
				continue
			}
			var beyond int
			var example string
			for point := range d.Exp.Points {
				for _, attempt := range d.Trials[selection.At(point, arm)] {
					why := contradicts(d, attempt, metric.Name, scale)
					if why == "" {
						continue
					}
					if beyond++; beyond == 1 {
						example = attempt.ID + " " + why
					}
				}
			}
			if beyond > 0 {
				out = append(out, fmt.Sprintf("arm %s contradicts the runner's readings in %d trials: %s; one of the two is measured wrongly",
					named.Name, beyond, example))
			}
			if !trial.IsCPUTime(metric.Name) {
				out = append(out, savingWarnings(d, arm, metric.Name, scale)...)
			}
		}
	}
	return out
}

// contradicts describes with both numbers how the reported times of a metric are impossible: CPU time beyond the runner's reading of
// its processes, one time longer than the process, or more time in total than its threads had. It returns "" otherwise.
func contradicts(d *estimate.Data, attempt *record.Attempt, name string, scale float64) string {
	metric, ok := attempt.Metric(name)
	if !ok {
		return ""
	}
	var longest, sum float64
	d.Chosen.Histograms.Each(metric, func(value float64, times int64) {
		longest, sum = max(longest, value), sum+value*float64(times)
	})
	longest, sum = longest*scale, sum*scale
	wall := attempt.DurationSeconds
	switch {
	case trial.IsCPUTime(name):
		if used := cpuSeconds(attempt); used != nil && sum > *used*clockSlack+tickSlack {
			return fmt.Sprintf("reports %s of %s in all and the runner read %s of CPU time", inSeconds(sum), name, inSeconds(*used))
		}
		return ""
	case longest > wall*clockSlack:
		return fmt.Sprintf("reports a %s of %s and its process lived %s by the runner's clock", name, inSeconds(longest), inSeconds(wall))
	}
	threads, known := threadsOf(attempt)
	if sum <= wall*threads*clockSlack {
		return ""
	}
	how := fmt.Sprintf("%g threads that it reports (effective.threads)", threads)
	if !known {
		how = fmt.Sprintf("the %g at a time that are allowed for where effective.threads is not reported", threads)
	}
	return fmt.Sprintf("reports %s of %s in all and its process lived %s by the runner's clock, too little for %s", inSeconds(sum), name,
		inSeconds(wall), how)
}

// inSeconds formats times in seconds, so that times in one sentence share a unit.
func inSeconds(value float64) string { return quantity.Plain(value, 4) + " s" }

// threadsOf returns the number of concurrent samples of a program, and whether the program reports it.
func threadsOf(attempt *record.Attempt) (threads float64, known bool) {
	switch threads := attempt.Reported().Effective["threads"].(type) {
	case float64:
		return max(1, threads), true
	case int64: // Strict decoding returns whole numbers as int64.
		return max(1, float64(threads)), true
	}
	return overlapping, false
}

// cpuSeconds returns the CPU time that the runner read for all processes of a trial; nil if a process has no reading.
func cpuSeconds(attempt *record.Attempt) *float64 {
	sum := 0.0
	add := func(used *record.Resources) bool {
		if used == nil || used.UserSeconds == nil || used.SystemSeconds == nil {
			return false
		}
		sum += *used.UserSeconds + *used.SystemSeconds
		return true
	}
	if !add(&attempt.Resources) {
		return nil
	}
	for i := range attempt.Roles {
		if !add(attempt.Roles[i].Resources) {
			return nil
		}
	}
	return &sum
}

// savingWarnings compare the saving that a candidate reports with the wall time of its processes. With as many samples as the
// baseline, run one after the other, saved time is missing from the wall time of the process, unless it is spent where the program
// does not measure.
func savingWarnings(d *estimate.Data, arm int, metric string, scale float64) []string {
	baseline := d.Exp.Baseline()
	if baseline < 0 || arm == baseline {
		return nil
	}
	for point, at := range d.Exp.Points {
		theirs, ok := reported(d.Trials[selection.At(point, baseline)], metric, scale)
		own, ok2 := reported(d.Trials[selection.At(point, arm)], metric, scale)
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
			"arm %s reports%s %s of %s in all where %s reports %s, and by the runner's clock its processes took %s against %s: "+
				"the reported saving is spent outside the measured time, or does not exist",
			d.Exp.Arms[arm].Name, where, inSeconds(own.sum), metric, d.Exp.Arms[baseline].Name, inSeconds(theirs.sum), inSeconds(own.wall),
			inSeconds(theirs.wall))}
	}
	return nil
}

// account holds the reported and the measured time of an arm's trials at a point, as medians over trials.
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
	return account{stats.Median(sums), stats.Median(walls), samples}, true
}
