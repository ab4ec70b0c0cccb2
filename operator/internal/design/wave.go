package design

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
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
			Order:  order(exp, points, cells, part, index, turn(i)),
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

// turns returns for the i-th block of a wave how many blocks its node has started before, so that every node runs its orders forwards and
// backwards equally often. A count over all nodes would let two alternating nodes each run one direction, and the effect of the place would
// look like a difference between nodes. Nodes start one turn apart.
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

// order lays out the measured slots of a block: points in an order shuffled for this block, and inside each point a visit to every arm,
// that is experiment.VisitTrials consecutive trials. The visits of a point stay together, so that they share the machine's state.
func order(exp *experiment.Experiment, points []record.Point, cells []record.Cell, part []int, block, turn int) []int {
	random := rand.New(rand.NewPCG(uint64(exp.Plan.Design.Seed), uint64(block)))
	var groups [][]int
	for i, cell := range part {
		if i == 0 || cells[cell].Point != cells[part[i-1]].Point {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], cell)
	}
	if exp.Plan.Design.Order != experiment.OrderSequential {
		random.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	}
	out := []int{}
	for _, group := range groups {
		arms := armOrder(exp, points[cells[group[0]].Point].Key, turn, random)
		slices.SortStableFunc(group, func(a, b int) int { return cmp.Compare(arms[cells[a].Arm], arms[cells[b].Arm]) })
		for _, cell := range group {
			out = append(out, slices.Repeat([]int{cell}, experiment.VisitTrials)...)
		}
	}
	return out
}

// armOrder returns the place of every arm at a point. ABBA draws an order for every two blocks of a node, and the second of them runs it
// backwards. Each arm is then before each other one in half of the blocks, and no arm always has the same neighbours.
func armOrder(exp *experiment.Experiment, point string, turn int, random *rand.Rand) []int {
	places := make([]int, len(exp.Arms))
	for i := range places {
		places[i] = i
	}
	switch exp.Plan.Design.Order {
	case experiment.OrderSequential:
	case experiment.OrderRandom:
		return random.Perm(len(places))
	case experiment.OrderABBA:
		hash := fnv.New64a()
		_, _ = fmt.Fprintf(hash, "%d/%s", turn/2, point)
		places = rand.New(rand.NewPCG(uint64(exp.Plan.Design.Seed), hash.Sum64())).Perm(len(places))
		if turn%2 == 1 {
			for i := range places {
				places[i] = len(places) - 1 - places[i]
			}
		}
	}
	return places
}
