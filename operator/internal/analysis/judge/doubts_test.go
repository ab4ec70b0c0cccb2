package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// No arm has a gate here, but for the one that allows an arm to fail.
func TestDoubts_FoundWithoutGates(t *testing.T) {
	t.Parallel()
	machine := fixture.Machine{Seed: 3, Noise: fixture.QuietNoise, Seconds: fixture.ScanSeconds}
	half := assayv1alpha1.Gate{Name: "half", Op: assayv1alpha1.Completes, Bound: "0.5", Candidate: "fused-m4r"}
	crash := func(_ int, a *record.Attempt) { a.Outcome, a.Result = record.Failed, nil }
	some := func(every int, change func(int, *record.Attempt)) func(int, *record.Attempt) {
		return func(at int, a *record.Attempt) {
			if at%every == 0 {
				change(at, a)
			}
		}
	}
	cases := map[string]struct {
		edit   func(*fixture.RunSpec, *fixture.TemplateSpec)
		tamper func(l *analyzed.Run)
		// want are the reasons, arms and metrics, in their order.
		want []string
		says string
	}{
		"nothing is wrong, and nothing is said": {edit: fixture.OnePoint()},
		"fewer blocks than asked for are an error, and no doubt": {edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
			fixture.OnePoint()(spec, template)
			spec.Design.Blocks = assayv1alpha1.Blocks{Min: 20, Max: 20}
		}},
		"a trial of an arm crashed": {
			edit: fixture.OnePoint(), tamper: func(l *analyzed.Run) { l.EachMeasured("fused-m4r", some(100, crash)) },
			want: []string{"incomplete fused-m4r"}, says: "35 of 36 trials completed",
		},
		"as many as its gate allows, and other arms lost none": {
			edit: fixture.OnePoint(half), tamper: func(l *analyzed.Run) { l.EachMeasured("fused-m4r", some(3, crash)) },
			want: []string{"lost-unlike fused-m4r,loop", "lost-unlike fused-m4r,fused-naive"}, says: "lost 8",
		},
		"as many of all arms": {
			edit: fixture.OnePoint(half), tamper: func(l *analyzed.Run) {
				for _, arm := range []string{"fused-m4r", "fused-naive", "loop"} {
					l.EachMeasured(arm, some(3, crash))
				}
			}, want: []string{"incomplete loop", "incomplete fused-naive"},
		},
		"timeouts that its gate allows are bounds": {
			edit: fixture.OnePoint(half), tamper: func(l *analyzed.Run) {
				l.EachMeasured("fused-m4r", some(100, func(_ int, a *record.Attempt) { a.Outcome, a.Result = record.TimedOut, nil }))
			},
			want: []string{"timed-out fused-m4r latency", "timed-out fused-m4r throughput"},
		},
		"an arm that was measured unlike the two others": {
			edit: fixture.OnePoint(), tamper: func(l *analyzed.Run) { l.ShareCPUs("fused-m4r", 0, 24) },
			want: []string{"measured-unlike fused-m4r,loop", "measured-unlike fused-m4r,fused-naive"}, says: "isolation.level",
		},
		"two arms unlike each other, of which neither is unlike the baseline": {
			edit: fixture.OnePoint(), tamper: func(l *analyzed.Run) {
				l.ShareCPUs("loop", 0, 4)
				l.ShareCPUs("fused-m4r", 0, 10)
			},
			want: []string{"measured-unlike fused-m4r,fused-naive"},
		},
		"two of twelve arms that are as far apart as some are by accident": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.OnePoint()(spec, template)
				for i := range 9 {
					name := fmt.Sprintf("arm-%d", i)
					spec.Arms = append(spec.Arms, assayv1alpha1.Arm{Name: name, Parameters: assayv1alpha1.ParameterValues{"strategy": name}})
				}
			}, tamper: func(l *analyzed.Run) {
				for _, arm := range l.Exp.Arms {
					l.ShareCPUs(arm.Name, 0, map[string]int{"fused-m4r": 0, "fused-naive": 6}[arm.Name])
					if !strings.HasPrefix(arm.Name, "fused") {
						l.ShareCPUs(arm.Name, 0, 3)
					}
				}
			},
		},
		"one arm before the other in every block, and both took turns with the baseline": {
			edit: fixture.OnePoint(), tamper: func(l *analyzed.Run) { l.RunInTurns(machine) },
			want: []string{"one-place fused-m4r,fused-naive"},
		},
		"an arm that is to run the baseline's program reports another workload": {
			edit: fixture.OnePoint(), tamper: func(l *analyzed.Run) {
				l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Workload.Name = "other" })
			}, want: []string{"other-workload fused-m4r"},
		},
		"a trial of the null arm, which is the baseline, crashed": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.OnePoint()(spec, template)
				spec.Design.NullArm = true
			}, tamper: func(l *analyzed.Run) { l.EachMeasured("null", some(100, crash)) }, want: []string{"incomplete loop"}, says: "arm null",
		},
		"one block is a copy of another": {
			edit: fixture.OnePoint(), tamper: func(l *analyzed.Run) {
				for i := range l.Attempts {
					if a := &l.Attempts[i]; a.Block == "w000-b0005" {
						of := l.Attempts[slices.IndexFunc(l.Attempts, func(b record.Attempt) bool {
							return b.Block == "w000-b0004" && b.Slot == a.Slot && b.Warmup == a.Warmup
						})]
						a.StartedAt, a.DurationSeconds = of.StartedAt, of.DurationSeconds
					}
				}
			}, want: []string{"copied"},
		},
		"a plan cannot be read": {
			edit: fixture.OnePoint(), tamper: func(l *analyzed.Run) {
				l.Problems = []record.Problem{{Source: record.Source{Key: "waves/000/wave.json"}, Reason: "x"}}
			}, want: []string{"evidence-missing"},
		},
		"a part of an arm's readings of memory": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.OnePoint()(spec, template)
				silent()(spec, template)
			}, tamper: func(l *analyzed.Run) {
				for i := range l.Attempts {
					l.Attempts[i].Result = nil
				}
				l.EachMeasured("fused-m4r", some(2, func(_ int, a *record.Attempt) { a.Resources.MaxRSSBytes = nil }))
			},
			want: []string{"partly-read fused-m4r process.peakMemory"},
		},
	}
	for name, tc := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			run := analyzed.SimulateScan(t, 12, machine, tc.edit)
			if tc.tamper != nil {
				tc.tamper(run)
			}
			var got []string
			says := ""
			for _, doubt := range run.Analyze().Doubts {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", doubt.Reason, strings.Join(doubt.Arms, ","), doubt.Metric)))
				says += doubt.Detail + "\n"
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) || !strings.Contains(says, tc.says) {
				t.Errorf("got %q, want %q\n%s", got, tc.want, says)
			}
		})
	}
}

// Trials of a minority environment are not part of a figure, and their exclusion must not change it.
func TestRatios_IncludeOtherEnvironments(t *testing.T) {
	t.Parallel()
	for name, slowdown := range map[string]float64{"the same": 1, "another one": 1.5} {
		t.Run(name, func(t *testing.T) {
			run := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 3, Noise: fixture.QuietNoise}, fixture.OnePoint())
			for i := range run.Attempts {
				a := &run.Attempts[i]
				if a.Block < "w000-b0004" {
					a.Environment.Hard = map[string]any{"cpuModel": "Xeon"}
					if a.Arm == "fused-m4r" {
						fixture.Neighbour{Slowdown: slowdown}.Disturb(a)
					}
				}
			}
			found := run.Analyze()
			of := contrast.Quantity{Point: found.Ratios[0].Point, Metric: "latency", Statistic: "median"}
			over, under := []string{"fused-m4r"}, []string{"loop"}
			c, err := contrast.Of(found, run.Exp, of, over, under)
			if err != nil {
				t.Fatal(err)
			}
			why := contrast.LeftOut(found, run.Exp, of, over, under, c)
			if (why != "") != (slowdown > 1) || why != "" && !strings.Contains(why, "of other environments") {
				t.Errorf("it says %q", why)
			}
		})
	}
}

// Many doubts about all points become one, which bounds the size of the analysis.
func TestDoubts_NumberIsBounded(t *testing.T) {
	t.Parallel()
	run := analyzed.SimulateScan(t, 3, fixture.Machine{Seed: 3, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1)}, func(
		spec *fixture.RunSpec, _ *fixture.TemplateSpec) {
		spec.Gates, spec.Predictions, spec.Budget.Trials = nil, nil, 10000
		for i := range 31 {
			name := fmt.Sprintf("arm-%d", i)
			spec.Arms = append(spec.Arms, assayv1alpha1.Arm{Name: name, Parameters: assayv1alpha1.ParameterValues{"strategy": name}})
		}
	})
	for i := range run.Attempts {
		run.Attempts[i].Isolation.Level = "of " + run.Attempts[i].Arm
	}
	// More arms than the API takes, which is simpler than as many points.
	found := analyze.Evidence(run.Exp, record.Evidence{Waves: run.Waves, Attempts: run.Attempts}, 0)
	if len(found.Doubts) != 1 || found.Doubts[0].Reason != analysis.DoubtTooMany || len(found.Doubts[0].Arms) > 0 {
		t.Errorf("%d doubts, the first %+v", len(found.Doubts), found.Doubts[0])
	}
}
