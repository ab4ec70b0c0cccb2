package selection

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// A result that nothing can be read from is a failure of the program, as a crash is: were it only left out, a program would win by
// keeping silent about the trials that went badly.

// Numbers beyond the smallest and the largest prefix of the SI (quecto and quetta, 27th CGPM 2022) mean nothing in any base unit.
const (
	smallestNumber = 1e-30
	largestNumber  = 1e30
	// longestTime, in seconds, is some three centuries: no trial takes longer, and a duration in nanoseconds could not hold it.
	longestTime = 9e9
)

// need is a statistic of a metric that a gate looks at in a cell.
type need struct {
	metric    string
	statistic experiment.Statistic
	// positive reports whether the gate takes a ratio of it.
	positive bool
}

// needs are what the gates and constraints look at, by cell. A ratio needs both of its arms, and the null arm beside them.
func needs(exp *experiment.Experiment) map[Cell][]need {
	out := map[Cell][]need{}
	add := func(c Cell, of experiment.Condition, positive bool) {
		// What the runner reads of a process is nothing that a program could leave out.
		if of.Metric != "" && !strings.HasPrefix(of.Metric, record.ProcessPrefix) {
			out[c] = append(out[c], need{of.Metric, of.Statistic, positive})
		}
	}
	VisitGates(exp, func(gate experiment.Gate, candidate string, point int) {
		add(Cell{point, ArmIndex(exp, candidate)}, gate.Condition, gate.Op.Relative())
		for arm := range exp.Arms {
			if gate.Op.Relative() && (exp.Arms[arm].Baseline || exp.Arms[arm].Null) {
				add(Cell{point, arm}, gate.Condition, true)
			}
		}
	})
	if exp.Plan.Search != nil {
		for _, constraint := range exp.Plan.Search.SubjectTo {
			for point := range exp.Points {
				for arm := range exp.Arms {
					add(Cell{point, arm}, constraint, false)
				}
			}
		}
	}
	return out
}

// rejectUnusable drops attempts that contradict themselves, or whose result contradicts the template or gives a gate nothing. It
// marks those of executions that do not count, where they are losses too.
func (s *Selection) rejectUnusable(exp *experiment.Experiment, attempts []*record.Attempt) []*record.Attempt {
	asked := needs(exp)
	promised := promisesOf(exp, attempts)
	unusable := func(attempt *record.Attempt) string {
		reason := succeededAgainst(attempt)
		switch {
		case reason != "":
		case attempt.Result == nil && exp.Plan.Workload.Output.Format == format.None: // Its program reports nothing.
		case attempt.Result == nil:
			reason = "it succeeded and holds no result"
		default:
			reason = cmp.Or(s.checkResult(exp, attempt.Result), promised.broken(attempt))
		}
		for _, n := range asked[s.Cells[attempt]] {
			if reason == "" {
				reason = s.checkNeed(attempt.Reported(), n)
			}
		}
		return reason
	}
	out := s.keep(attempts, Unusable, unusable)
	for attempt, kind := range s.Kinds {
		if slices.Contains(notCounting, kind) && !attempt.Warmup && attempt.Outcome == record.Succeeded && unusable(attempt) != "" {
			s.useless[attempt] = true
		}
	}
	return out
}

// promises are, by metric and value of the parameter that fixes how many samples a trial has (samplesFrom), how many that is, where trials
// keep to it. One with fewer lost the others, and were that let pass, a program would win by leaving out its slow samples; with more it
// outvotes its slow trials in a percentile, and has a lower minimum. One number in place of all is a loss where the arm's other trials have
// the samples; an arm that never has any was measured in another way, which is no failure and is found by what its figures are made of.
type promises struct {
	metrics []experiment.Metric
	kept    map[[2]string]int64
	// samples are the arms, by metric, of which trials keep to it.
	samples map[[2]string]bool
}

func promisesOf(exp *experiment.Experiment, attempts []*record.Attempt) promises {
	out := promises{kept: map[[2]string]int64{}, samples: map[[2]string]bool{}}
	for _, metric := range exp.Plan.Metrics {
		if metric.SamplesFrom == "" {
			continue
		}
		out.metrics = append(out.metrics, metric)
		for _, attempt := range attempts {
			text := attempt.Parameters[metric.SamplesFrom]
			reported := attempt.Reported().Metrics[metric.Name]
			count, err := strconv.ParseInt(text, 10, 64)
			if err == nil && reported != nil && reported.Value == nil && trial.Samples(*reported) == count {
				out.kept[[2]string{metric.Name, text}] = count
				out.samples[[2]string{metric.Name, attempt.Arm}] = true
			}
		}
	}
	return out
}

// broken describes how an attempt has other samples than its parameter fixes; empty where it has them.
func (p promises) broken(attempt *record.Attempt) string {
	for _, metric := range p.metrics {
		reported := attempt.Reported().Metrics[metric.Name]
		if reported == nil || reported.Value != nil && !p.samples[[2]string{metric.Name, attempt.Arm}] {
			continue
		}
		text := attempt.Parameters[metric.SamplesFrom]
		count, promised := p.kept[[2]string{metric.Name, text}]
		if found := trial.Samples(*reported); promised && found != count {
			why := "those that are left out may be the slow ones"
			if found > count {
				why = "those beyond outweigh other trials'"
			}
			return fmt.Sprintf("metric %s has %s and %s fixes %d (samplesFrom): %s", metric.Name, quantity.Count(int(found), "sample"),
				metric.SamplesFrom, count, why)
		}
	}
	return ""
}

// succeededAgainst is what speaks against an attempt that says Succeeded.
func succeededAgainst(attempt *record.Attempt) string {
	duration := meaningless(attempt.DurationSeconds, "s")
	switch {
	case duration != "":
		return "durationSeconds: " + duration
	case attempt.ExitCode != nil && *attempt.ExitCode != 0:
		return fmt.Sprintf("outcome is Succeeded and exitCode %d: a process that succeeded exits with 0", *attempt.ExitCode)
	case attempt.Signal != nil:
		return fmt.Sprintf("outcome is Succeeded and signal %d: a process that succeeded exits and is not killed", *attempt.Signal)
	}
	reason := ""
	attempt.EachRead(func(metric, unit string, value float64) {
		if why := meaningless(value, unit); why != "" && reason == "" {
			reason = metric + ": " + why
		}
	})
	return reason
}

// failedAgainst is what speaks against an attempt that says it did not succeed; it counts as failed all the same, which favours
// nobody.
func failedAgainst(attempt *record.Attempt) string {
	exited := attempt.ExitCode != nil && *attempt.ExitCode == 0 && attempt.Signal == nil
	switch {
	case attempt.Outcome == record.Failed && exited && attempt.Result != nil:
		return ": but exitCode is 0 and there is a result, so that the attempt contradicts itself"
	case attempt.Outcome == record.NotStarted && trial.Started(attempt):
		return ": but it has a signal, a result or an exit code other than 0, so that it did start, and counts as failed"
	}
	return ""
}

func (s *Selection) checkResult(exp *experiment.Experiment, result *record.Result) string {
	if exp.Plan.Workload.ParityRequired && result.Parity == nil {
		return "its result has no parity digest and the template requires one"
	}
	for _, metric := range exp.Plan.Metrics {
		reported, ok := result.Metrics[metric.Name]
		if !ok {
			if metric.Optional {
				continue
			}
			return fmt.Sprintf("metric %s is absent and the template does not call it optional", metric.Name)
		}
		if reported.Unit != metric.Unit {
			return fmt.Sprintf("metric %s has unit %q and the template has %q", metric.Name, reported.Unit, metric.Unit)
		}
		if reported.Histogram != nil {
			if err := s.Histograms.Decode(reported.Histogram); err != nil {
				return fmt.Sprintf("metric %s: %s", metric.Name, err)
			}
		}
		reason := ""
		s.Histograms.Each(*reported, func(value float64, _ int64) {
			if reason == "" {
				reason = meaningless(value, metric.Unit)
			}
		})
		if reason != "" {
			return fmt.Sprintf("metric %s: %s", metric.Name, reason)
		}
	}
	for _, phase := range result.Phases {
		if average, _ := phase.Mean(); meaningless(average, "s") != "" {
			return fmt.Sprintf("mean of phase %s: %s", phase.Name, meaningless(average, "s"))
		}
	}
	return ""
}

// meaningless explains why a number cannot be a measurement.
func meaningless(value float64, unit string) string {
	magnitude := math.Abs(value)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return fmt.Sprintf("invalid value %g: allowed are finite numbers", value)
	case magnitude > largestNumber || magnitude != 0 && magnitude < smallestNumber:
		return fmt.Sprintf("invalid value %g %s: allowed are 0 and magnitudes from %g to %g", value, unit, smallestNumber, largestNumber)
	}
	clock, rate := experiment.ByClock(unit)
	switch time := clock && !rate; {
	case time && value < 0:
		return fmt.Sprintf("%g %s is a negative time", value, unit)
	case time && value*experiment.ClockUnit(unit) > longestTime:
		return fmt.Sprintf("invalid value %g %s: allowed are times up to %g s", value, unit, longestTime)
	}
	return ""
}

// checkNeed reports what a result lacks for a gate. Of many samples some may be zero: what the gate takes a ratio of is the trial's
// statistic, or of a percentile the trial's own share of it, so that only these must be positive.
func (s *Selection) checkNeed(result *record.Result, n need) string {
	metric, ok := result.Metrics[n.metric]
	if !ok {
		return fmt.Sprintf("metric %s is absent and a gate needs it", n.metric)
	}
	if share, percentile := experiment.Percentiles[n.statistic]; percentile {
		if n.positive && !s.Histograms.PositivePercentile(*metric, share) {
			return fmt.Sprintf("%s of metric %s is not positive, and the ratio that a gate takes of it needs a positive one", n.statistic, n.metric)
		}
		return ""
	}
	value, ok := s.Histograms.Statistic(*metric, n.statistic)
	if !ok {
		return fmt.Sprintf("metric %s has no %s, which a gate needs", n.metric, n.statistic)
	}
	if n.positive && !(value > 0) {
		return fmt.Sprintf("%s of metric %s is %g, and the ratio that a gate takes of it needs a positive one", n.statistic, n.metric, value)
	}
	return ""
}
