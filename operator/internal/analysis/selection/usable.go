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

// A result that cannot be read is a failure of the program, as a crash is. If such results were only left out, a program would win by
// reporting nothing about its slow trials.

// The smallest and the largest prefix of the SI (quecto and quetta, 27th CGPM 2022) bound the numbers that mean something in a base unit.
const (
	smallestNumber = 1e-30
	largestNumber  = 1e30
	// longestTime, in seconds, is about three centuries. No trial takes longer, and a duration in nanoseconds could not hold it.
	longestTime = 9e9
)

// need is a statistic of a metric that a gate reads in a cell.
type need struct {
	metric    string
	statistic experiment.Statistic
}

// needs returns the statistics that the gates and constraints read, by cell. A comparison needs both of its arms, and the null arm for
// its control.
func needs(exp *experiment.Experiment) map[Cell][]need {
	out := map[Cell][]need{}
	add := func(c Cell, of experiment.Condition) {
		// Process metrics are read by the runner, so that a program cannot omit them.
		if of.Metric != "" && !strings.HasPrefix(of.Metric, record.ProcessPrefix) {
			out[c] = append(out[c], need{of.Metric, of.Statistic})
		}
	}
	VisitGates(exp, func(gate experiment.Gate, candidate string, point int) {
		add(Cell{point, ArmIndex(exp, candidate)}, gate.Condition)
		for arm := range exp.Arms {
			if gate.Op.Relative() && !experiment.RoleOf(exp.Arms[arm]).Judged() {
				add(Cell{point, arm}, gate.Condition)
			}
		}
	})
	if exp.Plan.Search != nil {
		for _, constraint := range exp.Plan.Search.SubjectTo {
			for point := range exp.Points {
				for arm := range exp.Arms {
					add(Cell{point, arm}, constraint)
				}
			}
		}
	}
	return out
}

// resultCheck checks the results of measured trials.
type resultCheck struct {
	exp        *experiment.Experiment
	cells      map[*record.Attempt]Cell
	needs      map[Cell][]need
	fixed      fixedSamples
	histograms trial.Histograms
	// invalid are the errors of the histograms that cannot be decoded.
	invalid map[*record.Histogram]error
}

// newResultCheck prepares the check of measured trials, and of the rejected ones that useless reads. The numbers of samples that a
// parameter fixes are those of the measured trials.
func newResultCheck(exp *experiment.Experiment, cells map[*record.Attempt]Cell, measured []*record.Attempt, notCounting []Exclusion,
) resultCheck {
	out := resultCheck{
		exp: exp, cells: cells, needs: needs(exp), fixed: fixedSamplesOf(exp, measured),
		histograms: trial.Histograms{}, invalid: map[*record.Histogram]error{},
	}
	for _, attempt := range slices.Concat(measured, succeededOf(notCounting)) {
		for _, metric := range exp.Plan.Metrics {
			reported := attempt.Reported().Metrics[metric.Name]
			if reported == nil || reported.Histogram == nil {
				continue
			}
			if err := out.histograms.Decode(reported.Histogram); err != nil {
				out.invalid[reported.Histogram] = err
			}
		}
	}
	return out
}

// rejectUnusable rejects the attempts that contradict themselves, and those whose result contradicts the template or lacks a figure that a
// gate reads.
func (c resultCheck) rejectUnusable(attempts []*record.Attempt) ruling {
	return rule(attempts, Unusable, c.unusable)
}

// useless returns the attempts of executions that do not count which would be unusable in one that counts. They are losses as well.
func (c resultCheck) useless(notCounting []Exclusion) map[*record.Attempt]bool {
	out := map[*record.Attempt]bool{}
	for _, attempt := range succeededOf(notCounting) {
		if c.unusable(attempt) != "" {
			out[attempt] = true
		}
	}
	return out
}

// succeededOf returns the measured trials among the rejected attempts that succeeded.
func succeededOf(rejected []Exclusion) (out []*record.Attempt) {
	for _, one := range rejected {
		if !one.of.Warmup && one.of.Outcome == record.Succeeded {
			out = append(out, one.of)
		}
	}
	return out
}

// unusable explains why the result of a successful attempt cannot be used; empty if it can.
func (c resultCheck) unusable(attempt *record.Attempt) string {
	reason := succeededAgainst(attempt)
	switch {
	case reason != "":
	case attempt.Result == nil && c.exp.Plan.Workload.Output.Format == format.None: // Its program reports nothing.
	case attempt.Result == nil:
		reason = "it succeeded and holds no result"
	default:
		reason = cmp.Or(c.invalidResult(attempt.Result), c.fixed.broken(attempt))
	}
	for _, n := range c.needs[c.cells[attempt]] {
		if reason == "" {
			reason = c.lacks(attempt.Reported(), n)
		}
	}
	return reason
}

// fixedSamples are the numbers of samples that the value of a parameter fixes (samplesFrom), by metric and value, where trials have that
// number. A trial with fewer samples lost the others: accepting it would let a program win by omitting its slow samples. One with more
// outweighs the slow trials in a percentile and has a lower minimum. One value in place of the samples is a loss if other trials of the arm
// have the samples; an arm that never has any was measured in another way, which is no failure and is found by MadeOf.
type fixedSamples struct {
	metrics []experiment.Metric
	counts  map[[2]string]int64
	// arms are those, by metric, with a trial that has the fixed number of samples.
	arms map[[2]string]bool
}

func fixedSamplesOf(exp *experiment.Experiment, attempts []*record.Attempt) fixedSamples {
	out := fixedSamples{counts: map[[2]string]int64{}, arms: map[[2]string]bool{}}
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
				out.counts[[2]string{metric.Name, text}] = count
				out.arms[[2]string{metric.Name, attempt.Arm}] = true
			}
		}
	}
	return out
}

// broken describes a number of samples other than the one that the attempt's parameter fixes; empty without one.
func (f fixedSamples) broken(attempt *record.Attempt) string {
	for _, metric := range f.metrics {
		reported := attempt.Reported().Metrics[metric.Name]
		if reported == nil || reported.Value != nil && !f.arms[[2]string{metric.Name, attempt.Arm}] {
			continue
		}
		text := attempt.Parameters[metric.SamplesFrom]
		count, fixed := f.counts[[2]string{metric.Name, text}]
		if found := trial.Samples(*reported); fixed && found != count {
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

// succeededAgainst describes a contradiction in an attempt whose outcome is Succeeded; empty without one.
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

// invalidResult describes how a result contradicts the template; empty if it does not.
func (c resultCheck) invalidResult(result *record.Result) string {
	if c.exp.Plan.Workload.ParityRequired && result.Parity == nil {
		return "its result has no parity digest and the template requires one"
	}
	for _, metric := range c.exp.Plan.Metrics {
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
		if err := c.invalid[reported.Histogram]; err != nil {
			return fmt.Sprintf("metric %s: %s", metric.Name, err)
		}
		reason := ""
		c.histograms.Each(*reported, func(value float64, _ int64) {
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

// meaningless explains why a number cannot be a measurement; empty if it can.
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

// lacks describes the figure of a gate that a result lacks; empty if it has it. A figure of 0 is a figure: a gate that takes a ratio of it
// decides about it alone, and other gates of the trial do not depend on that.
func (c resultCheck) lacks(result *record.Result, n need) string {
	metric, ok := result.Metrics[n.metric]
	if !ok {
		return fmt.Sprintf("metric %s is absent and a gate needs it", n.metric)
	}
	if experiment.Percentiles[n.statistic] != 0 {
		return ""
	}
	if _, ok = c.histograms.Statistic(*metric, n.statistic); !ok {
		return fmt.Sprintf("metric %s has no %s, which a gate needs", n.metric, n.statistic)
	}
	return ""
}
