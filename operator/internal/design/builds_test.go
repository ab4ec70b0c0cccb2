package design

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// withBuilds returns an experiment of two points whose arms have old and new builds; 0 means an unnamed one.
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

func TestBuildWave_BuildsAlternate(t *testing.T) {
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
				if len(block.Order) != experiment.VisitTrials*exp.CellsPerBlock() {
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

// findingsAfter returns the findings of an analysis in which some blocks did not run and some lost all results.
func findingsAfter(exp *experiment.Experiment, waves []record.Wave, lost, unrun map[string]bool) Findings {
	var out Findings
	for i := range waves {
		for _, block := range waves[i].Blocks {
			switch {
			case unrun[block.ID]:
				out.Unrun = append(out.Unrun, block.ID)
			case lost[block.ID]:
				out.Lost++
				for _, point := range exp.Points {
					for _, arm := range exp.Arms {
						out.LostTurns = append(out.LostTurns, LostTurn{block.ID, point.Key, arm.Name})
					}
				}
			default:
				out.Valid++
			}
		}
	}
	return out
}

// turnsHad counts the remaining blocks of every build of every arm, in total and by node.
func turnsHad(waves []record.Wave, gone map[string]bool) (overall, onNode map[string]map[string]int) {
	overall, onNode = map[string]map[string]int{}, map[string]map[string]int{}
	add := func(to map[string]map[string]int, of, build string) {
		if to[of] == nil {
			to[of] = map[string]int{}
		}
		to[of][build]++
	}
	for i := range waves {
		for _, block := range waves[i].Blocks {
			if gone[block.ID] {
				continue
			}
			seen := map[string]bool{}
			for _, index := range block.Order {
				c := waves[i].Cells[index]
				if arm := waves[i].Arms[c.Arm].Name; !seen[arm] {
					seen[arm] = true
					add(overall, arm, c.Build)
					add(onNode, arm+" on "+nodeOf(block), c.Build)
				}
			}
		}
	}
	return overall, onNode
}

// apart returns the difference between the most and the fewest turns of a build.
func apart(had map[string]int, builds int) int {
	counts := slices.Collect(maps.Values(had))
	if len(counts) < builds {
		counts = append(counts, 0)
	}
	return slices.Max(counts) - slices.Min(counts)
}

func TestCourse_LostBlocksLeaveBuildsBalanced(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		arms := map[string]int{"old": 2 + random.IntN(4), "new": 2 + random.IntN(4)}
		nodes := make([]Lane, 1+random.IntN(3))
		for i := range nodes {
			nodes[i] = Lane{Node: fmt.Sprintf("n%d", i), Token: 1}
		}
		exp := withBuilds(t, arms["old"], arms["new"], func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Design.Seed, spec.Design.NullArm = int64(seed+1), true
			spec.Design.Blocks = assayv1alpha1.Blocks{Min: int32(arms["old"] * arms["new"]), Max: 1000}
			spec.Retry.Limit, spec.Budget.Trials = ptr.To[int32](50), 1_000_000
		})
		arms["null"] = arms["old"]
		var waves []record.Wave
		lost, unrun, gone := map[string]bool{}, map[string]bool{}, map[string]bool{}
		planned := 0
		for {
			step := (&Course{exp, waves, findingsAfter(exp, waves, lost, unrun)}).Next()
			if step.Done {
				break
			}
			// Vary the number of nodes, and leave some blocks out of the wave.
			step.Blocks = min(step.Blocks, 1+random.IntN(12))
			wave, err := BuildStep(exp, len(waves), planned, step, nodes[:1+random.IntN(len(nodes))])
			if err != nil {
				t.Fatal(err)
			}
			waves, planned = append(waves, *wave), planned+len(wave.Blocks)
			for i, block := range wave.Blocks {
				switch {
				case i == 0 || random.Float64() < 0.7: // A wave must have some result.
				case random.IntN(2) == 0:
					lost[block.ID], gone[block.ID] = true, true
				default:
					unrun[block.ID], gone[block.ID] = true, true
				}
			}
		}
		overall, _ := turnsHad(waves, gone)
		for arm, had := range overall {
			if n := apart(had, arms[arm]); n > 1 {
				t.Errorf("seed %d: after %d waves in which %d of %d blocks were lost the builds of %s had %v turns, want no two of them more than "+
					"one apart",
					seed, len(waves), len(gone), planned, arm, had)
			}
		}
	}
}

func TestBuildWave_BuildsAreBalancedOverNodes(t *testing.T) {
	for _, builds := range []int{2, 3, 4, 6} {
		for nodes := 1; nodes <= 4; nodes++ {
			exp := withBuilds(t, builds, builds, func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Design.Seed = 7 })
			lanes := make([]Lane, nodes)
			for i := range lanes {
				lanes[i] = Lane{Node: fmt.Sprintf("n%d", i), Token: 1}
			}
			wave, err := BuildWave(exp, 0, 0, 12, lanes)
			if err != nil {
				t.Fatal(err)
			}
			_, onNode := turnsHad([]record.Wave{*wave}, nil)
			for of, had := range onNode {
				if n := apart(had, min(builds, 12/nodes)); n > 1 {
					t.Errorf("%d builds on %d nodes: %s has %v turns, want no two builds more than one apart", builds, nodes, of, had)
				}
			}
		}
	}
}

func TestBuildStep_LostBuildIsRepeated(t *testing.T) {
	exp := withBuilds(t, 4, 0, nil)
	wave, err := BuildWave(exp, 0, 0, 12, []Lane{{}})
	if err != nil {
		t.Fatal(err)
	}
	build := func(block record.Block) string {
		for _, index := range block.Order {
			if c := wave.Cells[index]; wave.Arms[c.Arm].Name == "old" {
				return c.Build
			}
		}
		return ""
	}
	for _, block := range wave.Blocks {
		findings := Findings{Valid: 11, Lost: 1, LostTurns: []LostTurn{{block.ID, "size=2", "old"}}}
		again, err := BuildStep(exp, 1, 12, (&Course{exp, []record.Wave{*wave}, findings}).Next(), []Lane{{}})
		if err != nil {
			t.Fatal(err)
		}
		if len(again.Blocks) != 1 || build(again.Blocks[0]) != build(block) {
			t.Errorf("in place of %s: %d blocks, the first of build %s; want one of build %s", block.ID, len(again.Blocks), build(again.Blocks[0]),
				build(block))
		}
	}
}

func TestBuildStep_ConfirmingBlocksCountSeparately(t *testing.T) {
	exp := withBuilds(t, 4, 4, func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Retry.Limit = ptr.To[int32](0) })
	exp.Plan.Design.Confirm = &experiment.Confirm{Blocks: 4} // The planner needs no gate.
	wave, err := BuildWave(exp, 0, 0, 12, []Lane{{}})
	if err != nil {
		t.Fatal(err)
	}
	// Two blocks of one build are permanently lost, and the rest gives a verdict.
	lost := map[string]bool{wave.Blocks[0].ID: true}
	for _, block := range wave.Blocks[4:] {
		if wave.Cells[block.Order[0]].Build == wave.Cells[wave.Blocks[0].Order[0]].Build {
			lost[block.ID] = true
		}
	}
	findings := findingsAfter(exp, []record.Wave{*wave}, lost, nil)
	findings.Screened = experiment.VerdictGo
	confirming, err := BuildStep(exp, 1, 12, (&Course{exp, []record.Wave{*wave}, findings}).Next(), []Lane{{}})
	if err != nil {
		t.Fatal(err)
	}
	overall, _ := turnsHad([]record.Wave{*confirming}, nil)
	if had := overall["new"]; confirming.Purpose != record.Confirm || len(had) != 4 || apart(had, 4) != 0 {
		t.Errorf("%s: the builds have %v turns, want one each in confirming blocks", confirming.Purpose, had)
	}
}

func TestNext_BudgetCountsOneBuildPerBlock(t *testing.T) {
	exp := withBuilds(t, 12, 12, func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Budget.Trials = 12 * 2 * 2 * experiment.VisitTrials })
	if step := Begin(exp).Next(); step.Blocks != 12 {
		t.Errorf("step %+v, want 12 blocks", step)
	}
}

func TestBuildWave_LayoutSeedUnlessFixed(t *testing.T) {
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

func TestImages_OfBuilds(t *testing.T) {
	exp := withBuilds(t, 0, 0, func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Arms[1].Builds = []assayv1alpha1.Build{{Name: "a", Image: "lab/tool:a"}, {Name: "b", Image: "lab/tool:b", Program: "/tool-b"},
			{Name: "c", Program: "/tool-c"}}
	})
	var got []string
	for _, image := range Images(exp) {
		got = append(got, fmt.Sprint(image.Reference, image.Files))
	}
	if want := "[lab/tool:1[/tool /tool-c] lab/tool:a[/tool] lab/tool:b[/tool-b]]"; fmt.Sprint(got) != want {
		t.Errorf("images %v, want %s", got, want)
	}
}
