package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// The conditions of a measurement must not depend on the arm. All recorded conditions are in one table: if one of them differs between the
// arms that a gate compares, the difference of the figures may be caused by the machine, the runner or the limits, and nothing is decided.

// condition is one recorded condition of a measurement.
type condition struct {
	// name is the field of the attempt.
	name string
	// value returns a comparable value; nil if the attempt does not have the field.
	value func(*record.Attempt) any
	scope scope
}

// scope is the range within which a condition is constant.
type scope int

const (
	// ofBlock is read once for a block: trials that differ in it were no neighbours.
	ofBlock scope = iota
	// ofPlace is like ofBlock, but normally differs between blocks.
	ofPlace
	// ofTrial is read of every trial and may differ by chance: the trials of the arms are compared by a test.
	ofTrial
)

// conditions is the table of all conditions.
var conditions = slices.Concat(
	[]condition{{"lease", func(a *record.Attempt) any { return known(a.Lease) }, ofPlace}},
	keys(ofPlace, "environment.soft", soft, "bootId", "hostname", "nodeName"),
	keys(ofBlock, "environment.soft", soft, "bandwidthProbeBytes", "hugepagesTotal", "inheritedEnvironment", "kernelVersion", "pressureOf",
		"runnerVersion", "swapTotalBytes"),
	keys(ofBlock, "environment.hard", hard, record.HardKeys...),
	[]condition{
		// A ledger of another runner may have further keys.
		{"environment.hard", func(a *record.Attempt) any { return unknownKeys(a.Environment.Hard) }, ofBlock},
		{"isolation.cpuQuota", func(a *record.Attempt) any { return known(a.Isolation.CPUQuota) }, ofBlock},
		{"isolation.memoryLimitBytes", func(a *record.Attempt) any { return known(a.Isolation.MemoryLimitBytes) }, ofBlock},
		{"isolation.cpusAllowed", func(a *record.Attempt) any { return scalar(a.Isolation.CPUsAllowed) }, ofTrial},
		{"isolation.level", func(a *record.Attempt) any { return scalar(a.Isolation.Level) }, ofTrial},
		{"roles[].cpus", seats, ofTrial},
	},
	keys(ofTrial, "environment.soft", soft, "roleCpus"),
)

func keys(of scope, prefix string, in func(*record.Attempt) map[string]any, names ...string) []condition {
	var out []condition
	for _, key := range names {
		out = append(out, condition{prefix + "." + key, func(a *record.Attempt) any { return scalar(in(a)[key]) }, of})
	}
	return out
}

func soft(a *record.Attempt) map[string]any { return a.Environment.Soft }
func hard(a *record.Attempt) map[string]any { return a.Environment.Hard }

// known returns the value of an optional field; nil without one.
func known[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

// scalar returns a comparable value; nil for an empty text.
func scalar(value any) any {
	switch value := value.(type) {
	case string:
		if value == "" {
			return nil
		}
		return value
	case nil, float64, bool:
		return value
	default:
		return fmt.Sprintf("%#v", value)
	}
}

func unknownKeys(environment map[string]any) any {
	var out []string
	for key := range environment {
		if !slices.Contains(record.HardKeys, key) {
			out = append(out, key)
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.Sort(out)
	for i, key := range out {
		out[i] = fmt.Sprintf("%s=%#v", key, environment[key])
	}
	return strings.Join(out, ",")
}

// seats lists the CPUs of the processes of a trial, and whether these share them.
func seats(a *record.Attempt) any {
	var out []string
	for _, role := range a.Roles {
		text := role.Name + "=" + cmp.Or(role.CPUs, "any")
		if role.Shared {
			text += " shared"
		}
		out = append(out, text)
	}
	return scalar(strings.Join(out, ", "))
}

// shown formats the value of a condition for people.
func shown(value any) string {
	switch value := value.(type) {
	case nil:
		return "absent"
	case record.Lease:
		return fmt.Sprintf("token %d of node %s", value.Token, value.Node)
	default:
		return fmt.Sprintf("%#v", value)
	}
}

// measuredApart describes the first condition that is constant within a block and differs between two of its trials; empty without one.
func measuredApart(a, b *record.Attempt) string {
	for _, c := range conditions {
		if c.scope == ofTrial {
			continue
		}
		if mine, theirs := c.value(a), c.value(b); mine != theirs {
			return fmt.Sprintf("%s is %s in slot %d and %s in slot %d", c.name, shown(mine), a.Slot, shown(theirs), b.Slot)
		}
	}
	return ""
}

func tally(attempts []*record.Attempt, c condition) map[string]int {
	counts := map[any]int{}
	for _, attempt := range attempts {
		counts[c.value(attempt)]++
	}
	out := map[string]int{}
	for value, n := range counts {
		out[shown(value)] = n
	}
	return out
}

// Conditions counts trials by the name and value of the conditions that may differ from trial to trial.
func Conditions(attempts []*record.Attempt) map[string]map[string]int {
	out := map[string]map[string]int{}
	for _, c := range conditions {
		if c.scope != ofTrial {
			continue
		}
		out[c.name] = tally(attempts, c)
	}
	return out
}

// AllSamples is the key of MadeOf for trials that have as many samples as their parameter fixes.
const AllSamples = "all samples"

// oneValue is the key of MadeOf for trials with one value that the program computed.
const oneValue = "one value"

// MadeOf counts trials by the source of their figure of a metric: one value that the program computed, its samples, or a histogram of them.
// If a parameter fixes the number of samples (samplesFrom), the source says whether it is all of them. With counted it is their number.
func MadeOf(attempts []*record.Attempt, metric *experiment.Metric, counted bool) map[string]int {
	out := map[string]int{}
	for _, attempt := range attempts {
		if reported, ok := attempt.Metric(metric.Name); ok {
			out[madeOf(reported, metric, attempt.Parameters, counted)]++
		}
	}
	return out
}

func madeOf(reported record.Metric, metric *experiment.Metric, parameters map[string]string, counted bool) string {
	form, found := "", trial.Samples(reported)
	count, err := strconv.ParseInt(parameters[metric.SamplesFrom], 10, 64)
	switch {
	case reported.Value != nil && (err != nil || count != 1): // One of one is all.
		return oneValue
	case reported.Histogram != nil:
		form = " in a histogram"
	}
	switch {
	case counted:
		return quantity.Count(int(found), "sample") + form
	case metric.SamplesFrom == "":
		return "samples" + form
	case err != nil:
		return "samples of no number" + form
	case found != count:
		return fmt.Sprintf("%d samples of %d%s", found, count, form)
	default:
		return AllSamples + form
	}
}

// BlocksApart describes the conditions that are constant within a block and differ between blocks, with the number of blocks by value. It
// does not report conditions that normally differ between blocks, such as the node.
func BlocksApart(attempts []*record.Attempt) []string {
	var first []*record.Attempt
	seen := map[string]bool{}
	for _, attempt := range attempts {
		if !seen[attempt.Block] {
			seen[attempt.Block] = true
			first = append(first, attempt)
		}
	}
	var out []string
	for _, c := range conditions {
		if c.scope != ofBlock {
			continue
		}
		if counts := tally(first, c); len(counts) > 1 {
			out = append(out, c.name+" is "+Tally(counts, "block"))
		}
	}
	return out
}

// Tally lists the keys with their counts, as in "1 in 3 blocks and 2 in 1 block". The noun of names the counted objects.
func Tally(counts map[string]int, of string) string {
	var out []string
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s in %s", value, quantity.Count(counts[value], of)))
	}
	return strings.Join(out, " and ")
}
