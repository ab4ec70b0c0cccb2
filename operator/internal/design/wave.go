package design

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// maxBlocksPerWave limits a wave to a size that the engine and etcd can store.
const maxBlocksPerWave = 1000

// maxWaveBytes is the capacity of a ConfigMap, less its metadata.
const maxWaveBytes = 1000 << 10

// BuildWave plans a wave of complete screening blocks.
func BuildWave(exp *experiment.Experiment, number, firstBlock, blocks int, lanes []Lane) (*record.Wave, error) {
	return BuildStep(exp, number, firstBlock, Step{Purpose: record.Screen, Blocks: blocks}, lanes)
}

// BuildStep plans the wave of a step, its blocks numbered from firstBlock. Unless the step selects cells, every block contains every arm of
// every point, so that each is a full replication of the experiment. The result is a function of the experiment, the numbers, the step and
// the seed.
func BuildStep(exp *experiment.Experiment, number, firstBlock int, step Step, lanes []Lane) (*record.Wave, error) {
	if step.Blocks < 1 || step.Blocks > maxBlocksPerWave {
		return nil, fmt.Errorf("wave %d: %d blocks; a wave has 1 to %d", number, step.Blocks, maxBlocksPerWave)
	}
	if len(lanes) == 0 {
		return nil, fmt.Errorf("wave %d: no lane to run on", number)
	}
	points, cells, shares := choose(exp, step)
	turn := turns(step.Earlier, lanes, firstBlock)
	nodes := make([]string, step.Blocks)
	for i := range nodes {
		nodes[i] = LaneOf(i, lanes).Node
	}
	builds := dealt(exp, number, cells, nodes, step.BuildTurns)
	wave := &record.Wave{
		Schema: record.WaveSchema, Run: exp.Run, Experiment: exp.Digest, Wave: number, Purpose: step.Purpose,
		Workload: exp.Plan.Workload, Images: Images(exp),
		Points: points, Arms: exp.Arms, Cells: cells,
	}
	if requires := exp.Plan.Requires; len(requires.Require) > 0 || requires.Isolation != "" {
		wave.Environment = &requires
	}
	for i := range step.Blocks {
		index := firstBlock + i
		part := takingTurns(i, builds, cells, taking(cells, shares, i))
		wave.Blocks = append(wave.Blocks, record.Block{
			ID:     record.BlockName(number, index),
			Lease:  LaneOf(i, lanes).lease(),
			Warmup: warmups(exp, part),
			Order:  order(exp, cells, part, index, turn(i)),
		})
	}
	raw, err := json.Marshal(wave)
	if err != nil {
		return nil, fmt.Errorf("wave %d: %w", number, err)
	}
	if len(raw) > maxWaveBytes {
		return nil, fmt.Errorf("wave %d: %w", number, &TooLarge{What: "the plan", Found: len(raw), Allowed: maxWaveBytes, Blocks: step.Blocks})
	}
	return wave, nil
}

// turns returns for the i-th block of a wave how many blocks its node has started before, so that on every node every arm goes first
// equally often. A count over all nodes would let two alternating nodes each start with the same arm, and the cost of going first would
// look like a difference between nodes. Nodes start one arm apart.
func turns(earlier map[string]int, lanes []Lane, firstBlock int) func(i int) int {
	if len(lanes) == 1 && len(earlier) <= 1 {
		return func(i int) int { return firstBlock + i }
	}
	nodes := map[string]int{}
	maps.Copy(nodes, earlier)
	for _, lane := range lanes {
		nodes[lane.Node] += 0
	}
	ranks := slices.Sorted(maps.Keys(nodes))
	return func(i int) int {
		node := LaneOf(i, lanes).Node
		return nodes[node] + i/len(lanes) + slices.Index(ranks, node)
	}
}

// begun counts the blocks of the waves by node.
func begun(waves []record.Wave) map[string]int {
	out := map[string]int{}
	for i := range waves {
		for _, block := range waves[i].Blocks {
			if node := nodeOf(block); node != "" {
				out[node]++
			}
		}
	}
	return out
}

// choose returns the cells of a step, their points and the number of blocks of each. Nil shares mean every block.
func choose(exp *experiment.Experiment, step Step) (points []record.Point, cells []record.Cell, shares []int) {
	if step.Cells == nil {
		return exp.Points, exp.Cells, nil
	}
	for i, cell := range exp.Cells {
		share, ok := step.Cells[i]
		if !ok {
			continue
		}
		// Cells are ordered by point, so a point is either new or the last one.
		if point := exp.Points[cell.Point]; len(points) == 0 || points[len(points)-1].Key != point.Key {
			points = append(points, point)
		}
		cell.Point = len(points) - 1
		cells, shares = append(cells, cell), append(shares, share)
	}
	return points, cells, shares
}

// taking returns the cells of a block of the wave.
func taking(cells []record.Cell, shares []int, block int) []int {
	out := make([]int, 0, len(cells))
	for i := range cells {
		if shares == nil || shares[i] > block {
			out = append(out, i)
		}
	}
	return out
}

func warmups(exp *experiment.Experiment, part []int) []int {
	var out []int
	for range exp.Plan.Design.WarmupTrials {
		out = append(out, part...)
	}
	return out
}

// order lays out the measured slots of a block: points in an order shuffled for this block, and inside each point the arms
// in the order the design asks for. The arms of a point stay together, so that they share the machine's state of that minute.
func order(exp *experiment.Experiment, cells []record.Cell, part []int, block, turn int) []int {
	random := rand.New(rand.NewPCG(uint64(exp.Plan.Design.Seed), uint64(block)))
	var points [][]int
	for i, cell := range part {
		if i == 0 || cells[cell].Point != cells[part[i-1]].Point {
			points = append(points, nil)
		}
		points[len(points)-1] = append(points[len(points)-1], cell)
	}
	if exp.Plan.Design.Order != experiment.OrderSequential {
		random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	}
	out := []int{}
	for _, arms := range points {
		for _, arm := range armOrder(exp.Plan.Design.Order, len(arms), turn, random) {
			out = append(out, arms[arm])
		}
	}
	return out
}

func armOrder(order experiment.Order, arms, turn int, random *rand.Rand) []int {
	if order == experiment.OrderRandom {
		return random.Perm(arms)
	}
	out := make([]int, arms)
	for i := range out {
		out[i] = i
	}
	if order == experiment.OrderABBA {
		// The first arm rotates, so that no arm always follows the same neighbour.
		for i := range out {
			out[i] = (i + turn) % arms
		}
		back := slices.Clone(out)
		slices.Reverse(back)
		out = append(out, back...)
	}
	return out
}
