package design

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// buildsStream is the random stream for the order of builds; the order of trials uses another stream with the same seed.
const buildsStream = 0x6275696c6473

// BuildTurn identifies one build of the arms with a number of builds, on a node.
type BuildTurn struct {
	Builds, Index int
	Node          string
}

// LostTurn is a cell of a block, of an arm with several builds, without usable results.
type LostTurn struct{ Block, Point, Arm string }

// buildTurns counts the turns of builds in the blocks of a purpose, by cells with usable results. Lost cells are not counted, so that the
// replacement blocks run the builds that lost theirs.
func buildTurns(exp *experiment.Experiment, waves []record.Wave, purpose record.Purpose, findings Findings) map[BuildTurn]int {
	if exp.CellsPerBlock() == len(exp.Cells) {
		return nil // Every arm is one build.
	}
	lost, never := map[LostTurn]bool{}, setOf(findings.Unrun)
	for _, turn := range findings.LostTurns {
		lost[turn] = true
	}
	out := map[BuildTurn]int{}
	for i := range waves {
		wave := &waves[i]
		if wave.Purpose != purpose {
			continue
		}
		names := buildNames(wave.Cells)
		for _, block := range wave.Blocks {
			if never[block.ID] {
				continue
			}
			for _, index := range slices.Compact(slices.Sorted(slices.Values(block.Order))) {
				cell := wave.Cells[index]
				builds := names[place{cell.Point, cell.Arm}]
				if !lost[LostTurn{block.ID, wave.Points[cell.Point].Key, wave.Arms[cell.Arm].Name}] {
					out[BuildTurn{len(builds), slices.Index(builds, cell.Build), nodeOf(block)}]++
				}
			}
		}
	}
	return out
}

// place identifies an arm at a point, by index.
type place struct{ point, arm int }

func buildNames(cells []record.Cell) map[place][]string {
	out := map[place][]string{}
	for _, cell := range cells {
		at := place{cell.Point, cell.Arm}
		out[at] = append(out[at], cell.Build)
	}
	return out
}

func nodeOf(block record.Block) string {
	if block.Lease == nil {
		return ""
	}
	return block.Lease.Node
}

// dealt assigns builds to a wave's blocks: for each number of builds of an arm, the build of each block. Arms with equally many builds use
// the same order, so the i-th build of one arm always meets the i-th of the other, and the layout effect of a pair of builds occurs in the
// analysis as often as there are builds.
func dealt(exp *experiment.Experiment, wave int, cells []record.Cell, nodes []string, had map[BuildTurn]int) map[int][]int {
	places := map[int]int{}
	for _, builds := range buildNames(cells) {
		places[len(builds)]++
	}
	out := map[int][]int{}
	for builds, worth := range places {
		deal := dealing(builds, worth, nodes, had)
		for block := range nodes {
			round := uint64(wave)<<32 | uint64(block/builds)
			deal.next(block, rand.New(rand.NewPCG(uint64(exp.Plan.Design.Seed)^buildsStream, round)).Perm(builds))
		}
		deal.spread()
		out[builds] = deal.of
	}
	return out
}

// deal assigns one build to every block of a wave.
type deal struct {
	// nodes and of are the node and the build of every block.
	nodes []string
	of    []int
	// worth is the number of cells of a build in a block; total and onNode count the turns of builds so far.
	worth  int
	total  []int
	onNode map[string][]int
}

func dealing(builds, worth int, nodes []string, had map[BuildTurn]int) *deal {
	out := &deal{nodes: nodes, of: make([]int, len(nodes)), worth: worth, total: make([]int, builds), onNode: map[string][]int{}}
	for _, node := range nodes {
		out.onNode[node] = make([]int, builds)
	}
	for turn, n := range had {
		if turn.Builds != builds {
			continue
		}
		out.total[turn.Index] += n
		if here := out.onNode[turn.Node]; here != nil {
			here[turn.Index] += n
		}
	}
	return out
}

// next assigns to a block the build with the fewest turns; among equals the one with the fewest turns on its node, then the first in the
// order drawn for the round. Every build is thus tried equally often, and none is bound to a place of the wave.
func (d *deal) next(block int, drawn []int) {
	here := d.onNode[d.nodes[block]]
	build := slices.MinFunc(drawn, func(a, b int) int {
		return cmp.Or(cmp.Compare(d.total[a], d.total[b]), cmp.Compare(here[a], here[b]))
	})
	d.of[block] = build
	d.total[build] += d.worth
	here[build] += d.worth
}

// spread exchanges builds between blocks of two nodes while that balances the turns on the nodes, so that no build is bound to a node.
// Every exchange lowers the sum of squares of the turns on nodes, so it terminates.
func (d *deal) spread() {
	for i := range d.of {
		here := d.onNode[d.nodes[i]]
		for j := range d.of {
			a, b, there := d.of[i], d.of[j], d.onNode[d.nodes[j]]
			if here[a]-here[b]+there[b]-there[a] <= 2*d.worth {
				continue
			}
			here[a], here[b] = here[a]-d.worth, here[b]+d.worth
			there[b], there[a] = there[b]-d.worth, there[a]+d.worth
			d.of[i], d.of[j] = b, a
			d.spread()
			return
		}
	}
}

// takingTurns selects from the cells of a block one build of every arm with several builds.
func takingTurns(block int, turns map[int][]int, cells []record.Cell, part []int) []int {
	of := map[place][]int{}
	for _, i := range part {
		at := place{cells[i].Point, cells[i].Arm}
		of[at] = append(of[at], i)
	}
	out := make([]int, 0, len(part))
	for _, i := range part {
		if builds := of[place{cells[i].Point, cells[i].Arm}]; i == builds[turns[len(builds)][block]] {
			out = append(out, i)
		}
	}
	return out
}
