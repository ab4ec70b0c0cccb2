package estimate

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
)

// addAt adds a trial in a slot of a block.
func (t *trials) addAt(arm int, block string, slot int, value float64) {
	t.add(selection.At(0, arm), block, value).Slot = slot
}

// inPlaces returns data of two arms with one trial of each arm in a block, by the slots of both and the difference of their figures.
func inPlaces(mine, theirs []int, differences []float64) *Data {
	made := newTrials(seconds, 1, 2)
	for i, difference := range differences {
		block := fmt.Sprintf("b%02d", i)
		made.addAt(0, block, theirs[i], 10)
		made.addAt(1, block, mine[i], 10+difference)
	}
	return made.data()
}

// Four blocks run the arms at distances of -3 and 3 in turn, with differences of 1, 3, 1.4 and 3.4. The means of both places are 1.2 and
// 3.2, the effect of the place is 1/3 per slot, the difference at equal places is 2.2, and all four residuals are 0.2 in size. With two
// degrees of freedom their variance is 0.16/2, and the standard error is the root of 0.08/4.
func TestWithoutPlace_BalancedExample(t *testing.T) {
	t.Parallel()
	d := inPlaces([]int{1, 4, 1, 4}, []int{4, 1, 4, 1}, []float64{1, 3, 1.4, 3.4})
	found := d.Difference(0, 1, "time", "value")
	if !near(found.Value, 2.2) || !near(found.SE, math.Sqrt(0.02)) || found.DF != 2 {
		t.Errorf("%g with a standard error of %g and %g degrees of freedom, want 2.2, %g and 2", found.Value, found.SE, found.DF, math.Sqrt(0.02))
	}
	adjusted, terms := d.withoutPlace(map[string]float64{"b00": 1, "b01": 3, "b02": 1.4, "b03": 3.4}, selection.At(0, 1), selection.At(0, 0))
	for block, sign := range map[string]float64{"b00": -1, "b01": -1, "b02": 1, "b03": 1} {
		if want := 2.2 + sign*0.2; !near(adjusted[block], want) {
			t.Errorf("%s: %g, want %g", block, adjusted[block], want)
		}
	}
	if terms != 1 {
		t.Errorf("%d terms, want 1", terms)
	}
}

// Three blocks at a distance of -3 have differences of 1, 1.1 and 1.2, and two blocks at 3 have 3 and 3.1: lines through 1.1 and 3.05 meet
// equal places in the middle, at 2.075. The sum of the squared residuals is 0.02+0.005, of three degrees of freedom; the sum of squares of
// the distances around their mean of -0.6 is 43.2.
func TestWithoutPlace_UnbalancedExample(t *testing.T) {
	t.Parallel()
	d := inPlaces([]int{1, 1, 1, 4, 4}, []int{4, 4, 4, 1, 1}, []float64{1, 1.1, 1.2, 3, 3.1})
	found := d.Difference(0, 1, "time", "value")
	if se := math.Sqrt(0.025 / 3 * (0.2 + 0.36/43.2)); !near(found.Value, 2.075) || !near(found.SE, se) || found.DF != 3 {
		t.Errorf("%g with a standard error of %g and %g degrees of freedom, want 2.075, %g and 3", found.Value, found.SE, found.DF, se)
	}
}

// leastSquares fits a line by the normal equations. It returns the value at 0, its standard error and the degrees of freedom.
func leastSquares(x, y []float64) (value, se, df float64) {
	var n, sx, sxx, sy, sxy float64
	for i := range x {
		n, sx, sxx, sy, sxy = n+1, sx+x[i], sxx+x[i]*x[i], sy+y[i], sxy+x[i]*y[i]
	}
	determinant := n*sxx - sx*sx
	value, slope := (sxx*sy-sx*sxy)/determinant, (n*sxy-sx*sy)/determinant
	rest := 0.0
	for i := range x {
		rest += math.Pow(y[i]-value-slope*x[i], 2)
	}
	return value, math.Sqrt(rest / (n - 2) * sxx / determinant), n - 2
}

// Random places, with several trials of an arm in a block, are compared with least squares over the differences and the distances.
func TestWithoutPlace_EqualsLeastSquares(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	fitted := 0
	for range 300 {
		made, n := newTrials(seconds, 1, 2), 4+random.IntN(9)
		var x, y []float64
		differences := map[string]float64{}
		for i := range n {
			block, slots, means := fmt.Sprintf("b%02d", i), [2]float64{}, [2]float64{}
			for arm := range 2 {
				count := 1 + random.IntN(3)
				for range count {
					slot, value := random.IntN(12), 5+random.NormFloat64()
					made.addAt(arm, block, slot, value)
					slots[arm], means[arm] = slots[arm]+float64(slot)/float64(count), means[arm]+value/float64(count)
				}
			}
			x, y = append(x, slots[1]-slots[0]), append(y, means[1]-means[0])
			differences[block] = means[1] - means[0]
		}
		least, most := math.Inf(1), math.Inf(-1)
		for _, distance := range x {
			least, most = min(least, distance), max(most, distance)
		}
		adjusted, terms := made.data().withoutPlace(differences, selection.At(0, 1), selection.At(0, 0))
		if least >= 0 || most <= 0 {
			if terms != 0 || !maps.Equal(adjusted, differences) {
				t.Fatalf("one arm is never first, and %d terms are fitted", terms)
			}
			continue
		}
		fitted++
		found := studentInference(adjusted, 0.95, false).fitted(float64(terms), float64(len(x)-1))
		if value, se, df := leastSquares(x, y); terms != 1 || !near(found.Value, value) || !near(found.SE, se) || found.DF != df {
			t.Fatalf("%g with a standard error of %g and %d terms, want %g, %g and %g degrees of freedom", found.Value, found.SE, terms, value,
				se, df)
		}
	}
	if fitted < 200 {
		t.Errorf("%d of 300 cases are fitted, so that too little is compared", fitted)
	}
}

func TestWithoutPlace_NeedsBothPlacesAndFourBlocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mine, theirs []int
		terms        int
	}{
		"four blocks":                       {[]int{1, 4, 1, 4}, []int{4, 1, 4, 1}, 1},
		"four blocks of which one is apart": {[]int{1, 1, 1, 4}, []int{4, 4, 4, 1}, 1},
		"three blocks":                      {[]int{1, 4, 1}, []int{4, 1, 4}, 0},
		"always first":                      {[]int{1, 1, 2, 2}, []int{4, 5, 4, 5}, 0},
		"always last":                       {[]int{4, 5, 4, 5}, []int{1, 1, 2, 2}, 0},
		"at the same distance":              {[]int{1, 1, 1, 1}, []int{4, 4, 4, 4}, 0},
		"forwards and backwards":            {[]int{2, 2, 2, 2}, []int{2, 2, 2, 2}, 0},
	} {
		differences := make([]float64, len(c.mine))
		for i := range differences {
			differences[i] = float64(i * i)
		}
		d := inPlaces(c.mine, c.theirs, differences)
		of := func(arm int) map[string][]float64 { return d.PerBlock(Quantity{selection.At(0, arm), "time", "value"}) }
		byBlock := blockDifferences(of(1), of(0), false)
		adjusted, terms := d.withoutPlace(byBlock, selection.At(0, 1), selection.At(0, 0))
		if terms != c.terms || terms == 0 != maps.Equal(adjusted, byBlock) {
			t.Errorf("%s: %d terms, want %d; %v of %v", name, terms, c.terms, adjusted, byBlock)
		}
		if df := d.Difference(0, 1, "time", "value").DF; df != float64(len(c.mine)-1-c.terms) {
			t.Errorf("%s: %g degrees of freedom, want %d", name, df, len(c.mine)-1-c.terms)
		}
	}
}

// Nodes that ran the arms in different orders have a difference that is no effect of the place, and an effect of the place is found in the
// orders of each.
func TestWithoutPlace_DifferenceBetweenNodesRemains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes, firsts string // By block, the node and the arm that runs first.
		terms         int
	}{
		"both orders on each node":     {"aabbaabb", "01010101", 1},
		"more of one order":            {"aaaabbbb", "00011110", 1},
		"one order on each node":       {"abababab", "01010101", 0},
		"three nodes":                  {"abcabcabcabc", "010101010101", 1},
		"a node of three blocks":       {"abababa", "0110011", 0},
		"as many nodes as terms allow": {"aabb", "0101", 0},
	} {
		for _, effect := range []float64{0, 0.1} {
			made, byBlock := newTrials(seconds, 1, 2), map[string]float64{}
			for i, node := range c.nodes {
				block, first, difference := fmt.Sprintf("b%02d", i), int(c.firsts[i]-'0'), float64(node-'a')
				for visit, arm := range []int{first, 1 - first} {
					made.addAt(arm, block, 3*visit+1, 1)
				}
				for _, attempt := range made.chosen.Used[2*i:] {
					attempt.Environment.Soft = map[string]any{"nodeName": string(node)}
				}
				byBlock[block] = difference + effect*float64(3-6*first)
			}
			adjusted, terms := made.data().withoutPlace(byBlock, selection.At(0, 1), selection.At(0, 0))
			if terms != c.terms || terms == 0 && !maps.Equal(adjusted, byBlock) {
				t.Errorf("%s: %d terms, want %d", name, terms, c.terms)
			}
			for i, node := range c.nodes {
				if got := adjusted[fmt.Sprintf("b%02d", i)]; terms > 0 && math.Abs(got-float64(node-'a')) > 1e-9 {
					t.Errorf("%s, effect %g: block %d on node %c has %g, want %d", name, effect, i, node, got, node-'a')
				}
			}
		}
	}
}

// A block of which an arm has figures from timed-out trials only has no place of it.
func TestWithoutPlace_BlockWithoutPlaceHasNoTerm(t *testing.T) {
	t.Parallel()
	d := inPlaces([]int{1, 4, 1, 4, 1}, []int{4, 1, 4, 1, 4}, []float64{1, 3, 1.4, 3.4, 1})
	differences := map[string]float64{"b00": 1, "b01": 3, "b02": 1.4, "b03": 3.4, "timed-out": 9}
	adjusted, terms := d.withoutPlace(differences, selection.At(0, 1), selection.At(0, 0))
	if terms != 0 || !maps.Equal(adjusted, differences) {
		t.Errorf("%d terms, and %v of %v", terms, adjusted, differences)
	}
}

// A linear drift inside blocks, of any size, changes neither the ratio nor its standard error. Exchanging the arms inverts the ratio.
func TestWithoutPlace_DriftCancels(t *testing.T) {
	t.Parallel()
	ratio := func(drift float64, mine, theirs int) Inference {
		made, random := newTrials(seconds, 1, 2), rand.New(rand.NewPCG(3, 4))
		for i := range 9 {
			block := fmt.Sprintf("b%02d", i)
			for visit, arm := range []int{i % 2, 1 - i%2} {
				for _, at := range []int{1, 2} {
					slot := 3*visit + at
					made.addAt(arm, block, slot, math.Exp(0.03*float64(arm)+0.01*random.NormFloat64()+drift*float64(slot)))
				}
			}
		}
		d := made.data()
		a, b := d.PerBlock(made.of(mine, "value")), d.PerBlock(made.of(theirs, "value"))
		out, _ := d.paired(selection.At(0, mine), selection.At(0, theirs), a, b, true)
		return out
	}
	plain := ratio(0, 1, 0)
	for _, drift := range []float64{-0.5, 0.001, 0.02, 0.3} {
		if found := ratio(drift, 1, 0); !near(found.Value, plain.Value) || !near(found.SE, plain.SE) || found.DF != plain.DF {
			t.Errorf("a drift of %g: %g with a standard error of %g, and without a drift %g and %g", drift, found.Value, found.SE, plain.Value,
				plain.SE)
		}
	}
	if other := ratio(0.02, 0, 1); !near(1/other.Value, plain.Value) || !near(other.SE, plain.SE) {
		t.Errorf("the inverse is %g with a standard error of %g, want 1/%g with %g", other.Value, other.SE, plain.Value, plain.SE)
	}
}

// The ratio of visits under a drift that differs between runs covers the truth at its confidence.
func TestCoverage_WithPlaces(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	const runs = 3000
	for _, blocks := range []int{4, 5, 8, 20} {
		made := newTrials(seconds, 1, 2)
		for i := range blocks {
			made.addAt(i%2, fmt.Sprintf("b%02d", i), 1, 1)
			made.addAt(1-i%2, fmt.Sprintf("b%02d", i), 4, 1)
		}
		d, random, covered := made.data(), rand.New(rand.NewPCG(5, uint64(blocks))), 0
		for range runs {
			drift, differences := 0.02*random.NormFloat64(), map[string]float64{}
			for i := range blocks {
				// Arm 1 is last in the blocks that arm 0 begins.
				differences[fmt.Sprintf("b%02d", i)] = 0.01*random.NormFloat64() + drift*float64(3-6*(i%2))
			}
			adjusted, terms := d.withoutPlace(differences, selection.At(0, 1), selection.At(0, 0))
			found := studentInference(adjusted, 0.95, false).fitted(float64(terms), float64(blocks-1))
			if math.Abs(found.Value) <= stats.StudentQuantile(0.975, found.DF)*found.SE {
				covered++
			}
		}
		if share := float64(covered) / runs; share < 0.938 || share > 0.962 {
			t.Errorf("%d blocks: coverage %.3f, want 0.95", blocks, share)
		}
	}
}
