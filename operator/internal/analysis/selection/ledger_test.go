package selection

import (
	"maps"
	"slices"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// testLedger is the ledger of a simulated run, for tests to alter.
type testLedger struct {
	exp      *experiment.Experiment
	waves    []record.Wave
	attempts []record.Attempt
	problems []record.Problem
	leases   record.Leases
	markers  []record.Started
	sealed   map[string]string
	through  int
}

// newLedger simulates waves of the scan experiment with that many blocks each.
func newLedger(t testing.TB, blocks ...int) *testLedger {
	t.Helper()
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Environment = &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationInvalid}
	})
	if err != nil {
		t.Fatal(err)
	}
	out, first := &testLedger{exp: exp, through: len(blocks) - 1}, 0
	machine := fixture.Machine{Seed: 1, Noise: fixture.Noise{Block: 0.02, Sample: 0.01}, Seconds: fixture.ScanSeconds}
	for number, count := range blocks {
		wave, err := fixture.Wave(exp, number, first, count)
		if err != nil {
			t.Fatal(err)
		}
		out.waves = append(out.waves, *wave)
		out.attempts = append(out.attempts, machine.Run(exp, wave)...)
		first += count
	}
	for i := range out.attempts {
		out.attempts[i].Source = sourceOf(&out.attempts[i])
	}
	return out
}

// clone returns a copy that a situation may alter.
func (l *testLedger) clone() *testLedger {
	out, exp := *l, *l.exp
	exp.Plan.Metrics = slices.Clone(exp.Plan.Metrics)
	out.exp, out.attempts, out.waves = &exp, slices.Clone(l.attempts), slices.Clone(l.waves)
	for i := range out.waves {
		out.waves[i].Blocks = slices.Clone(out.waves[i].Blocks)
	}
	return &out
}

func (l *testLedger) evidence() record.Evidence {
	return record.Evidence{Waves: l.waves, Attempts: l.attempts, Problems: l.problems, Leases: l.leases, Unfinished: l.markers,
		Sealed: l.sealed}
}

func (l *testLedger) choose() *Selection { return Select(l.exp, l.evidence(), l.through) }

// each changes the attempts that are selected. Their results and environments are copies, which a change may alter.
func (l *testLedger) each(chosen func(*record.Attempt) bool, change func(*record.Attempt)) {
	for i := range l.attempts {
		a := &l.attempts[i]
		if !chosen(a) {
			continue
		}
		if a.Result != nil {
			result := *a.Result
			result.Metrics, a.Result = maps.Clone(result.Metrics), &result
		}
		a.Environment.Hard, a.Environment.Soft = maps.Clone(a.Environment.Hard), maps.Clone(a.Environment.Soft)
		change(a)
	}
}

// lastOf returns the last attempt of an arm.
func (l *testLedger) lastOf(arm string) *record.Attempt {
	var last *record.Attempt
	l.each(func(a *record.Attempt) bool { return a.Arm == arm }, func(a *record.Attempt) { last = a })
	return last
}

// remove deletes attempts.
func (l *testLedger) remove(chosen func(*record.Attempt) bool) {
	l.attempts = slices.DeleteFunc(l.attempts, func(a record.Attempt) bool { return chosen(&a) })
}

// again adds another execution of the chosen attempts.
func (l *testLedger) again(executor string, chosen func(*record.Attempt) bool, change func(*record.Attempt)) {
	for _, a := range slices.Clone(l.attempts) {
		if !chosen(&a) {
			continue
		}
		a.ID, a.Source = executor+"/"+a.Trial, record.Source{}
		l.attempts = append(l.attempts, a)
	}
	l.each(byExecutor(executor), change)
}

// unreadable makes the objects of attempts unreadable.
func (l *testLedger) unreadable(chosen func(*record.Attempt) bool) {
	for i := range l.attempts {
		if a := &l.attempts[i]; chosen(a) {
			l.problems = append(l.problems, record.Problem{Source: sourceOf(a), Reason: "attempt is truncated"})
		}
	}
	l.remove(chosen)
}

// begin adds start markers of attempts by another executor.
func (l *testLedger) begin(executor string, chosen func(*record.Attempt) bool) {
	for i := range l.attempts {
		if a := &l.attempts[i]; chosen(a) {
			l.markers = append(l.markers, record.Started{
				Schema: record.StartedSchema, ID: executor + "/" + a.Trial, Trial: a.Trial, Block: a.Block, Point: a.Point, Arm: a.Arm,
				StartedAt: "2026-11-21T08:00:00Z",
			})
		}
	}
}

// lend gives every block a lease of node-a, with the token 7.
func (l *testLedger) lend() {
	lease := &record.Lease{Node: "node-a", Token: 7}
	for w := range l.waves {
		for b := range l.waves[w].Blocks {
			l.waves[w].Blocks[b].Lease = lease
		}
	}
	for i := range l.attempts {
		l.attempts[i].Lease = lease
	}
	l.leases = record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: l.exp.Run, Lease: *lease}}}
}

// seal records the objects as an earlier analysis would.
func (l *testLedger) seal() {
	l.sealed = map[string]string{}
	for i := range l.attempts {
		a := &l.attempts[i]
		a.Source = sourceOf(a)
		l.sealed[a.Source.Key] = a.Source.SHA256
	}
}

func ofTrials(names ...string) func(*record.Attempt) bool {
	return func(a *record.Attempt) bool { return slices.Contains(names, a.Trial) }
}

func ofArm(arm string) func(*record.Attempt) bool {
	return func(a *record.Attempt) bool { return a.Arm == arm && !a.Warmup }
}

func inBlock(block string) func(*record.Attempt) bool {
	return func(a *record.Attempt) bool { return a.Block == block }
}

func byExecutor(name string) func(*record.Attempt) bool {
	return func(a *record.Attempt) bool { return a.ID == name+"/"+a.Trial }
}

func both(a, b func(*record.Attempt) bool) func(*record.Attempt) bool {
	return func(attempt *record.Attempt) bool { return a(attempt) && b(attempt) }
}

func all(*record.Attempt) bool { return true }

func unchanged(*record.Attempt) {}

func fail(a *record.Attempt) {
	a.Outcome, a.Result, a.ExitCode, a.Message = record.Failed, nil, nil, "exit status 3"
}
