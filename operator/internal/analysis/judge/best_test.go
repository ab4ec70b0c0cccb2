package judge_test

import (
	"slices"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// withThird adds a third candidate.
func withThird(spec *fixture.RunSpec) {
	spec.Arms = append(spec.Arms, assayv1alpha1.Arm{Name: "third", Parameters: assayv1alpha1.ParameterValues{"strategy": "fused-naive"}})
}

// speeds are how many times as fast as the loop the arms are, at single queries and in batches.
func speeds(single, batch map[string]float64) func(record.Point, string) float64 {
	return func(point record.Point, arm string) float64 {
		of := batch
		if point.Parameters["batchSize"] == "1" {
			of = single
		}
		return fixture.ScanSeconds(point, "loop") / of[arm]
	}
}

// Candidates are compared if their gates judge the same figure.
func TestBest_UsesFigureOfItsGates(t *testing.T) {
	t.Parallel()
	// In batches m4r is the faster one, at single queries naive.
	turning := speeds(map[string]float64{"loop": 1, "fused-naive": 2.2, "fused-m4r": 2, "third": 2},
		map[string]float64{"loop": 1, "fused-naive": 2, "fused-m4r": 2.2, "third": 2})
	gain := func(candidate, batchSize string) assayv1alpha1.Gate {
		return assayv1alpha1.Gate{
			Name: "gain" + batchSize + candidate, Candidate: candidate, Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "1.1",
			At: assayv1alpha1.ParameterValues{"batchSize": batchSize, "pendingDelta": "0"},
		}
	}
	advisory := gain("", "1")
	advisory.Severity = assayv1alpha1.Advisory
	lost := func(a *record.Attempt, arm, block string) {
		if a.Arm == arm && a.Block == block && a.Point == fixture.Point8 {
			a.Outcome, a.Result = record.NotStarted, nil
		}
	}
	correlated := func(spec *fixture.RunSpec) { spec.Design.BlockCorrelation = "0.2" }
	both := []string{"fused-m4r", "fused-naive"}
	for name, c := range map[string]struct {
		blocks int
		edit   func(*fixture.RunSpec)
		gates  []assayv1alpha1.Gate
		spoil  func(a *record.Attempt)
		want   []string
	}{
		"at the last point of the sweep":                      {gates: []assayv1alpha1.Gate{gain("", "8")}, want: both[:1]},
		"at the first one":                                    {gates: []assayv1alpha1.Gate{gain("", "1")}, want: both[1:]},
		"an advisory gate before it plays no part":            {gates: []assayv1alpha1.Gate{advisory, gain("", "8")}, want: both[:1]},
		"of several gates the first one":                      {gates: []assayv1alpha1.Gate{gain("", "1"), gain("", "8")}, want: both[1:]},
		"candidates whose gates look elsewhere are no rivals": {gates: []assayv1alpha1.Gate{gain("fused-m4r", "8"), gain("fused-naive", "1")}, want: both},
		"one that is judged elsewhere beside two that are not": {
			edit: withThird, gates: []assayv1alpha1.Gate{gain("third", "1"), gain("fused-naive", "8"), gain("fused-m4r", "8")},
			want: []string{"fused-m4r", "third"},
		},
		"five blocks are enough":                              {blocks: 5, gates: []assayv1alpha1.Gate{gain("", "8")}, want: both[:1]},
		"six where they are declared to depend on each other": {blocks: 6, edit: correlated, gates: []assayv1alpha1.Gate{gain("", "8")}, want: both[:1]},
		"five that both have are not enough then": {
			blocks: 7, edit: correlated, want: both,
			gates: []assayv1alpha1.Gate{gain("", "8"), {Name: "done", Op: assayv1alpha1.Completes, Bound: "0.5"}},
			spoil: func(a *record.Attempt) { lost(a, "fused-m4r", "w000-b0000"); lost(a, "fused-naive", "w000-b0001") },
		},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			blocks := c.blocks
			if blocks == 0 {
				blocks = 8
			}
			l := analyzed.SimulateScan(t, blocks, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: turning}, func(
				spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(c.gates...)(spec, template)
				spec.Design.Blocks.Min = int32(min(blocks, 6))
				if c.edit != nil {
					c.edit(spec)
				}
			})
			for i := range l.Attempts {
				if c.spoil != nil {
					c.spoil(&l.Attempts[i])
				}
			}
			if got := l.BestCandidates(t); !slices.Equal(got, c.want) {
				t.Errorf("the best are %q, want %q", got, c.want)
			}
		})
	}
}

// Each further candidate is a chance more to be ahead of another one by accident.
func TestBest_CorrectsForComparisons(t *testing.T) {
	t.Parallel()
	all := map[string]float64{"loop": 1, "third": 2, "fused-naive": 2, "fused-m4r": 2.05}
	machine := fixture.Machine{Seed: 0, Noise: fixture.Noise{Block: 0.02, Trial: 0.02, Sample: 0.01}, Seconds: speeds(all, all)}
	for name, c := range map[string]struct {
		edit func(*fixture.RunSpec)
		want []string
	}{
		"of two candidates one is narrowly ahead": {func(*fixture.RunSpec) {}, []string{"fused-m4r"}},
		"of three that is not enough":             {withThird, []string{"fused-m4r", "fused-naive", "third"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, machine, func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("1.1"))(spec, template)
				c.edit(spec)
			})
			if got := l.BestCandidates(t); !slices.Equal(got, c.want) {
				t.Errorf("the best are %q, want %q", got, c.want)
			}
		})
	}
}

// A count with a trial of 0 is compared by means, and the candidate with fewer is still the best.
func TestBest_CountsWithZeros(t *testing.T) {
	t.Parallel()
	for name, zero := range map[string]int{"every trial has some": -1, "one trial has none": 5} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, silent(assayv1alpha1.Gate{
				Name: "fewer", Metric: "process.minorFaults", Op: assayv1alpha1.RatioAtMost, Bound: "0.9", At: fixture.At8,
			}))
			for arm, faults := range map[string]int64{"loop": 1000, "fused-naive": 700, "fused-m4r": 200} {
				trial := 0
				using(l, arm, func(block int, a *record.Attempt) {
					a.Resources = record.Resources{MinorFaults: ptr.To(faults + int64(block%3))}
					if a.Point == fixture.Point8 && !a.Warmup {
						if trial == zero && arm == "fused-m4r" {
							a.Resources.MinorFaults = ptr.To(int64(0))
						}
						trial++
					}
				})
			}
			if got := l.BestCandidates(t); !slices.Equal(got, []string{"fused-m4r"}) {
				t.Errorf("the best are %q", got)
			}
		})
	}
}
