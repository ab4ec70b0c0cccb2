package analysis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/simulate"
)

// An attempt counts only if it ended while its run held the node.
func TestFencing(t *testing.T) {
	lease := record.Lease{Node: "node-a", Token: 7}
	other := record.Lease{Node: "node-a", Token: 6}
	const blocks, trials = 4, 24
	cases := map[string]struct {
		leases func(run record.Run, lastEnd time.Time) record.Leases
		used   int
		reason string
	}{
		"a ledger without records of leases is taken at its word": {
			func(record.Run, time.Time) record.Leases { return record.Leases{} }, blocks * trials, "",
		},
		"a lease that was taken and never ended": {
			func(run record.Run, _ time.Time) record.Leases {
				return record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: run, Lease: lease}}}
			}, blocks * trials, "",
		},
		"a lease that ended after the last attempt": {
			func(run record.Run, end time.Time) record.Leases {
				return record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: run, Lease: lease}}, Ends: []record.LeaseEnd{{Run: run, Lease: lease, EndedAt: end}}}
			}, blocks * trials, "",
		},
		"an attempt that ended after its lease": {
			func(run record.Run, end time.Time) record.Leases {
				return record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: run, Lease: lease}}, Ends: []record.LeaseEnd{{Run: run, Lease: lease, EndedAt: end.Add(-time.Nanosecond)}}}
			}, blocks*trials - 1, "stale lease: it ended at ",
		},
		"an end counts also where nothing says that the lease was taken": {
			func(run record.Run, _ time.Time) record.Leases {
				return record.Leases{Ends: []record.LeaseEnd{{Run: run, Lease: lease}}}
			}, 0, "stale lease: it ended at ",
		},
		"a lease that was never taken": {
			func(run record.Run, _ time.Time) record.Leases {
				return record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: run, Lease: other}}}
			}, 0, "stale lease: the ledger has no record that the run ever held node node-a with token 7",
		},
		"another run's records count for nothing": {
			func(run record.Run, _ time.Time) record.Leases {
				foreign := record.Run{UID: "another"}
				return record.Leases{
					Known: true, Taken: []record.LeaseTaken{{Run: run, Lease: lease}, {Run: foreign, Lease: other}},
					Ends: []record.LeaseEnd{{Run: foreign, Lease: lease}},
				}
			}, blocks * trials, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := simulated(t, blocks, simulate.Machine{Seed: 3, Seconds: simulate.ScanSeconds, Noise: quiet}, nil)
			for i := range run.waves[0].Blocks {
				run.waves[0].Blocks[i].Lease = &lease
			}
			for i := range run.attempts {
				run.attempts[i].Lease = &lease
				// One attempt is the last to end, by a second.
				run.attempts[i].StartedAt, run.attempts[i].DurationSeconds = time.Unix(1000, 0), 1
			}
			last := slices.IndexFunc(run.attempts, func(a record.Attempt) bool { return !a.Warmup })
			run.attempts[last].DurationSeconds = 2
			lastEnd := time.Unix(1002, 0)

			got := Analyze(run.exp, record.Evidence{Waves: run.waves, Attempts: run.attempts, Leases: tc.leases(run.exp.Run, lastEnd)}, 0)
			if got.Trials.Used != tc.used || got.Trials.Used+got.Trials.Invalid != blocks*trials {
				t.Errorf("trials are %+v, want %d used and the others invalid", got.Trials, tc.used)
			}
			if (tc.reason == "") != (len(got.Excluded) == 0) {
				t.Errorf("excluded: %+v", got.Excluded)
			}
			for _, excluded := range got.Excluded {
				if !strings.HasPrefix(excluded.Reason, tc.reason) {
					t.Errorf("%s is excluded for %q, want %q", excluded.Attempt, excluded.Reason, tc.reason)
				}
			}
		})
	}
}

// A block that ran twice counts by the execution that was alone on its node, even if the other one has more trials.
func TestAStaleExecutionDoesNotStandInForAGoodOne(t *testing.T) {
	run := simulated(t, 3, simulate.Machine{Seed: 3, Seconds: simulate.ScanSeconds, Noise: quiet}, nil)
	lease := record.Lease{Node: "node-a", Token: 1}
	ended := time.Unix(2000, 0)
	var late []record.Attempt
	for i := range run.attempts {
		a := &run.attempts[i]
		a.Lease, a.StartedAt = &lease, time.Unix(1000, 0)
		if a.Block == "w000-b0001" {
			again := *a
			again.ID, again.StartedAt = "late/"+again.Trial, ended
			late = append(late, again)
		}
	}
	for i := range run.waves[0].Blocks {
		run.waves[0].Blocks[i].Lease = &lease
	}
	run.attempts = slices.DeleteFunc(run.attempts, func(a record.Attempt) bool { return a.Block == "w000-b0001" && a.Slot > 3 && !a.Warmup })
	run.attempts = append(run.attempts, late...)
	leases := record.Leases{
		Known: true, Taken: []record.LeaseTaken{{Run: run.exp.Run, Lease: lease}}, Ends: []record.LeaseEnd{{Run: run.exp.Run, Lease: lease, EndedAt: ended}},
	}
	got := Analyze(run.exp, record.Evidence{Waves: run.waves, Attempts: run.attempts, Leases: leases}, 0)
	if want := 2*24 + 4; got.Trials.Used != want {
		t.Errorf("%d used, want %d: the four trials of the block that were in time, and none that was late", got.Trials.Used, want)
	}
}
