package estimate

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
)

func TestBuildGroups_BlocksByDistinctProgram(t *testing.T) {
	t.Parallel()
	type ran struct{ block, build, program string }
	for name, c := range map[string]struct {
		ran  []ran
		hung []ran
		want map[string]string
	}{
		"builds without names":     {ran: []ran{{"b1", "", ""}, {"b2", "x", ""}, {"b3", "y", ""}}},
		"one build":                {ran: []ran{{"b1", "x", ""}, {"b2", "x", ""}}},
		"two builds":               {ran: []ran{{"b1", "x", ""}, {"b2", "y", ""}}, want: map[string]string{"b1": "x", "b2": "y"}},
		"two names of one program": {ran: []ran{{"b1", "x", "1"}, {"b2", "y", "1"}}},
		"two names of one program and another": {
			ran: []ran{{"b1", "y", "1"}, {"b2", "x", "1"}, {"b3", "z", "2"}}, want: map[string]string{"b1": "\x00programDigest=1\n",
				"b2": "\x00programDigest=1\n", "b3": "\x00programDigest=2\n"},
		},
		"builds that share a block": {
			ran: []ran{{"b1", "x", ""}, {"b1", "y", ""}, {"b2", "z", ""}, {"b3", "y", ""}}, want: map[string]string{"b1": "x", "b2": "z", "b3": "x"},
		},
		"a build of which every trial timed out": {
			ran: []ran{{"b1", "x", ""}}, hung: []ran{{"b2", "y", ""}}, want: map[string]string{"b1": "x", "b2": "y"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := newTrials(seconds, 1, 1)
			for _, r := range c.ran {
				a := made.add(selection.At(0, 0), r.block, 1)
				a.Build, a.Environment.Soft = r.build, map[string]any{}
				if r.program != "" {
					a.Environment.Soft["programDigest"] = r.program
				}
			}
			for _, r := range c.hung {
				made.timeOut(selection.At(0, 0), r.block).Build = r.build
			}
			got := made.data().buildGroups(selection.At(0, 0))
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// With groups of equal size, the jackknife is the variance of the mean of the groups. With others, it is computed by leaving
// out a group at a time.
func TestJackknife_EqualsLeavingOutEachGroup(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for _, sizes := range [][]int{{2, 2, 2, 2}, {1, 1, 1}, {3, 1, 5}, {1, 7}} {
		names, groups, means := []string{}, map[string][]float64{}, []float64{}
		for i, size := range sizes {
			name := fmt.Sprint(i)
			names = append(names, name)
			for range size {
				groups[name] = append(groups[name], 3+random.NormFloat64())
			}
			means = append(means, stats.Mean(groups[name]))
		}
		var all, without []float64
		for _, name := range names {
			all = append(all, groups[name]...)
			var others []float64
			for _, other := range names {
				if other != name {
					others = append(others, groups[other]...)
				}
			}
			without = append(without, stats.Mean(others))
		}
		g := float64(len(sizes))
		if got, want := jackknife(names, groups), stats.Squares(without, stats.Mean(all))*(g-1)/g; !near(got, want) {
			t.Errorf("%v: %g, want %g", sizes, got, want)
		}
		if sizes[0] == sizes[1] {
			if got, want := jackknife(names, groups), stats.Squares(means, stats.Mean(means))/(g-1)/g; !near(got, want) {
				t.Errorf("%v: %g, and the variance of the mean of the groups is %g", sizes, got, want)
			}
		}
	}
}

// differenceOfBuilds returns data of two arms with a build for each block, and the inference over blocks without regard to builds.
func differenceOfBuilds(values map[string]float64, builds ...map[string]string) (*Data, Inference, []selection.Cell) {
	made := newTrials(seconds, 1, 2)
	var cells []selection.Cell
	for arm, builds := range builds {
		for _, block := range inOrderOf(builds) {
			made.add(selection.At(0, arm), block, 1).Build = builds[block]
		}
		cells = append(cells, selection.At(0, arm))
	}
	return made.data(), studentInference(values, 0.95, false), cells
}

func TestAcrossBuilds_StandardErrorOverBuilds(t *testing.T) {
	t.Parallel()
	values, pairs, third, rows := map[string]float64{}, map[string]string{}, map[string]string{}, map[string]string{}
	random := rand.New(rand.NewPCG(2, 2))
	for i := range 12 {
		block := fmt.Sprintf("b%02d", i)
		pairs[block], third[block], rows[block] = fmt.Sprintf("x%d", i%4), fmt.Sprintf("y%d", i%3), fmt.Sprintf("z%d", i/3)
		values[block] = 5 + float64(i%4) + 2*float64(i%3) + 0.1*random.NormFloat64()
	}
	over := func(of func(string) string) float64 {
		groups := map[string][]float64{}
		for block, value := range values {
			groups[of(block)] = append(groups[of(block)], value)
		}
		var means []float64
		for _, group := range groups {
			means = append(means, stats.Mean(group))
		}
		return stats.Squares(means, stats.Mean(means)) / float64(len(means)-1) / float64(len(means))
	}
	in := func(groups map[string]string) func(string) string {
		return func(block string) string { return groups[block] }
	}
	single := func(block string) string { return block }
	one := maps.Clone(pairs)
	for block := range one {
		one[block] = "x"
	}
	for name, c := range map[string]struct {
		old, new map[string]string
		variance float64
		fewest   int
	}{
		"builds that meet in pairs":      {pairs, pairs, over(in(pairs)), 4},
		"builds of one arm":              {one, third, over(in(third)), 3},
		"crossed builds":                 {pairs, third, over(in(pairs)) + over(in(third)) - over(single), 3},
		"builds that differ little":      {one, rows, over(single), 4},
		"builds of which one is grouped": {pairs, rows, max(over(in(pairs)), over(in(pairs))+over(in(rows))-over(single), over(single)), 4},
	} {
		t.Run(name, func(t *testing.T) {
			d, alone, cells := differenceOfBuilds(values, c.old, c.new)
			got := d.acrossBuilds(values, alone, cells...)
			if got.Builds != c.fewest || got.DF != float64(c.fewest-1) || !near(got.SE*got.SE, c.variance) {
				t.Errorf("%d builds, %g degrees of freedom, variance %g, want %d builds and variance %g", got.Builds, got.DF, got.SE*got.SE,
					c.fewest, c.variance)
			}
			half := stats.StudentQuantile(0.975, float64(c.fewest-1)) * math.Sqrt(c.variance)
			wantEnds(t, got, 0.95, alone.Value-half, alone.Value+half)
			if !near(got.Low, alone.Value-half) || !near(got.High, alone.Value+half) {
				t.Errorf("[%g, %g] is not the interval at the confidence of the run", got.Low, got.High)
			}
		})
	}
	t.Run("one build", func(t *testing.T) {
		d, alone, cells := differenceOfBuilds(values, one, one)
		if got := d.acrossBuilds(values, alone, cells...); got.Builds != 0 || got.SE != alone.SE {
			t.Errorf("%d builds and a standard error of %g, want 0 and %g", got.Builds, got.SE, alone.SE)
		}
	})
	t.Run("values of blocks with one build", func(t *testing.T) {
		d, _, cells := differenceOfBuilds(values, pairs, pairs)
		same := map[string]float64{"b00": 1, "b04": 2, "b08": 3}
		if got := d.acrossBuilds(same, studentInference(same, 0.95, false), cells...); !strings.Contains(got.Reason, "all ran the same one") {
			t.Errorf("reason %q", got.Reason)
		}
	})
	t.Run("too few blocks", func(t *testing.T) {
		d, _, cells := differenceOfBuilds(values, pairs, pairs)
		few := map[string]float64{"b00": 1, "b01": 2}
		if got := d.acrossBuilds(few, studentInference(few, 0.95, false), cells...); got.Reason != "2 of at least 3 blocks" || got.Builds != 4 {
			t.Errorf("%d builds, reason %q", got.Builds, got.Reason)
		}
	})
}

func TestDrawn_BlocksOfOneBuildTogether(t *testing.T) {
	t.Parallel()
	blocks := map[string]int{"b1": 0, "b2": 1, "b3": 2, "b4": 3, "b5": 4}
	two := map[string]string{"b1": "x", "b2": "y", "b3": "x", "b4": "y", "b5": "x"}
	three := map[string]string{"b1": "p", "b2": "q", "b3": "r", "b4": "p", "b5": "q"}
	one := map[string]string{"b1": "x", "b2": "x", "b3": "x", "b4": "x", "b5": "x"}
	for name, c := range map[string]struct {
		old, new map[string]string
		want     [][]int
	}{
		"one build of each arm":          {one, one, [][]int{{0}, {1}, {2}, {3}, {4}}},
		"two builds":                     {two, one, [][]int{{0, 2, 4}, {1, 3}}},
		"three builds, and two of other": {three, two, [][]int{{0, 2, 4}, {1, 3}}},
		"two builds, and three of other": {two, three, [][]int{{0, 2, 4}, {1, 3}}},
	} {
		d, _, cells := differenceOfBuilds(nil, c.old, c.new)
		if got := d.drawn(blocks, cells...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
