package plan

import (
	"fmt"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// withBuilds is an experiment of two points whose arms are so many builds; 0 is one without a name.
func withBuilds(t *testing.T, old, new int, edit func(*assayv1alpha1.BenchmarkRunSpec)) *experiment.Experiment {
	t.Helper()
	list := func(n int) (out []assayv1alpha1.Build) {
		for b := range n {
			out = append(out, assayv1alpha1.Build{Name: fmt.Sprintf("b%d", b), Program: fmt.Sprintf("/builds/%d", b)})
		}
		return out
	}
	template := assayv1alpha1.BenchmarkTemplateSpec{
		Image: "lab/tool:1", Command: []string{"/tool"}, Parity: assayv1alpha1.ParityNone, Output: assayv1alpha1.Output{Format: assayv1alpha1.NoOutput},
		Parameters: []assayv1alpha1.Parameter{{Name: "size"}},
	}
	spec := assayv1alpha1.BenchmarkRunSpec{
		Sweep:  &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "size", Values: []string{"1", "2"}}}},
		Arms:   []assayv1alpha1.Arm{{Name: "old", Baseline: true, Builds: list(old)}, {Name: "new", Builds: list(new)}},
		Design: assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 12}},
	}
	if edit != nil {
		edit(&spec)
	}
	exp, err := experiment.Freeze(record.Run{Name: "builds", UID: "1"}, spec, template)
	if err != nil {
		t.Fatal(err)
	}
	return exp
}

func TestBuildsTakeTurns(t *testing.T) {
	for _, tc := range []struct{ old, new int }{{4, 4}, {6, 3}, {0, 12}, {12, 12}} {
		for seed := range int64(5) {
			exp := withBuilds(t, tc.old, tc.new, func(spec *assayv1alpha1.BenchmarkRunSpec) {
				spec.Design.Seed, spec.Design.NullArm = seed+1, true
			})
			wave, err := BuildWave(exp, 0, 0, 12, []Lane{{}})
			if err != nil {
				t.Fatal(err)
			}
			ran := map[string]int{}
			began := map[string]map[string]bool{}
			for _, block := range wave.Blocks {
				if len(block.Order) != 2*exp.CellsPerBlock() {
					t.Fatalf("block %s has %d trials for %d cells", block.ID, len(block.Order), exp.CellsPerBlock())
				}
				builds := map[string]string{}
				for slot, index := range block.Order {
					c := wave.Cells[index]
					arm := wave.Arms[c.Arm].Name
					if other, ok := builds[arm]; ok && other != c.Build {
						t.Fatalf("block %s mixes builds %s and %s of %s", block.ID, other, c.Build, arm)
					}
					builds[arm] = c.Build
					if slot == 0 && c.Build != "" {
						if began[c.Build] == nil {
							began[c.Build] = map[string]bool{}
						}
						began[c.Build][arm] = true
					}
				}
				if builds["null"] != builds["old"] {
					t.Errorf("block %s: the null arm runs build %q and the baseline %q", block.ID, builds["null"], builds["old"])
				}
				if tc.old == tc.new && builds["old"] != builds["new"] {
					t.Errorf("block %s: build %q meets %q", block.ID, builds["old"], builds["new"])
				}
				for arm, build := range builds {
					ran[arm+"/"+build]++
				}
			}
			for name, n := range map[string]int{"old": tc.old, "new": tc.new} {
				for b := range n {
					if got := ran[fmt.Sprintf("%s/b%d", name, b)]; got != 12/n {
						t.Errorf("seed %d: build b%d of %s ran in %d of 12 blocks, want %d", seed+1, b, name, got, 12/n)
					}
				}
			}
		}
	}
}

func TestTheBudgetCountsOneBuildPerBlock(t *testing.T) {
	exp := withBuilds(t, 12, 12, func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Budget.Trials = 12 * 2 * 2 * 2 })
	if step := Next(exp, nil, Findings{}); step.Blocks != 12 {
		t.Errorf("step %+v, want 12 blocks", step)
	}
}

func TestAWaveDrawsLayoutsUnlessTheyAreFixed(t *testing.T) {
	for layout, want := range map[assayv1alpha1.Layout]bool{"": true, assayv1alpha1.LayoutRandomize: true, assayv1alpha1.LayoutFixed: false} {
		exp := withBuilds(t, 0, 0, func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Design.Layout, spec.Design.Seed = layout, 7 })
		wave, err := BuildWave(exp, 0, 0, 3, []Lane{{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := wave.Workload.LayoutSeed; (got != nil) != want || got != nil && *got != 7 {
			t.Errorf("layout %q: seed %v", layout, got)
		}
	}
}

func TestImagesOfBuildsAreCopied(t *testing.T) {
	exp := withBuilds(t, 0, 0, func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Arms[1].Builds = []assayv1alpha1.Build{{Name: "a", Image: "lab/tool:a"}, {Name: "b", Image: "lab/tool:b", Program: "/tool-b"}, {Name: "c", Program: "/tool-c"}}
	})
	var got []string
	for _, image := range Images(exp) {
		got = append(got, fmt.Sprint(image.Reference, image.Files))
	}
	if want := "[lab/tool:1[/tool /tool-c] lab/tool:a[/tool] lab/tool:b[/tool-b]]"; fmt.Sprint(got) != want {
		t.Errorf("images %v, want %s", got, want)
	}
}
