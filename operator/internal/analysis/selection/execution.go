package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/record"
)

// execution is one execution of a block.
type execution struct {
	name, node string
	// ran is the number of measured trials that started.
	ran     int
	started int64
}

// rejectSuperseded rejects the attempts of all executions of a block but one. A block is executed again as a whole when a pod is lost, so
// that an execution counts as a whole: mixing two would compare trials that did not run next to each other. The execution with the most
// measured trials counts. Between equals it is the one on the node that sorts first, then the one that started first, then the one whose
// name sorts first; times of two nodes are not compared because their clocks differ. Whether trials succeeded has no influence, or a
// block could be repeated until its result pleases.
func rejectSuperseded(attempts []*record.Attempt) ruling {
	chosen := map[string]string{}
	for block, executions := range executionsOf(attempts) {
		best := slices.MinFunc(slices.Collect(maps.Values(executions)), func(a, b *execution) int {
			return cmp.Or(cmp.Compare(b.ran, a.ran), cmp.Compare(a.node, b.node), cmp.Compare(a.started, b.started), cmp.Compare(a.name, b.name))
		})
		chosen[block] = best.name
	}
	return rule(attempts, superseded, func(attempt *record.Attempt) string {
		if trial.Executor(attempt) == chosen[attempt.Block] {
			return ""
		}
		return fmt.Sprintf("block %s was executed more than once and execution %s counts", attempt.Block, chosen[attempt.Block])
	})
}

// executionsOf groups attempts by block and execution.
func executionsOf(attempts []*record.Attempt) map[string]map[string]*execution {
	blocks := map[string]map[string]*execution{}
	for _, attempt := range attempts {
		name, executions := trial.Executor(attempt), Inner(blocks, attempt.Block)
		e := executions[name]
		if e == nil {
			e = &execution{name: name, node: trial.NodeOf(attempt), started: attempt.StartedAt.UnixNano()}
			executions[name] = e
		}
		e.started = min(e.started, attempt.StartedAt.UnixNano())
		if !attempt.Warmup && trial.Started(attempt) {
			e.ran++
		}
	}
	return blocks
}

// rejectUnsuccessful rejects the measured trials that did not start or did not succeed. Warm-ups are neither admitted nor rejected: they
// are counted and never compared.
func rejectUnsuccessful(attempts []*record.Attempt) ruling {
	measured := slices.DeleteFunc(slices.Clone(attempts), func(attempt *record.Attempt) bool { return attempt.Warmup })
	return ruleOfKinds(measured, func(attempt *record.Attempt) (Rejection, string) {
		switch {
		case !trial.Started(attempt):
			return notStarted, fmt.Sprintf("%s: %s", attempt.Outcome, attempt.Message)
		case attempt.Outcome != record.Succeeded:
			return Failed, fmt.Sprintf("%s: %s%s", attempt.Outcome, attempt.Message, failedAgainst(attempt))
		}
		return "", ""
	})
}

// succeeded returns the attempts whose outcome is Succeeded.
func succeeded(attempts []*record.Attempt) (out []*record.Attempt) {
	for _, attempt := range attempts {
		if attempt.Outcome == record.Succeeded {
			out = append(out, attempt)
		}
	}
	return out
}

// failedAgainst describes a contradiction in an attempt that reports no success; empty without one. The attempt counts as failed anyway,
// which favours neither arm.
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
