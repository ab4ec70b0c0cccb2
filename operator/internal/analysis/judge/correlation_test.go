package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// A declared correlation widens the interval for any remaining blocks on any nodes, or no gate decides. Without a true difference, few
// runs report one.
func TestBlockCorrelation_WidensOrPreventsDecision(t *testing.T) {
	t.Parallel()
	node := func(of func(number int) int) func(*testing.T, *record.Attempt) {
		return func(t *testing.T, a *record.Attempt) {
			a.Environment.Soft = map[string]any{"nodeName": fmt.Sprint("n", of(fixture.BlockNumber(t, a)))}
		}
	}
	for name, c := range map[string]struct {
		blocks int32
		change func(*testing.T, *record.Attempt)
		capped bool
	}{
		"ten blocks of one node":              {10, func(*testing.T, *record.Attempt) {}, false},
		"ten blocks, each on a separate node": {10, node(func(n int) int { return n }), false},
		"of five nodes in turns":              {10, node(func(n int) int { return n % 5 }), false},
		"of five nodes, two after two":        {10, node(func(n int) int { return n / 2 }), false},
		"of two nodes in turns":               {10, node(func(n int) int { return n % 2 }), false},
		"six blocks":                          {6, func(*testing.T, *record.Attempt) {}, false},
		"six, of which noise takes one":       {6, noisyIn(3), true},
	} {
		t.Run(name, func(t *testing.T) {
			runs, decided := 200, 0
			if testing.Short() {
				runs = 2
			}
			for seed := range runs {
				exp, err := fixture.PairExperiment(func(s *fixture.RunSpec) {
					s.Design.BlockCorrelation, s.Design.Blocks = "0.85", assayv1alpha1.Blocks{Min: c.blocks, Max: c.blocks}
				})
				if err != nil {
					t.Fatal(err)
				}
				wave, err := fixture.Wave(exp, 0, 0, int(c.blocks))
				if err != nil {
					t.Fatal(err)
				}
				world := fixture.NewWorld(fixture.Scenario{Trial: 0.002, Wander: 0.03, Persistence: 0.85}, 0, 3, uint64(seed))
				attempts := world.Run(exp, wave)
				for i := range attempts {
					c.change(t, &attempts[i])
				}
				got := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
				if got.Verdict == fixture.Go || got.Verdict == fixture.NoGo {
					decided++
				}
				if found := slices.ContainsFunc(got.Gates[0].Caps, func(one analysis.Cap) bool {
					return one.Reason == analysis.CapCorrelation && strings.Contains(one.Detail, "it has 5 blocks, and the correlation")
				}); found != c.capped {
					t.Fatalf("caps %+v, want one of the correlation: %v", got.Gates[0].Caps, c.capped)
				}
			}
			// The gates' confidence allows for one in two hundred.
			if decided > 4 {
				t.Errorf("%d of %d runs decide where nothing differs", decided, runs)
			}
		})
	}
}

// noisyIn simulates interference in a block.
func noisyIn(block int) func(*testing.T, *record.Attempt) {
	return func(t *testing.T, a *record.Attempt) {
		a.Noise = fixture.Quiet(a.DurationSeconds)
		if fixture.BlockNumber(t, a) == block {
			a.Noise.During.OtherWorkRatio = ptr.To(0.4)
		}
	}
}

// A difference that is large relative to the spread of blocks is still detected.
func TestBlockCorrelation_LargeDifferenceIsDetected(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	l := analyzed.SimulatePair(t, 0.8, func(s *fixture.RunSpec) { s.Design.BlockCorrelation = "0.85" })
	for i := range l.Attempts {
		l.Attempts[i].Environment.Soft = map[string]any{"nodeName": l.Attempts[i].Block}
	}
	if got := l.Analyze(); got.Verdict != fixture.Go {
		t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
	}
}
