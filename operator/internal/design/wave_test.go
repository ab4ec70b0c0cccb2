package design

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func testExperiment(points, arms int, order experiment.Order, warmups int) *experiment.Experiment {
	exp := &experiment.Experiment{Run: record.Run{Namespace: "default", Name: "scan", UID: "0000-1"},
		Digest: "sha256:" + strings.Repeat("0", 64)}
	exp.Plan.Design = experiment.Design{Order: order, Seed: 7, WarmupTrials: warmups}
	exp.Plan.Workload.LayoutSeed = &exp.Plan.Design.Seed
	for a := range arms {
		exp.Arms = append(exp.Arms, record.Arm{Name: fmt.Sprint(string(rune('A' + a))), Baseline: a == 0})
	}
	for p := range points {
		exp.Points = append(exp.Points, record.Point{Key: fmt.Sprint(p)})
		for a := range arms {
			exp.Cells = append(exp.Cells, record.Cell{Point: p, Arm: a, Argv: []string{"/scan"}})
		}
	}
	return exp
}

// story formats the order of a block: point and arm of every slot.
func story(exp *experiment.Experiment, block record.Block) string {
	var b strings.Builder
	last := -1
	for _, slot := range block.Order {
		cell := exp.Cells[slot]
		if cell.Point != last {
			fmt.Fprintf(&b, " %d:", cell.Point)
			last = cell.Point
		}
		b.WriteString(exp.Arms[cell.Arm].Name)
	}
	return strings.TrimSpace(b.String())
}

func TestBuildWave_OrderInsideBlock(t *testing.T) {
	cases := map[string]struct {
		order experiment.Order
		want  []string
	}{
		"ABBA runs the drawn order of two blocks forwards, then backwards, and shuffles the points": {
			experiment.OrderABBA, []string{"1:BBBCCCAAA 0:CCCAAABBB", "0:BBBAAACCC 1:AAACCCBBB", "1:AAABBBCCC 0:AAACCCBBB"},
		},
		"Random shuffles points and arms": {
			experiment.OrderRandom, []string{"1:CCCBBBAAA 0:CCCAAABBB", "0:AAABBBCCC 1:CCCBBBAAA", "1:AAABBBCCC 0:CCCAAABBB"},
		},
		"Sequential keeps everything as written": {
			experiment.OrderSequential, []string{"0:AAABBBCCC 1:AAABBBCCC", "0:AAABBBCCC 1:AAABBBCCC", "0:AAABBBCCC 1:AAABBBCCC"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp := testExperiment(2, 3, tc.order, 0)
			wave, err := BuildWave(exp, 0, 0, 3, []Lane{{}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, block := range wave.Blocks {
				got = append(got, story(exp, block))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildWave_EveryBlockIsFullReplication(t *testing.T) {
	for _, order := range []experiment.Order{experiment.OrderABBA, experiment.OrderRandom, experiment.OrderSequential} {
		exp := testExperiment(5, 4, order, 2)
		wave, err := BuildWave(exp, 1, 10, 7, []Lane{{Node: "a"}, {Node: "b"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range wave.Blocks {
			counts := map[int]int{}
			for _, cell := range block.Order {
				counts[cell]++
			}
			for cell := range exp.Cells {
				if counts[cell] != exp.Plan.Design.SlotsPerCell() {
					t.Errorf("%s block %s: cell %d runs %d times, want %d", order, block.ID, cell, counts[cell], exp.Plan.Design.SlotsPerCell())
				}
			}
			if block.Trials() != exp.Plan.Design.TrialsPerBlock(len(exp.Cells)) {
				t.Errorf("%s block %s launches %d trials and the budget counts %d", order, block.ID, block.Trials(),
					exp.Plan.Design.TrialsPerBlock(len(exp.Cells)))
			}
		}
	}
}

func TestBuildWave_SeedDeterminesOrder(t *testing.T) {
	build := func(seed int64) *record.Wave {
		exp := testExperiment(6, 3, experiment.OrderRandom, 0)
		exp.Plan.Design.Seed = seed
		wave, err := BuildWave(exp, 0, 0, 4, []Lane{{}})
		if err != nil {
			t.Fatal(err)
		}
		return wave
	}
	if diff := cmp.Diff(build(1), build(1)); diff != "" {
		t.Errorf("same seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(build(1).Blocks, build(2).Blocks) {
		t.Error("seeds 1 and 2 give the same orders")
	}
}

func TestBuildWave_BlocksAlternateOverLanes(t *testing.T) {
	wave, err := BuildWave(testExperiment(1, 2, experiment.OrderABBA, 0), 2, 5, 3, []Lane{{Node: "a"}, {Node: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, block := range wave.Blocks {
		got = append(got, block.ID+" on "+LaneOf(i, []Lane{{Node: "a"}, {Node: "b"}}).Node)
	}
	want := []string{"w002-b0005 on a", "w002-b0006 on b", "w002-b0007 on a"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBuildWave_TooLargeWaveIsRejected(t *testing.T) {
	exp := testExperiment(1000, 2, experiment.OrderABBA, 0)
	for i := range exp.Cells {
		exp.Cells[i].Argv = []string{"/scan", strings.Repeat("x", 600)}
	}
	if _, err := BuildWave(exp, 0, 0, 5, []Lane{{}}); err == nil || !strings.Contains(err.Error(), "at most 1000 fit") {
		t.Errorf("got %v, want a message with the limit", err)
	}
	if _, err := BuildWave(exp, 0, 0, 1001, []Lane{{}}); err == nil || !strings.Contains(err.Error(), "1 to 1000") {
		t.Errorf("got %v, want a message with the limit", err)
	}
}

// The count covers waves of any size, on changing nodes.
func TestBuildWave_EveryArmIsBeforeEachOtherEquallyOftenOnEveryNode(t *testing.T) {
	lanes := func(names ...string) []Lane {
		var out []Lane
		for _, name := range names {
			out = append(out, Lane{Node: name, Token: 1})
		}
		return out
	}
	cases := map[string]struct {
		arms  int
		waves [][]Lane
		sizes []int
	}{
		"one node":                               {2, [][]Lane{lanes("a")}, []int{10}},
		"two nodes and two arms":                 {2, [][]Lane{lanes("a", "b")}, []int{10}},
		"three nodes and three arms":             {3, [][]Lane{lanes("a", "b", "c")}, []int{18}},
		"16 arms":                                {16, [][]Lane{lanes("a")}, []int{11}},
		"waves that end in the middle of a turn": {2, [][]Lane{lanes("a", "b"), lanes("a", "b"), lanes("a", "b")}, []int{5, 3, 6}},
		"no node, on this machine":               {2, [][]Lane{{{}}, {{}}, {{}}}, []int{5, 3, 6}},
		"a node that is missing for a wave":      {2, [][]Lane{lanes("a", "b"), lanes("b"), lanes("a", "b")}, []int{5, 3, 4}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			exp := testExperiment(1, c.arms, experiment.OrderABBA, 0)
			before := map[string]map[[2]int]int{}
			var waves []record.Wave
			blocks := 0
			for number, lanes := range c.waves {
				wave, err := BuildStep(exp, number, blocks, Step{Purpose: record.Screen, Blocks: c.sizes[number], Earlier: begun(waves)}, lanes)
				if err != nil {
					t.Fatal(err)
				}
				for i, block := range wave.Blocks {
					node := LaneOf(i, lanes).Node
					if before[node] == nil {
						before[node] = map[[2]int]int{}
					}
					visits := slices.Compact(slices.Clone(block.Order))
					for at, cell := range visits {
						for _, later := range visits[at+1:] {
							before[node][[2]int{exp.Cells[cell].Arm, exp.Cells[later].Arm}]++
						}
					}
				}
				waves, blocks = append(waves, *wave), blocks+len(wave.Blocks)
			}
			for node, counts := range before {
				for a := range c.arms {
					for b := range a {
						if apart := counts[[2]int{a, b}] - counts[[2]int{b, a}]; apart < -2 || apart > 2 {
							t.Errorf("node %s ran arm %d before %d in %d blocks and after it in %d", node, a, b, counts[[2]int{a, b}], counts[[2]int{b, a}])
						}
					}
				}
			}
		})
	}
}

// The order of the points and arms has to be drawn anew, and every arm needs the same number of trials after itself.
func TestBuildWave_EveryArmFollowsItselfEquallyOften(t *testing.T) {
	for arms := 2; arms <= 16; arms++ {
		for _, order := range []experiment.Order{experiment.OrderABBA, experiment.OrderRandom, experiment.OrderSequential} {
			exp := testExperiment(2, arms, order, 1)
			wave, err := BuildWave(exp, 0, 0, 10, []Lane{{Node: "a"}, {Node: "b"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range wave.Blocks {
				follows := map[int]int{}
				for slot, cell := range block.Order {
					if slot > 0 && block.Order[slot-1] == cell {
						follows[cell]++
					}
				}
				for cell := range exp.Cells {
					if follows[cell] != experiment.VisitTrials-1 {
						t.Errorf("%s, %d arms, block %s: cell %d follows itself %d times", order, arms, block.ID, cell, follows[cell])
					}
				}
			}
		}
	}
}
