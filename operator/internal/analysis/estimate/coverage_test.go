package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// The simulations check that a 95 % interval really covers the truth about 95 times in 100, for as few blocks as runs have
// and for noise that is not normal. They are seeded: the same counts come out every time.

func heavy(random *rand.Rand) float64 {
	a, b, c := random.NormFloat64(), random.NormFloat64(), random.NormFloat64()
	return random.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3)
}

var noises = []struct {
	name string
	draw func(*rand.Rand) float64
}{
	{"normal", (*rand.Rand).NormFloat64},
	{"heavy tails (t3)", heavy},
	{"outliers (10 % with 10 times the spread)", func(random *rand.Rand) float64 {
		if random.Float64() < 0.1 {
			return 10 * random.NormFloat64()
		}
		return random.NormFloat64()
	}},
}

func TestCoverage_PairedRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs = 4000
	// Student's interval may be careful, never careless: the band is 95 % ± 3 standard errors below, and wider above.
	const lowest, highest = 0.935, 0.985
	for _, noise := range noises {
		for _, blocks := range []int{3, 5, 8, 15} {
			random := rand.New(rand.NewPCG(1, uint64(blocks)))
			const truth = 0.02
			hits := 0
			for range runs {
				differences := map[string]float64{}
				for block := range blocks {
					// A ratio of two arms: each has its own draw.
					differences[fmt.Sprint(block)] = truth + 0.01*(noise.draw(random)-noise.draw(random))
				}
				found := studentInference(differences, 0.95, true)
				if found.Low <= math.Exp(truth) && math.Exp(truth) <= found.High {
					hits++
				}
			}
			coverage := float64(hits) / runs
			t.Logf("paired ratio, %s, %d blocks: coverage %.3f", noise.name, blocks, coverage)
			if coverage < lowest || coverage > highest {
				t.Errorf("paired ratio, %s, %d blocks: coverage %.3f is outside %.3f to %.3f", noise.name, blocks, coverage, lowest, highest)
			}
		}
	}
}

func TestCoverage_RatiosOfCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs = 400
	// The intervals also include the widening for apparent dependence, so they are conservative.
	const lowest, highest = 0.92, 0.995
	poisson := func(random *rand.Rand, mean float64) (count float64) {
		for left := math.Exp(-mean); ; count++ {
			if left /= random.Float64(); left >= 1 {
				return count
			}
		}
	}
	for _, mean := range []float64{1, 4} {
		random := rand.New(rand.NewPCG(1, uint64(mean)))
		hits, intervals := 0, 0
		for range runs {
			d := &Data{Exp: &experiment.Experiment{}, Confidence: 0.95, GateConfidence: 0.95}
			counts := [2]map[string][]float64{{}, {}}
			for block := range 12 {
				name := record.BlockName(0, block)
				for range 4 {
					counts[0][name] = append(counts[0][name], poisson(random, 1.5*mean))
					counts[1][name] = append(counts[1][name], poisson(random, mean))
				}
			}
			found := d.ratioOfMeans(Quantity{Metric: "m"}, Quantity{Metric: "m"}, counts[0], counts[1])
			if !found.HasInterval() {
				continue
			}
			intervals++
			if found.Low <= 1.5 && 1.5 <= found.High {
				hits++
			}
			// The p-value at an end is (1 - confidence) / 2.
			if p := found.Tail(found.High); math.Abs(p-0.025) > 1e-4 {
				t.Fatalf("%g of [%g, %g] has p = %g at its end", found.Value, found.Low, found.High, p)
			}
		}
		coverage := float64(hits) / float64(intervals)
		t.Logf("counts of %g on average: coverage %.3f of %d", mean, coverage, intervals)
		if coverage < lowest || coverage > highest || intervals < runs*9/10 {
			t.Errorf("counts of %g on average: coverage %.3f is outside %.3f to %.3f, or %d intervals of %d runs are too few", mean,
				coverage, lowest, highest, intervals, runs)
		}
	}
}

func TestCoverage_PercentileRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs = 500
	// The bootstrap of a tail percentile is not exact: 2.5 points are allowed below beside the simulation's own error.
	const lowest, highest = 0.90, 0.995
	// The same allowance at the gates' 99.5 %.
	const lowestOfGates = 0.98
	statistics := []experiment.Statistic{experiment.StatisticP50, experiment.StatisticP95}
	for _, noise := range noises[:2] {
		for _, statistic := range statistics {
			for _, blocks := range []int{3, 5, 8, 15} {
				random := rand.New(rand.NewPCG(2, uint64(blocks)))
				const truth = 1.02
				hits, gateHits := 0, 0
				for run := range runs {
					d := percentileData(random, noise.draw, blocks, 40, truth, int64(run+1))
					found := d.Ratio(0, 1, "latency", statistic)
					if !found.HasInterval() {
						t.Fatal(found.Reason)
					}
					if found.Low <= truth && truth <= found.High {
						hits++
					}
					if gate := found.At(0.995); gate.Low <= truth && truth <= gate.High {
						gateHits++
					}
				}
				coverage, gateCoverage := float64(hits)/runs, float64(gateHits)/runs
				t.Logf("%s ratio, %s, %d blocks: coverage %.3f, of gates at 99.5 %% %.3f", statistic, noise.name, blocks, coverage, gateCoverage)
				if gateCoverage < lowestOfGates {
					t.Errorf("%s ratio, %s, %d blocks: coverage of gates %.3f is below %.3f", statistic, noise.name, blocks, gateCoverage, lowestOfGates)
				}
				if coverage < lowest || coverage > highest {
					t.Errorf("%s ratio, %s, %d blocks: coverage %.3f is outside %.3f to %.3f", statistic, noise.name, blocks, coverage, lowest, highest)
				}
			}
		}
	}
}

// percentileData are two arms whose times differ by a factor, in blocks that are 5 % apart and share their level, with
// trials whose level varies by 2 % and samples with a long tail.
func percentileData(random *rand.Rand, draw func(*rand.Rand) float64, blocks, samples int, factor float64, seed int64) *Data {
	exp := &experiment.Experiment{
		Points: []record.Point{{}},
		Arms:   []record.Arm{{Name: "a", Baseline: true}, {Name: "b"}},
		Plan:   experiment.Plan{Design: experiment.Design{Seed: seed, Confidence: 0.95, GateConfidence: 0.95}},
	}
	chosen := &selection.Selection{Admission: selection.Admission{Cells: map[*record.Attempt]selection.Cell{}}}
	for block := range blocks {
		shared := 0.05 * draw(random)
		for arm, scale := range []float64{1, factor} {
			for range 2 {
				level := shared + 0.02*draw(random)
				values := make([]float64, samples)
				for i := range values {
					values[i] = scale * math.Exp(level+0.05*random.ExpFloat64())
				}
				attempt := &record.Attempt{Block: fmt.Sprint(block),
					Result: &record.Result{Metrics: map[string]*record.Metric{"latency": {Unit: "s", Samples: values}}}}
				chosen.Used = append(chosen.Used, attempt)
				chosen.Cells[attempt] = selection.At(0, arm)
			}
		}
	}
	return New(exp, chosen, nil)
}

// TestCoverage_OverNodes: where nodes differ, the interval over three or more of them covers the mean of all nodes there could
// be, which an interval over blocks does not.
func TestCoverage_OverNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs, blocks = 2000, 8
	for _, nodes := range []int{3, 4, 6} {
		random := rand.New(rand.NewPCG(7, uint64(nodes)))
		covered, byBlocks := 0, 0
		for range runs {
			d := &Data{
				Exp: &experiment.Experiment{}, Chosen: &selection.Selection{}, Confidence: 0.95, GateConfidence: 0.995, nodes: map[string]string{},
			}
			differences := map[string]float64{}
			for node := range nodes {
				shift := 0.02 * random.NormFloat64()
				for block := range blocks {
					name := fmt.Sprintf("n%d-b%d", node, block)
					d.nodes[name] = fmt.Sprint(node)
					differences[name] = shift + 0.01*random.NormFloat64()
				}
			}
			pooled := studentInference(differences, 0.95, true)
			found := d.OverBlocks(differences, Spread{}, true, true, 0)
			if found.Low <= 1 && 1 <= found.High {
				covered++
			}
			if pooled.Low <= 1 && 1 <= pooled.High {
				byBlocks++
			}
		}
		t.Logf("%d nodes: covers %.3f, over blocks alone %.3f", nodes, float64(covered)/runs, float64(byBlocks)/runs)
		if rate := float64(covered) / runs; rate < 0.92 || rate > 0.98 {
			t.Errorf("%d nodes: coverage %.3f, want about 0.95", nodes, rate)
		}
	}
}
