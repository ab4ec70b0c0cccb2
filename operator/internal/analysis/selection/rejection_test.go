package selection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
)

func TestSelect_CountsEachTrialOnceAndNamesTheRejected(t *testing.T) {
	other := func(l *testLedger, block, executor string) []record.Attempt {
		var out []record.Attempt
		for _, a := range l.attempts {
			if a.Block == block {
				a.ID = executor + "/" + a.Trial
				a.StartedAt = a.StartedAt.Add(time.Hour)
				out = append(out, a)
			}
		}
		return out
	}
	cases := map[string]struct {
		tamper   func(*testLedger)
		trials   analysis.Trials
		excluded int
		reason   string // Part of the first exclusion.
	}{
		"everything that was planned counts once": {
			trials: analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192},
		},
		"a second execution of a block is superseded as a whole": {
			tamper:   func(l *testLedger) { l.attempts = append(l.attempts, other(l, "w000-b0001", "again")...) },
			trials:   analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 240},
			excluded: 48, reason: "execution pod-w000-b0001 counts",
		},
		"a complete second execution supersedes one that was cut short, though it came later": {
			tamper: func(l *testLedger) {
				again := other(l, "w000-b0001", "again")
				l.remove(func(a *record.Attempt) bool { return !(a.Block != "w000-b0001" || a.Warmup || a.Slot < 5) })
				l.attempts = append(l.attempts, again...)
			},
			trials:   analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192 + 17},
			excluded: 17, reason: "execution again counts",
		},
		"a failed trial is a result: the execution that has it is not replaced by one that succeeded": {
			tamper: func(l *testLedger) {
				again := other(l, "w000-b0001", "again")
				for i := range l.attempts {
					if l.attempts[i].Trial == "w000-b0001-s00003" {
						l.attempts[i].Outcome, l.attempts[i].Result, l.attempts[i].Message = record.Failed, nil, "exit status 1"
					}
				}
				l.attempts = append(l.attempts, again...)
			},
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Failed: 1, Attempts: 240},
			excluded: 49, reason: "execution pod-w000-b0001 counts",
		},
		"a trial that was never run is missing": {
			tamper: func(l *testLedger) {
				l.remove(func(a *record.Attempt) bool { return !(a.Trial != "w000-b0002-s00000") })
			},
			trials: analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Missing: 1, Attempts: 191},
		},
		"a trial that could not be started is missing and says why": {
			tamper: func(l *testLedger) {
				a := l.lastOf("loop")
				a.Outcome, a.Result, a.Message = record.NotStarted, nil, "no such file"
			},
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Missing: 1, Attempts: 192},
			excluded: 1, reason: "no such file",
		},
		"an unreadable object spoils its trial and nothing else": {
			tamper: func(l *testLedger) {
				l.remove(func(a *record.Attempt) bool { return !(a.Trial != "w000-b0002-s00000") })
				l.problems = []record.Problem{{Source: record.Source{Key: "attempts/w000-b0002/pod/w000-b0002-s00000.json"},
					Reason: "attempt is truncated"}}
			},
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 191},
			excluded: 1, reason: "truncated",
		},
		"an attempt of another run is foreign": {
			tamper:   func(l *testLedger) { l.lastOf("loop").Run.UID = "other" },
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192},
			excluded: 1, reason: `run uid "other"`,
		},
		"an attempt of another experiment is foreign": {
			tamper:   func(l *testLedger) { l.lastOf("loop").Experiment = "sha256:0" },
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192},
			excluded: 1, reason: "experiment sha256:0",
		},
		"an attempt at an unknown point is foreign": {
			tamper:   func(l *testLedger) { l.lastOf("loop").Point = "batchSize=99" },
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192},
			excluded: 1, reason: `no point "batchSize=99"`,
		},
		"an attempt of an unknown arm is foreign": {
			tamper:   func(l *testLedger) { l.lastOf("loop").Arm = "turbo" },
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192},
			excluded: 1, reason: `no arm "turbo"`,
		},
		"an attempt that claims an arm its slot was not planned for is foreign": {
			tamper:   func(l *testLedger) { l.lastOf("loop").Arm = "fused-m4r" },
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192},
			excluded: 1, reason: "planned for another arm or point",
		},
		"a warm-up cannot pose as a measured trial": {
			tamper: func(l *testLedger) {
				for i := range l.attempts {
					if l.attempts[i].Trial == "w000-b0000-w00000" {
						l.attempts[i].Warmup = false
					}
				}
			},
			trials:   analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192},
			excluded: 1, reason: "do not fit together",
		},
		"an attempt in a block that no wave planned is foreign": {
			tamper: func(l *testLedger) {
				a := *l.lastOf("loop")
				a.Block, a.Trial, a.ID = "w000-b0099", "w000-b0099-s00000", "pod/w000-b0099-s00000"
				a.Slot = 0
				l.attempts = append(l.attempts, a)
			},
			trials:   analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 193},
			excluded: 1, reason: "no wave planned trial w000-b0099-s00000",
		},
		"the same attempt twice counts once": {
			tamper:   func(l *testLedger) { l.attempts = append(l.attempts, *l.lastOf("loop")) },
			trials:   analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 193},
			excluded: 1, reason: "same id",
		},
		"an attempt under another lease is foreign": {
			tamper: func(l *testLedger) {
				for i := range l.waves[0].Blocks {
					l.waves[0].Blocks[i].Lease = &record.Lease{Node: "node-a", Token: 7}
				}
				for i := range l.attempts {
					l.attempts[i].Lease = &record.Lease{Node: "node-a", Token: 7}
				}
				l.lastOf("loop").Lease = &record.Lease{Node: "node-a", Token: 6}
			},
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192},
			excluded: 1, reason: "lease token 7 of node node-a",
		},
		"attempts from another environment are left out and the key is named": {
			tamper: func(l *testLedger) {
				for i := range l.attempts {
					if l.attempts[i].Block == "w000-b0003" {
						l.attempts[i].Environment.Hard = map[string]any{"cpuModel": "Xeon"}
					}
				}
			},
			trials:   analysis.Trials{Planned: 192, Used: 108, Warmups: 48, Invalid: 36, Attempts: 192},
			excluded: 36, reason: `cpuModel is "Xeon" here and "AMD EPYC" there`,
		},
		"a histogram that cannot be decoded is left out": {
			tamper: func(l *testLedger) {
				l.lastOf("loop").Result.Metrics["latency"] = &record.Metric{Unit: "s",
					Histogram: &record.Histogram{Encoding: "hdr-v2-deflate-base64", Scale: 1e-9, Count: 3, Data: "AAAA"}}
			},
			trials:   analysis.Trials{Planned: 192, Used: 143, Warmups: 48, Invalid: 1, Attempts: 192},
			excluded: 1, reason: "histogram",
		},
		"without a plan the attempts are taken at their word": {
			tamper: func(l *testLedger) { l.waves = nil },
			trials: analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192},
		},
		"a plan of another experiment plans nothing": {
			tamper:   func(l *testLedger) { l.waves[0].Experiment = "sha256:1" },
			trials:   analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192},
			excluded: 1, reason: "the plan is of run",
		},
		"attempts of later waves are not looked at": {
			tamper: func(l *testLedger) {
				later := *l.lastOf("loop")
				later.Wave, later.Block, later.Trial, later.ID = 1, "w001-b0004", "w001-b0004-s00000", "pod/w001-b0004-s00000"
				l.attempts = append(l.attempts, later)
			},
			trials: analysis.Trials{Planned: 192, Used: 144, Warmups: 48, Attempts: 192},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, 4)
			if c.tamper != nil {
				c.tamper(l)
			}
			got := l.choose()
			if diff := cmp.Diff(c.trials, got.Trials); diff != "" {
				t.Errorf("trials (-want +got):\n%s", diff)
			}
			if excluded := got.Excluded(); len(excluded) != c.excluded {
				t.Fatalf("%d excluded, want %d: %+v", len(excluded), c.excluded, excluded)
			}
			says := func(e analysis.Exclusion) bool { return strings.Contains(e.Reason, c.reason) }
			if c.reason != "" && !slices.ContainsFunc(got.Excluded(), says) {
				t.Errorf("excluded %+v, want a reason with %q", got.Excluded(), c.reason)
			}
		})
	}
}

func executed(l *testLedger, key, value string, chosen func(*record.Attempt) bool) {
	l.each(chosen, func(a *record.Attempt) { a.Environment.Soft[key] = value })
}

func TestSelect_RejectsAttemptsOfAnotherProgram(t *testing.T) {
	arm := func(name string) func(*record.Attempt) bool {
		return func(a *record.Attempt) bool { return a.Arm == name }
	}
	in := func(name, block string) func(*record.Attempt) bool {
		return func(a *record.Attempt) bool { return a.Arm == name && a.Block == block }
	}
	cases := map[string]struct {
		tamper   func(*testLedger)
		excluded int
		reason   string
	}{
		"arms may differ": {
			tamper: func(l *testLedger) {
				executed(l, "programDigest", "blake3:a", arm("loop"))
				executed(l, "programDigest", "blake3:b", arm("fused-m4r"))
			},
		},
		"an arm is one program in all blocks": {
			tamper: func(l *testLedger) {
				executed(l, "programDigest", "blake3:a", arm("loop"))
				executed(l, "programDigest", "blake3:moved", in("loop", "w000-b0003"))
			},
			excluded: 12, reason: "programDigest is blake3:moved here and blake3:a there; name the arm's image by digest",
		},
		"files beside the program count too": {
			tamper: func(l *testLedger) {
				executed(l, "imageFilesDigest", "blake3:a", arm("fused-m4r"))
				executed(l, "imageFilesDigest", "blake3:b", in("fused-m4r", "w000-b0000"))
			},
			excluded: 12, reason: "of arm fused-m4r at this point: imageFilesDigest is blake3:b",
		},
		"so does a server": {
			tamper: func(l *testLedger) {
				for i := range l.attempts {
					digest := "blake3:a"
					if l.attempts[i].Block == "w000-b0002" {
						digest = "blake3:b"
					}
					l.attempts[i].Roles = []record.RoleSeen{{Name: "server", ProgramDigest: digest},
						{Name: "client", Result: true, ProgramDigest: "blake3:" + l.attempts[i].Block}}
				}
			},
			excluded: 36, reason: "programDigest of role server is blake3:b here and blake3:a there",
		},
		"attempts without digests are taken at their word": {tamper: func(*testLedger) {}},
		"one key that some attempts lack is no other program": {
			tamper: func(l *testLedger) {
				executed(l, "image", "lab/x@sha256:1", arm("loop"))
				executed(l, "programDigest", "blake3:a", func(a *record.Attempt) bool { return a.Arm == "loop" && a.Block != "w000-b0003" })
			},
		},
		"another value of a key is, even if other keys are absent": {
			tamper: func(l *testLedger) {
				executed(l, "image", "lab/x@sha256:1", in("loop", "w000-b0003"))
				executed(l, "programDigest", "blake3:a", arm("loop"))
				executed(l, "programDigest", "blake3:moved", in("loop", "w000-b0003"))
			},
			excluded: 12, reason: "programDigest is blake3:moved here and blake3:a there",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, 4)
			tc.tamper(l)
			got := l.choose()
			if len(got.Excluded()) != tc.excluded || got.Trials.Invalid != tc.excluded {
				t.Fatalf("%d excluded, %d invalid, want %d: %+v", len(got.Excluded()), got.Trials.Invalid, tc.excluded, got.Excluded())
			}
			says := func(e analysis.Exclusion) bool { return strings.Contains(e.Reason, tc.reason) }
			if tc.reason != "" && !slices.ContainsFunc(got.Excluded(), says) {
				t.Errorf("excluded %+v, want a reason with %q", got.Excluded(), tc.reason)
			}
		})
	}
}

func TestSelect_PlanOfAnotherProgramIsRejected(t *testing.T) {
	l := newLedger(t, 4)
	l.waves[0].Cells = slices.Clone(l.waves[0].Cells)
	for i := range l.waves[0].Cells {
		c := &l.waves[0].Cells[i]
		c.Argv = append([]string{"/opt/bin/pir-scan"}, c.Argv[1:]...)
	}
	for i := range l.attempts {
		l.attempts[i].Argv = append([]string{"/opt/bin/pir-scan"}, l.attempts[i].Argv[1:]...)
	}
	if got := l.choose(); len(got.Excluded()) > 0 {
		t.Fatalf("a plan may name another path of the same program: %+v", got.Excluded()[0])
	}
	for i := range l.waves[0].Cells {
		l.waves[0].Cells[i].Argv[0] = "/opt/bin/faster-scan"
	}
	for i := range l.attempts {
		l.attempts[i].Argv[0] = "/opt/bin/faster-scan"
	}
	got := l.choose()
	if got.Trials.Used != 0 || len(got.Excluded()) == 0 ||
		!strings.Contains(got.Excluded()[0].Reason, "the plan of wave 0 contradicts the experiment") {
		t.Errorf("used %d, excluded %+v", got.Trials.Used, got.Excluded()[:min(1, len(got.Excluded()))])
	}
}

// Blocks on machines that cannot be compared are not mixed into one estimate, although each block compares within itself.
func TestSelect_BlocksOfAnotherMachineAreRejected(t *testing.T) {
	run := newLedger(t, 8)
	for i := range run.attempts {
		a := &run.attempts[i]
		if a.Block >= "w000-b0005" {
			hard := map[string]any{"cpuModel": "Xeon"}
			for key, value := range a.Environment.Hard {
				if key != "cpuModel" {
					hard[key] = value
				}
			}
			a.Environment.Hard = hard
		}
	}
	got := run.choose()
	blocks := map[string]bool{}
	for _, attempt := range got.Used {
		blocks[attempt.Block] = true
	}
	if len(blocks) != 5 || blocks["w000-b0005"] {
		t.Errorf("attempts of %v are used, want those of the 5 blocks on the most common machine", blocks)
	}
	says := `cpuModel is "Xeon" here and "AMD EPYC" there`
	named := 0
	for _, exclusion := range got.Excluded() {
		if strings.Contains(exclusion.Reason, says) {
			named++
		}
	}
	if named != 3*36 {
		t.Errorf("%d exclusions say %q, want all 108: %.3v", named, says, got.Excluded())
	}
}

// An attempt counts only if it ended while its run held the node.
func TestSelect_RejectsAttemptsAfterTheEndOfTheirLease(t *testing.T) {
	lease := record.Lease{Node: "node-a", Token: 7}
	other := record.Lease{Node: "node-a", Token: 6}
	const blocks, trials = 4, 36
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
				return record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: run, Lease: lease}},
					Ends: []record.LeaseEnd{{Run: run, Lease: lease, EndedAt: end}}}
			}, blocks * trials, "",
		},
		"an attempt that ended after its lease": {
			func(run record.Run, end time.Time) record.Leases {
				return record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: run, Lease: lease}},
					Ends: []record.LeaseEnd{{Run: run, Lease: lease, EndedAt: end.Add(-time.Nanosecond)}}}
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
			run := newLedger(t, blocks)
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

			run.leases = tc.leases(run.exp.Run, lastEnd)
			got := run.choose()
			excluded := got.Excluded()
			if got.Trials.Used != tc.used || got.Trials.Used+got.Trials.Invalid != blocks*trials {
				t.Errorf("trials are %+v, want %d used and the others invalid", got.Trials, tc.used)
			}
			if (tc.reason == "") != (len(excluded) == 0) {
				t.Errorf("excluded: %+v", excluded)
			}
			for _, excluded := range excluded {
				if !strings.HasPrefix(excluded.Reason, tc.reason) {
					t.Errorf("%s is excluded for %q, want %q", excluded.Attempt, excluded.Reason, tc.reason)
				}
			}
		})
	}
}
