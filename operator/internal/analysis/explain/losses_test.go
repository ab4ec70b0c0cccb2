package explain_test

import (
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestLost_BlocksToRepeat(t *testing.T) {
	cases := map[string]struct {
		policy assayv1alpha1.ViolationPolicy
		damage func(*record.Attempt) bool
		unrun  []string
		lost   int
		cut    int
	}{
		"all blocks are there":                          {"", nil, nil, 0, 0},
		"a block that left nothing":                     {"", func(a *record.Attempt) bool { return a.Block != "w000-b0002" }, []string{"w000-b0002"}, 0, 0},
		"an arm that never started":                     {"", fate("w000-b0002", "loop", record.NotStarted), nil, 1, 0},
		"an arm that failed has its result":             {"", fate("w000-b0002", "loop", record.Failed), nil, 0, 0},
		"a noisy block":                                 {"", noisyBlock("w000-b0001"), nil, 1, 0},
		"a noisy block that is to be left out":          {assayv1alpha1.ViolationInvalid, noisyBlock("w000-b0001"), nil, 0, 0},
		"a lost one still counts":                       {assayv1alpha1.ViolationInvalid, fate("w000-b0002", "loop", record.NotStarted), nil, 1, 0},
		"a block that was cut short in its first trial": {"", upTo("w000-b0002", "w000-b0002-s00001"), nil, 1, 1},
		"a block that was cut short in its last trial":  {"", upTo("w000-b0002", "w000-b0002-s00035"), nil, 0, 1},
		"a block of which programs ended an execution, and the next one was cut short": {
			"", endedBy("w000-b0002", "w000-b0002-s00034"), nil, 0, 1,
		},
		"a block of which programs ended all executions": {
			"", endedBy("w000-b0002", "w000-b0002-s00031", "w000-b0002-s00032", "w000-b0002-s00033", "w000-b0002-s00034"), nil, 0, 0,
		},
		"a noisy block that counts": {assayv1alpha1.ViolationWarn, noisyBlock("w000-b0001"), nil, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Design.Blocks.Min = 4
				if tc.policy != "" {
					spec.Environment = &assayv1alpha1.Environment{OnViolation: tc.policy}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			wave, err := fixture.Wave(exp, 0, 0, 4)
			if err != nil {
				t.Fatal(err)
			}
			var attempts []record.Attempt
			for _, attempt := range (fixture.Machine{Seed: 1, Seconds: fixture.ScanSeconds, Noise: fixture.Noise{Trial: 0.01}}).Run(exp, wave) {
				if tc.damage == nil || tc.damage(&attempt) {
					attempts = append(attempts, attempt)
				}
			}
			found := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
			if !slices.Equal(found.Unrun, tc.unrun) || found.LostBlocks != tc.lost || found.CutBlocks != tc.cut {
				t.Errorf("unrun %v, lost %d and cut %d; want %v, %d and %d", found.Unrun, found.LostBlocks, found.CutBlocks, tc.unrun, tc.lost, tc.cut)
			}
		})
	}
}

// upTo ends a block before a trial: of that one and those after it there is nothing.
func upTo(block, trial string) func(*record.Attempt) bool {
	return func(a *record.Attempt) bool { return a.Block != block || a.Trial < trial }
}

// endedBy is a block whose executions some trials ended, as those that stop their runner, and that has nothing behind the last of them.
func endedBy(block string, trials ...string) func(*record.Attempt) bool {
	return func(a *record.Attempt) bool {
		if slices.Contains(trials, a.Trial) {
			a.Outcome, a.Result, a.ExitCode, a.Message, a.EndedExecution = record.Failed, nil, nil, "test", true
		}
		return a.Block != block || a.Trial <= trials[len(trials)-1]
	}
}

// fate ends the trials of an arm in a block; the attempts stay.
func fate(block, arm string, outcome record.Outcome) func(*record.Attempt) bool {
	return func(a *record.Attempt) bool {
		if a.Block == block && a.Arm == arm {
			a.Outcome, a.Result, a.ExitCode, a.Message = outcome, nil, nil, "test"
		}
		return true
	}
}

func noisyBlock(block string) func(*record.Attempt) bool {
	return func(a *record.Attempt) bool {
		if a.Block == block {
			a.Noise.During.StealRatio = ptr.To(0.5)
		}
		return true
	}
}
