package judge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// A bad trial counts also after it was moved into an execution that does not count, into a warm-up, or out of the plan.
func TestMovedTrials_FailuresStillCount(t *testing.T) {
	t.Parallel()
	crash := func(a *record.Attempt) {
		a.Outcome, a.ExitCode, a.Signal, a.Result = record.Failed, nil, ptr.To(11), nil
	}
	negative := func(a *record.Attempt) { fixture.ScaleTime(a, -1) }
	stale := func(a *record.Attempt) { a.Lease, a.Kept = &record.Lease{}, &record.Kept{Lease: record.LeaseEnded} }
	leases := func(run record.Run) record.Leases {
		return record.Leases{Known: true, Taken: []record.LeaseTaken{{Run: run}}}
	}
	// again executes every block once more; the first execution, of which spoil changes the trials of arms, lacks its last trial.
	again := func(l *analyzed.Run, spoil func(*record.Attempt), arms ...string) {
		second := slices.Clone(l.Attempts)
		for i := range second {
			a := &second[i]
			a.ID, a.StartedAt, a.Source = "second/"+a.Trial, a.StartedAt.Add(time.Hour), record.Source{}
		}
		l.Retain(func(a record.Attempt) bool { return a.Slot < 5 })
		for _, arm := range arms {
			l.EachOf(arm, spoil)
		}
		l.Attempts = append(l.Attempts, second...)
	}
	first := func(l *analyzed.Run, change func(*record.Attempt)) {
		for i := range l.Attempts {
			if !strings.HasPrefix(l.Attempts[i].ID, "second/") {
				change(&l.Attempts[i])
			}
		}
	}
	underStale := func(l *analyzed.Run, arms ...string) record.Evidence {
		again(l, crash, arms...)
		first(l, stale)
		return record.Evidence{Leases: leases(l.Exp.Run)}
	}
	markers := func(l *analyzed.Run, arms ...int) (out []record.Started) {
		for _, block := range l.Waves[0].Blocks {
			for slot, cell := range block.Warmup {
				if arm := l.Waves[0].Cells[cell].Arm; slices.Contains(arms, arm) {
					trial := record.TrialName(block.ID, slot, true)
					out = append(out, record.Started{Schema: record.StartedSchema, ID: "lost/" + trial, Trial: trial, Block: block.ID,
						Arm: l.Exp.Arms[arm].Name, StartedAt: "2026-11-21T08:00:00Z"})
				}
			}
		}
		return out
	}
	nothing := record.Evidence{}
	for name, c := range map[string]struct {
		spoil func(*analyzed.Run) record.Evidence
		want  experiment.Verdict
		says  string
	}{
		"every block ran twice": {func(l *analyzed.Run) record.Evidence { again(l, crash); return nothing }, fixture.Go, ""},
		"the candidate reported nothing of use in the execution that does not count": {
			func(l *analyzed.Run) record.Evidence { again(l, negative, "new"); return nothing }, fixture.Inconclusive,
			"25 of no use in another execution",
		},
		"nor did the baseline": {
			func(l *analyzed.Run) record.Evidence { again(l, negative, "new", "old"); return nothing }, fixture.Go, "",
		},
		"the candidate crashed under a lease that was stale": {
			func(l *analyzed.Run) record.Evidence { return underStale(l, "new") }, fixture.Inconclusive,
			"25 failed in an execution that does not count",
		},
		"so did the baseline": {func(l *analyzed.Run) record.Evidence { return underStale(l, "new", "old") }, fixture.Go, ""},
		"the candidate's warm-ups never ended": {
			func(l *analyzed.Run) record.Evidence { return record.Evidence{Unfinished: markers(l, 1)} }, fixture.Inconclusive,
			"10 begun and never ended",
		},
		"nor did the baseline's": {
			func(l *analyzed.Run) record.Evidence { return record.Evidence{Unfinished: markers(l, 0, 1)} }, fixture.Go, "",
		},
		"plans without the trials in which the candidate crashed": {func(l *analyzed.Run) record.Evidence {
			for i := range l.Waves[0].Blocks {
				l.Waves[0].Blocks[i].Order = l.Waves[0].Blocks[i].Order[:5]
			}
			l.EachOf("new", func(a *record.Attempt) {
				if a.Slot > 4 {
					crash(a)
				}
			})
			return nothing
		}, fixture.Inconclusive, "attempts/w000-b0000/simulated/w000-b0000-s00005.json is missing, cannot be read or contradicts"},
		"a wave in which the candidate is slower, with another run's plan": {func(l *analyzed.Run) record.Evidence {
			l.AddWave(t, record.Screen, 1.2)
			l.Waves[1].Experiment = "sha256:0"
			return nothing
		}, fixture.Inconclusive, "waves/001/wave.json is missing, cannot be read or contradicts"},
		"both arms lost a third of their trials, the candidate the slower ones": {func(l *analyzed.Run) record.Evidence {
			count := map[string]int{}
			for i := range l.Attempts {
				a := &l.Attempts[i]
				if count[a.Block+a.Arm]++; count[a.Block+a.Arm] == 1 {
					a.Outcome, a.ExitCode, a.Result = record.NotStarted, nil, nil
				}
			}
			return nothing
		}, fixture.Inconclusive, "20 of 30 trials completed against at least 1.000: 10 missing"},
		"no plan, and a crash is an attempt of something else": {func(l *analyzed.Run) record.Evidence {
			a := l.LastOf("new")
			crash(a)
			a.Argv, l.Waves = []string{"/other"}, nil
			return nothing
		}, fixture.Inconclusive, "is missing, cannot be read or contradicts"},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, func(spec *fixture.RunSpec) { spec.Design.WarmupTrials = 1 })
			evidence := c.spoil(l)
			evidence.Waves, evidence.Attempts = l.Waves, l.Attempts
			got := analyze.Evidence(l.Exp, evidence, 9)
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.says) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.says)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// An unknown output may be the one that differs, for any cause, also if not all trials have to complete.
func TestParity_MissingOutputIsNotEqual(t *testing.T) {
	t.Parallel()
	marker := func(a *record.Attempt) []record.Started {
		return []record.Started{{Schema: record.StartedSchema, ID: a.ID, Trial: a.Trial, Block: a.Block, Point: a.Point, Arm: a.Arm,
			StartedAt: "2026-11-21T08:00:00Z"}}
	}
	for name, c := range map[string]struct {
		take       bool
		unfinished func(*record.Attempt) []record.Started
		executor   string
		want       experiment.Verdict
	}{
		"all outputs are there":                         {want: fixture.Go},
		"one is in an execution that does not count":    {executor: "other/", want: fixture.Go},
		"one attempt is not there":                      {take: true, want: fixture.Inconclusive},
		"nor is that of a trial that is known to begin": {take: true, unfinished: marker, want: fixture.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.5)},
				fixture.WithGates(fixture.GainAt8("1.1"),
					assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual},
					assayv1alpha1.Gate{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}))
			one := l.LastOf("fused-m4r")
			evidence := record.Evidence{Waves: l.Waves}
			if c.unfinished != nil {
				evidence.Unfinished = c.unfinished(one)
			}
			if c.executor != "" {
				one.ID = c.executor + one.Trial
			}
			if id := one.ID; c.take {
				l.Retain(func(a record.Attempt) bool { return a.ID != id })
			}
			evidence.Attempts = l.Attempts
			got := analyze.Evidence(l.Exp, evidence, 0)
			at := slices.IndexFunc(got.Gates, func(g analysis.GateResult) bool {
				return g.Gate == "same" && g.Candidate == "fused-m4r" && g.Outcome == fixture.Inconclusive
			})
			if candidate := got.Candidates[1]; candidate.Verdict != c.want || (at >= 0) != (c.want == fixture.Inconclusive) {
				t.Errorf("%s: %s, want %s", candidate.Verdict, candidate.Reason, c.want)
			}
		})
	}
}

// A null arm that lost the trials in which it moved shows nothing.
func TestNullArm_WithLostTrialsIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arms []string
		want experiment.Verdict
	}{
		"it lost nothing":           {nil, fixture.Go},
		"it lost half":              {[]string{"null"}, fixture.Inconclusive},
		"so did all":                {[]string{"old", "new", "null"}, fixture.Go},
		"the candidate did as well": {[]string{"new", "null"}, fixture.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, fixture.CombineEdits(fixture.CompletesGate("0.4", ""), func(spec *fixture.RunSpec) {
				spec.Design.NullArm = true
			}))
			for _, arm := range c.arms {
				of := map[string]int{}
				l.EachOf(arm, func(a *record.Attempt) {
					if of[a.Block]++; of[a.Block] == 1 {
						a.Outcome, a.ExitCode, a.Result = record.NotStarted, nil, nil
					}
				})
			}
			if got := l.Analyze(); got.Verdict != c.want {
				t.Errorf("%s: %s, want %s", got.Verdict, got.Candidates[0].Reason, c.want)
			}
		})
	}
}

// A crash with an altered object is not a success. The test tries every pair of alterations of two crashed trials.
func TestCrash_AlteredObjectIsNotGo(t *testing.T) {
	t.Parallel()
	key := func(a *record.Attempt) string { return "attempts/" + a.Block + "/" + a.ID + ".json" }
	gone := func(a *record.Attempt) { a.ID = "" }
	ways := map[string]func(*record.Attempt, *record.Evidence){
		"another execution": func(a *record.Attempt, _ *record.Evidence) { a.ID = "other/" + a.Trial },
		"a stale lease": func(a *record.Attempt, e *record.Evidence) {
			a.Lease, e.Leases = &record.Lease{Node: "unknown", Token: 1}, record.Leases{Known: true}
		},
		"nothing": func(a *record.Attempt, _ *record.Evidence) { gone(a) },
		"a trial without an end": func(a *record.Attempt, e *record.Evidence) {
			e.Unfinished = append(e.Unfinished, record.Started{Schema: record.StartedSchema, ID: a.ID, Trial: a.Trial, Block: a.Block,
				Point: a.Point, Arm: a.Arm, StartedAt: "2026-11-21T08:00:00Z"})
			gone(a)
		},
		"unreadable": func(a *record.Attempt, e *record.Evidence) {
			e.Problems = append(e.Problems, record.Problem{Source: record.Source{Key: key(a)}, Reason: "x"})
			gone(a)
		},
		"sealed as another object": func(a *record.Attempt, e *record.Evidence) {
			e.Sealed = map[string]string{key(a): strings.Repeat("0", 64)}
		},
		"another environment": func(a *record.Attempt, _ *record.Evidence) {
			a.Environment = record.Environment{Hard: map[string]any{"cpuModel": "another"}}
		},
		"another program": func(a *record.Attempt, _ *record.Evidence) {
			a.Environment.Soft = map[string]any{"programDigest": "blake3:b"}
		},
		"a warm-up": func(a *record.Attempt, _ *record.Evidence) {
			a.Warmup, a.Trial = true, record.TrialName(a.Block, a.Slot, true)
			a.ID = "simulated/" + a.Trial
		},
		"another slot": func(a *record.Attempt, _ *record.Evidence) {
			a.Slot += 9
			a.Trial = record.TrialName(a.Block, a.Slot, false)
			a.ID = "simulated/" + a.Trial
		},
		"another time":               func(a *record.Attempt, _ *record.Evidence) { a.StartedAt = a.StartedAt.Add(-time.Hour) },
		"a later wave":               func(a *record.Attempt, _ *record.Evidence) { a.Wave = 9 },
		"another run":                func(a *record.Attempt, _ *record.Evidence) { a.Run.UID = "another" },
		"a build":                    func(a *record.Attempt, _ *record.Evidence) { a.Build = "b" },
		"another command":            func(a *record.Attempt, _ *record.Evidence) { a.Argv = []string{"/other"} },
		"the baseline's":             func(a *record.Attempt, _ *record.Evidence) { a.Arm = "old" },
		"a trial that never started": func(a *record.Attempt, _ *record.Evidence) { a.Outcome, a.Signal = record.NotStarted, nil },
		"a crash as it was":          func(*record.Attempt, *record.Evidence) {},
	}
	for one, first := range ways {
		for other, second := range ways {
			if testing.Short() && fixture.OmittedInShortForm(one+other) {
				continue
			}
			l := analyzed.SimulatePair(t, 0.94, nil)
			evidence := record.Evidence{Waves: l.Waves}
			did := 0
			l.EachOf("new", func(a *record.Attempt) {
				if did++; did > 2 {
					return
				}
				a.Outcome, a.ExitCode, a.Signal, a.Result, a.Source = record.Failed, nil, ptr.To(11), nil, record.Source{}
				[]func(*record.Attempt, *record.Evidence){first, second}[did-1](a, &evidence)
			})
			l.Retain(func(a record.Attempt) bool { return a.ID != "" })
			evidence.Attempts = l.Attempts
			if got := analyze.Evidence(l.Exp, evidence, 0); got.Verdict == fixture.Go {
				t.Errorf("%s and %s are made of two crashes: %s: %s", one, other, got.Verdict, got.Candidates[0].Reason)
			}
		}
	}
}
