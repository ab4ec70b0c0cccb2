package simulate

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/record"
)

// Loss is a way to lose a trial.
type Loss struct {
	Name string
	// spoil makes an attempt of Pair one of a trial that was lost, and reports whether it is in the ledger at all.
	spoil func(attempt *record.Attempt) bool
}

// Losses are the ways to lose a trial, by the program or by whatever is around it.
func Losses() []Loss {
	ended := func(outcome record.Outcome, exitCode, signal *int, seconds float64) func(*record.Attempt) bool {
		return func(a *record.Attempt) bool {
			a.Outcome, a.ExitCode, a.Signal, a.Result = outcome, exitCode, signal, nil
			a.DurationSeconds = cmp.Or(seconds, a.DurationSeconds)
			return true
		}
	}
	reporting := func(name string, metric record.Metric) func(*record.Attempt) bool {
		return func(a *record.Attempt) bool {
			result := *a.Result
			result.Metrics = map[string]*record.Metric{name: &metric}
			a.Result = &result
			return true
		}
	}
	return []Loss{
		{"timeout", ended(record.TimedOut, nil, ptr.To(9), 300)},
		{"crash", ended(record.Failed, nil, ptr.To(11), 0)},
		{"memory", ended(record.Failed, nil, ptr.To(9), 0)},
		{"exit", ended(record.Failed, ptr.To(1), nil, 0)},
		{"malformed", ended(record.Malformed, ptr.To(0), nil, 0)},
		{"not-started", ended(record.NotStarted, nil, nil, 0)},
		{"missing", func(*record.Attempt) bool { return false }},
		{"absent", reporting("other", record.Metric{Unit: "s", Value: ptr.To(1.0)})},
		{"zero", reporting("time", record.Metric{Unit: "s", Value: ptr.To(0.0)})},
		{"negative", reporting("time", record.Metric{Unit: "s", Value: ptr.To(-1.0)})},
		{"unit", reporting("time", record.Metric{Unit: "ms", Value: ptr.To(1.0)})},
		{"beyond-meaning", reporting("time", record.Metric{Unit: "s", Value: ptr.To(1e-300)})},
		{"contradiction", func(a *record.Attempt) bool { a.ExitCode = ptr.To(1); return true }},
		{"foreign", func(a *record.Attempt) bool { a.Experiment = "sha256:0"; return true }},
		{"environment", func(a *record.Attempt) bool {
			a.Environment = record.Environment{Hard: map[string]any{"cpuModel": "another"}, Soft: a.Environment.Soft}
			return true
		}},
	}
}

// Spoil loses so many of an arm's trials, chosen at random, and returns what is left in the ledger.
func (l Loss) Spoil(random *rand.Rand, attempts []record.Attempt, arm string, count int) []record.Attempt {
	var of []int
	for i := range attempts {
		if attempts[i].Arm == arm && !attempts[i].Warmup {
			of = append(of, i)
		}
	}
	random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	lost := of[:min(count, len(of))]
	out := make([]record.Attempt, 0, len(attempts))
	for i := range attempts {
		attempt := attempts[i]
		if !slices.Contains(lost, i) || l.spoil(&attempt) {
			out = append(out, attempt)
		}
	}
	return out
}
