package estimate

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
)

// overNodes returns data of blocks on nodes, the values by block, and the inference over blocks without regard to nodes.
func overNodes(byNode map[string][]float64) (*Data, map[string]float64, Inference) {
	made, values := newTrials(seconds, 1, 1), map[string]float64{}
	for _, node := range inOrderOf(byNode) {
		for i, value := range byNode[node] {
			block := fmt.Sprintf("%s%02d", node, i)
			made.add(selection.At(0, 0), block, value).Environment.Soft = map[string]any{"nodeName": node}
			values[block] = value
		}
	}
	return made.data(), values, studentInference(values, 0.95, false)
}

func across(d *Data, values map[string]float64, pooled Inference, paired bool) Inference {
	return d.acrossNodes(pooled, inOrderOf(values), paired, func(blocks []string) Inference {
		part := map[string]float64{}
		for _, block := range blocks {
			part[block] = values[block]
		}
		return studentInference(part, 0.95, false)
	})
}

// within is the pooled variance of the blocks inside of their nodes, with its degrees of freedom.
func within(byNode map[string][]float64) (variance, df float64) {
	for _, values := range byNode {
		variance += stats.Squares(values, stats.Mean(values))
		df += float64(len(values) - 1)
	}
	return variance / df, df
}

// Nodes differ if a one-way analysis of variance of the blocks says so at a level of 0.1, computed here from its definition.
func TestAcrossNodes_AnalysisOfVarianceDecides(t *testing.T) {
	t.Parallel()
	for step, many := 0, 0; step <= 40; step++ {
		shift := 0.01 * float64(step)
		byNode := map[string][]float64{"a": {1, 1.1, 0.9, 1.05}, "b": {1 + shift, 1.1 + shift, 0.95 + shift}, "c": {0.98, 1.06, 1.02, 1.03, 0.9}}
		var all []float64
		for _, node := range inOrderOf(byNode) {
			all = append(all, byNode[node]...)
		}
		between := 0.0
		for _, values := range byNode {
			off := stats.Mean(values) - stats.Mean(all)
			between += float64(len(values)) * off * off
		}
		variance, df := within(byNode)
		want := distuv.F{D1: 2, D2: df}.Survival(between/2/variance) < 0.1
		if want {
			many++
		}
		d, values, pooled := overNodes(byNode)
		if got := across(d, values, pooled, true); got.NodesDiffer != want {
			t.Errorf("shift %g: nodes differ %v, want %v", shift, got.NodesDiffer, want)
		}
		if step == 40 && (many == 0 || many == 41) {
			t.Errorf("%d of 41 cases differ, so that nothing is compared", many)
		}
	}
}

func TestAcrossNodes_TwoPairedNodesSpanBoth(t *testing.T) {
	t.Parallel()
	byNode := map[string][]float64{"a": {1, 1.1, 0.9, 1.05}, "b": {2, 2.1, 1.95}}
	d, values, pooled := overNodes(byNode)
	got := across(d, values, pooled, true)
	variance, df := within(byNode)
	half := func(n float64) float64 { return stats.StudentQuantile(0.975, df) * math.Sqrt(variance/n) }
	low, high := stats.Mean(byNode["a"])-half(4), stats.Mean(byNode["b"])+half(3)
	wantEnds(t, got, 0.95, low, high)
	if !got.NodesDiffer || !near(got.Low, low) || !near(got.High, high) {
		t.Errorf("nodes differ %v, [%g, %g], want [%g, %g]", got.NodesDiffer, got.Low, got.High, low, high)
	}
	// A bound is excluded as far as the node that is closer to it excludes it, and not at all if the nodes are on both of its sides.
	tail := func(node string, n, bound float64) float64 {
		return stats.DistanceTail(math.Abs(bound-stats.Mean(byNode[node])), math.Sqrt(variance/n), df)
	}
	for bound, want := range map[float64]float64{0.8: tail("a", 4, 0.8), 2.5: tail("b", 3, 2.5), 1.6: 0.5, 1.2: 0.5} {
		if p := got.Tail(bound); !near(p, want) {
			t.Errorf("tail of %g: %g, want %g", bound, p, want)
		}
	}
	var nodes []string
	for _, node := range got.perNode {
		nodes = append(nodes, node.Node)
	}
	if !reflect.DeepEqual(nodes, []string{"a", "b"}) || !near(got.perNode[1].Estimate.Value, stats.Round(stats.Mean(byNode["b"]))) {
		t.Errorf("nodes %+v", got.perNode)
	}
}

// The random-effects interval follows DerSimonian and Laird with the variance of Hartung and Knapp; here from the node means and the
// pooled variance within nodes.
func TestAcrossNodes_RandomEffectsOfThree(t *testing.T) {
	t.Parallel()
	byNode := map[string][]float64{"a": {1, 1.1, 0.9, 1.05}, "b": {2, 2.1, 1.95}, "c": {1.4, 1.5, 1.3, 1.45, 1.5}}
	variance, df := within(byNode)
	nodes := inOrderOf(byNode)
	weighted := func(between float64) (center, spread, weights, squares float64) {
		for _, node := range nodes {
			w := 1 / (variance/float64(len(byNode[node])) + between)
			weights, squares, center = weights+w, squares+w*w, center+w*stats.Mean(byNode[node])
		}
		center /= weights
		for _, node := range nodes {
			off := stats.Mean(byNode[node]) - center
			spread += off * off / (variance/float64(len(byNode[node])) + between)
		}
		return center, spread, weights, squares
	}
	_, q, weights, squares := weighted(0)
	center, spread, weights, _ := weighted((q - 2) / (weights - squares/weights))
	half := stats.StudentQuantile(0.975, 2) * math.Sqrt(spread/2/weights)
	for name, paired := range map[string]bool{"differences": true, "levels": false} {
		d, values, pooled := overNodes(byNode)
		got := across(d, values, pooled, paired)
		if !got.NodesDiffer || !near(got.Value, center) || got.DF != 2 {
			t.Errorf("%s: nodes differ %v, %g with %g degrees of freedom, want %g with 2", name, got.NodesDiffer, got.Value, got.DF, center)
		}
		wantEnds(t, got, 0.95, center-half, center+half)
		if df == 0 {
			t.Error("no degrees of freedom")
		}
	}
}

func TestAcrossNodes_WhatCountsAsNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		byNode map[string][]float64
		paired bool
		differ bool
		named  int
	}{
		"one node":                                      {byNode: map[string][]float64{"a": {1, 1.1, 0.9, 1.05}}, paired: true},
		"two nodes that agree":                          {byNode: map[string][]float64{"a": {1, 1.1, 0.9}, "b": {1.05, 0.95, 1}}, paired: true, named: 2},
		"levels of two nodes that agree":                {byNode: map[string][]float64{"a": {1, 1.1, 0.9}, "b": {1.05, 0.95, 1}}, differ: true},
		"one block of a second node":                    {byNode: map[string][]float64{"a": {1, 1.1, 0.9}, "b": {3}}, paired: true, named: 2},
		"levels with one block of a second node":        {byNode: map[string][]float64{"a": {1, 1.1, 0.9}, "b": {3}}, differ: true},
		"one block of a third node":                     {byNode: map[string][]float64{"a": {1, 1.1, 0.9}, "b": {1, 1.05}, "c": {3}}, paired: true, differ: true, named: 3},
		"one block of each node":                        {byNode: map[string][]float64{"a": {1}, "b": {2}, "c": {3}}, paired: true, named: 3},
		"levels with one block of each node":            {byNode: map[string][]float64{"a": {1}, "b": {2}, "c": {3}}, differ: true},
		"constant differences that are equal":           {byNode: map[string][]float64{"a": {1, 1}, "b": {1, 1}}, paired: true, named: 2},
		"constant differences that differ":              {byNode: map[string][]float64{"a": {1, 1}, "b": {1.001, 1.001}}, paired: true, differ: true, named: 2},
		"constant differences that differ by rounding":  {byNode: map[string][]float64{"a": {1, 1}, "b": {1 + 2e-13, 1 + 2e-13}}, paired: true, named: 2},
		"too few blocks":                                {byNode: map[string][]float64{"a": {1}, "b": {2}}, paired: true, named: 2},
		"constant differences of many that are rounded": {byNode: map[string][]float64{"a": {1e6, 1e6}, "b": {1e6 + 2e-7, 1e6 + 2e-7}}, paired: true, named: 2},
	} {
		t.Run(name, func(t *testing.T) {
			d, values, pooled := overNodes(c.byNode)
			got := across(d, values, pooled, c.paired)
			if got.NodesDiffer != c.differ || len(got.perNode) != c.named {
				t.Errorf("nodes differ %v with %d named, want %v with %d", got.NodesDiffer, len(got.perNode), c.differ, c.named)
			}
		})
	}
	t.Run("blocks without a node", func(t *testing.T) {
		d, values, pooled := overNodes(map[string][]float64{"": {1, 1.1, 0.9}, "b": {2.05, 1.95, 2}})
		if got := across(d, values, pooled, true); !got.NodesDiffer || got.perNode[0].Node != "unknown" {
			t.Errorf("nodes differ %v: %+v", got.NodesDiffer, got.perNode)
		}
	})
}

// The interval of levels over two nodes has one degree of freedom, and an estimate whose nodes agree has the interval over blocks at least.
func TestAcrossNodes_LevelsNeverNarrowerThanBlocks(t *testing.T) {
	t.Parallel()
	d, values, pooled := overNodes(map[string][]float64{"a": {1, 1.4, 0.6}, "b": {1.01, 1.41, 0.61}})
	got := across(d, values, pooled, false)
	low, high := got.Ends(0.95)
	a, b := pooled.Ends(0.95)
	if low > a || high < b || got.SE < pooled.SE*(1-1e-9) {
		t.Errorf("[%g, %g] with a standard error of %g, over blocks [%g, %g] with %g", low, high, got.SE, a, b, pooled.SE)
	}
	d, values, pooled = overNodes(map[string][]float64{"a": {1, 1.01, 0.99}, "b": {2, 2.01, 1.99}})
	got = across(d, values, pooled, false)
	half := stats.StudentQuantile(0.975, 1) * 0.5
	wantEnds(t, got, 0.95, 1.5-half, 1.5+half)
}

func TestMoved_ShiftsEndsAndTail(t *testing.T) {
	t.Parallel()
	for name, logarithmic := range map[string]bool{"plain": false, "logarithmic": true} {
		values := map[string]float64{"b1": 1.9, "b2": 2.1, "b3": 2.2, "b4": 1.8}
		plain := studentInference(values, 0.95, logarithmic)
		low, high := plain.Ends(0.9)
		got := plain.moved(0.1, 0.3)
		wantEnds(t, got, 0.9, low-0.1, high+0.3)
		if twice := got.moved(0.05, 0); !near(twice.down, 0.15) || !near(twice.up, 0.3) {
			t.Errorf("%s: down %g and up %g of two shifts", name, twice.down, twice.up)
		}
		at := func(scaled float64) float64 { return plain.unscale(scaled) }
		for _, c := range []struct{ bound, same float64 }{{2.6, 2.3}, {1.5, 1.6}} {
			if p, want := got.Tail(at(c.bound)), plain.Tail(at(c.same)); !near(p, want) {
				t.Errorf("%s: tail of %g is %g, want that of %g without the shift, %g", name, c.bound, p, c.same, want)
			}
		}
		for _, bound := range []float64{1.95, 2, 2.25, 1.9000001, 2.2999999} {
			if p := got.Tail(at(bound)); p != 0.5 {
				t.Errorf("%s: tail of %g, which the shift reaches, is %g", name, bound, p)
			}
		}
		if same := plain.moved(0, 0); same.down != 0 || same.up != 0 {
			t.Errorf("%s: a shift of 0 moves %g and %g", name, same.down, same.up)
		}
	}
	if got := (Inference{Reason: "none"}).moved(1, 1); got.Ends != nil {
		t.Error("a missing interval was moved")
	}
}

func TestIncluding_TakesTheWiderOfBoth(t *testing.T) {
	t.Parallel()
	narrow, wide := studentAround(1, 0.1, 20, Inference{}), studentAround(1, 0.2, 20, Inference{})
	few := studentAround(1, 0.1, 1, Inference{})
	for name, c := range map[string]struct{ a, b, want Inference }{
		"the other is wider":                      {narrow, wide, wide},
		"the other is narrower":                   {wide, narrow, wide},
		"the other has fewer degrees of freedom":  {wide, few, few},
		"the other has more and a smaller spread": {few, wide, few},
	} {
		got := c.a.including(c.b)
		low, high := c.want.Ends(0.95)
		wantEnds(t, got, 0.95, low, high)
		if got.SE != c.want.SE || got.DF != c.want.DF || !near(got.Tail(1.3), c.want.Tail(1.3)) {
			t.Errorf("%s: standard error %g with %g degrees of freedom, tail %g", name, got.SE, got.DF, got.Tail(1.3))
		}
	}
}

func TestMinimumDetectableEffect_OfKnownErrors(t *testing.T) {
	t.Parallel()
	sum := stats.StudentQuantile(0.975, 9) + stats.StudentQuantile(0.8, 9)
	for name, c := range map[string]struct {
		inference Inference
		want      *float64
	}{
		"ratio":                      {Inference{SE: 0.1, DF: 9, logarithmic: true}, stats.Finite(math.Expm1(sum * 0.1))},
		"ratio with a clock's error": {Inference{SE: 0.1, DF: 9, logarithmic: true, down: 0.2, up: 0.3}, stats.Finite(math.Expm1(sum*0.1 + 0.3))},
		"level":                      {Inference{Value: -4, SE: 0.1, DF: 9}, stats.Finite(sum * 0.1 / 4)},
		"level with a clock's error": {Inference{Value: 4, SE: 0.1, DF: 9, down: 0.5, up: 0.3}, stats.Finite((sum*0.1 + 0.5) / 4)},
		"level of 0":                 {Inference{SE: 0.1, DF: 9}, nil},
		"no interval":                {Inference{Value: 4, SE: 0.1, DF: 9, Reason: "few"}, nil},
	} {
		got := c.inference.MinimumDetectableEffect(0.95)
		if (got == nil) != (c.want == nil) || got != nil && !near(*got, *c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMoreBlocks_WithShiftsAndNodes(t *testing.T) {
	t.Parallel()
	near2 := Inference{Value: 2, SE: 0.1, Blocks: 5, DF: 4}
	shifted, nodes, builds := near2, near2, near2
	shifted.up, shifted.down = 0.2, 0.1
	nodes.NodesDiffer, builds.Builds = true, 2
	want := func(distance float64) *int { return stats.BlocksWithin(5, 0.1*math.Sqrt(5), distance, 0.025) }
	for name, c := range map[string]struct {
		inference Inference
		bound     float64
		all       *int
	}{
		"a bound above":                    {near2, 2.1, want(0.1)},
		"a bound below":                    {near2, 1.9, want(0.1)},
		"a bound above the clock's error":  {shifted, 2.3, want(0.1)},
		"a bound below the clock's error":  {shifted, 1.8, want(0.1)},
		"a bound within the clock's error": {shifted, 2.2, nil},
		"the other side of it":             {shifted, 1.9, nil},
		"nodes that differ":                {nodes, 2.1, nil},
		"builds":                           {builds, 2.1, nil},
		"a bound that is excluded already": {near2, 9, want(7)},
	} {
		got := c.inference.MoreBlocks(c.bound, 0.025)
		switch {
		case (got == nil) != (c.all == nil):
			t.Errorf("%s: %v", name, got)
		case got != nil && *got != max(1, *c.all-5):
			t.Errorf("%s: %d further blocks, want %d", name, *got, max(1, *c.all-5))
		}
	}
}

func TestEstimate_OnlyOfFiniteValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inference Inference
		want      *analysis.Estimate
	}{
		"an interval": {
			Inference{Value: 2, Low: 1, High: 3, Blocks: 4, samples: 8},
			&analysis.Estimate{Value: 2, Unit: "s", Blocks: 4, Samples: 8, Low: stats.Finite(1), High: stats.Finite(3)},
		},
		"no interval": {
			Inference{Value: 2, Low: 1, High: 3, Blocks: 2, Reason: "few"}, &analysis.Estimate{Value: 2, Unit: "s", Blocks: 2},
		},
		"an end without limit": {
			Inference{Value: 2, Low: 1, High: math.Inf(1), Blocks: 4}, &analysis.Estimate{Value: 2, Unit: "s", Blocks: 4, Low: stats.Finite(1)},
		},
		"no block":     {inference: Inference{Value: 2}},
		"no number":    {inference: Inference{Value: math.NaN(), Blocks: 4}},
		"no magnitude": {inference: Inference{Value: math.Inf(1), Blocks: 4}},
	} {
		if got := c.inference.Estimate("s"); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := (Inference{Value: 2, Blocks: 4}).Ratio(); !got.Ratio || got.Unit != "1" {
		t.Errorf("ratio %+v", got)
	}
}
