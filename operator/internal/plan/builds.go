package plan

import (
	"math/rand/v2"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// buildsStream keeps the order of the builds apart from that of the trials, which is drawn from the same seed.
const buildsStream = 0x6275696c6473

// takingTurns leaves of the cells of a block one build of every arm that has several. Over as many blocks of a wave as an arm has
// builds each has its turn once, in an order drawn anew every time, so that no build is tied to a place of the wave, to a node
// or to the arm that begins. Arms with as many builds have them in the same order: the i-th build of one always meets the i-th
// of the other, and what a pair of builds differs by is one accident that the analysis sees as often as there are builds.
func takingTurns(exp *experiment.Experiment, wave, block int, cells []record.Cell, part []int) []int {
	type place struct{ point, arm int }
	of := map[place][]int{}
	for _, i := range part {
		at := place{cells[i].Point, cells[i].Arm}
		of[at] = append(of[at], i)
	}
	out := make([]int, 0, len(part))
	for _, i := range part {
		at := place{cells[i].Point, cells[i].Arm}
		if builds := of[at]; i == builds[turn(exp.Plan.Design.Seed, wave, block, len(builds))] {
			out = append(out, i)
		}
	}
	return out
}

// turn is which of so many builds a block of a wave runs.
func turn(seed int64, wave, block, builds int) int {
	if builds == 1 {
		return 0
	}
	round := uint64(wave)<<32 | uint64(block/builds)
	return rand.New(rand.NewPCG(uint64(seed)^buildsStream, round)).Perm(builds)[block%builds]
}
