package estimate

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/trial"
)

// The speed of a program depends on its memory layout: another link order or name length changes it by several per cent (Mytkowicz et al.
// 2009, Curtsinger and Berger 2013). Blocks of one build share its layout effect, as blocks of one node share the node, so further blocks
// do not average it out. The builds of an arm are a sample of the possible layouts of its source, and the interval is over builds.

// buildGroups returns the build of an arm that each block ran, by name; nil for an arm with one build. Builds with the same digest are one
// build, also under different names. Builds that share a block are one group, because their effects cannot be separated.
func (d *Data) buildGroups(c selection.Cell) map[string]string {
	parent := map[string]string{}
	root := func(name string) string {
		for parent[name] != "" {
			name = parent[name]
		}
		return name
	}
	join := func(a, b string) {
		if a, b = root(a), root(b); a != b {
			parent[max(a, b)] = min(a, b)
		}
	}
	distinct, trials := map[string]bool{}, slices.Concat(d.Trials[c], d.hung[c])
	for _, attempt := range trials {
		if attempt.Build == "" {
			return nil
		}
		if programs := trial.ExecutedFiles(attempt); programs != "" {
			join(attempt.Build, "\x00"+programs)
		}
	}
	for _, attempt := range trials {
		distinct[root(attempt.Build)] = true
	}
	if len(distinct) < 2 {
		return nil
	}
	out := map[string]string{}
	for _, attempt := range trials {
		if other, ok := out[attempt.Block]; ok {
			join(attempt.Build, other)
		}
		out[attempt.Block] = attempt.Build
	}
	for block, build := range out {
		out[block] = root(build)
	}
	return out
}

// acrossBuilds widens the inference on a mean over blocks where an arm is several builds. The variance is that of a mean whose
// terms share a build of one arm, of the other, or both: the sum of the variances over the groups of either less that over the
// groups of both (Cameron, Gelbach and Miller 2011), each by leaving out one group at a time (the jackknife, which is CR3 of Bell
// and McCaffrey 2002), with as many degrees of freedom as the fewest builds have, less one. Where builds of both arms meet in pairs, as
// the planner lets them, all three are the same, and the interval is Student's over the pairs: exact for normal accidents. It is
// never narrower than without builds.
func (d *Data) acrossBuilds(values map[string]float64, found Inference, cells ...selection.Cell) Inference {
	partitions, builds := d.Partitions(cells)
	if len(partitions) == 0 {
		return found
	}
	found.Builds = builds
	if !found.HasInterval() {
		return found
	}
	blocks := inOrderOf(values)
	variance := func(of func(block string) string) (float64, int) {
		groups := map[string][]float64{}
		var names []string
		for _, block := range blocks {
			name := of(block)
			if groups[name] == nil {
				names = append(names, name)
			}
			groups[name] = append(groups[name], values[block])
		}
		return jackknife(names, groups), len(names)
	}
	total, fewest := 0.0, math.MaxInt
	largest := 0.0
	for _, partition := range partitions {
		v, n := variance(func(block string) string { return partition[block] })
		if n < 2 {
			found.Reason = "every block runs one of an arm's builds, and here blocks mix them, or all ran the same one"
			return found
		}
		total, largest, fewest = total+v, math.Max(largest, v), min(fewest, n)
	}
	if len(partitions) == 2 {
		both, _ := variance(func(block string) string { return partitions[0][block] + "\x00" + partitions[1][block] })
		total -= both
	}
	alone, _ := variance(func(block string) string { return block })
	over := studentAround(found.Scale(found.Value), math.Sqrt(max(total, largest, alone)), float64(fewest-1), found)
	found = found.including(over)
	found.SE, found.DF = over.SE, over.DF
	return found.At(d.Confidence)
}

// Partitions returns the groups of blocks by build, for every arm with several builds, and the smallest number of builds.
func (d *Data) Partitions(cells []selection.Cell) (out []map[string]string, builds int) {
	for i, c := range cells {
		if slices.Contains(cells[:i], c) {
			continue
		}
		if groups := d.buildGroups(c); len(groups) > 0 {
			distinct := len(slices.Compact(slices.Sorted(maps.Values(groups))))
			if out = append(out, groups); builds == 0 || distinct < builds {
				builds = distinct
			}
		}
	}
	return out, builds
}

// jackknife is the variance of the mean of all values, by leaving out a group at a time.
func jackknife(names []string, groups map[string][]float64) float64 {
	n, sum := 0.0, 0.0
	for _, name := range names {
		for _, value := range groups[name] {
			n, sum = n+1, sum+value
		}
	}
	var spread float64
	for _, name := range names {
		left, without := n, sum
		for _, value := range groups[name] {
			left, without = left-1, without-value
		}
		off := without/left - sum/n
		spread += off * off
	}
	g := float64(len(names))
	return spread * (g - 1) / g
}

// drawn returns the indexes of the blocks that a bootstrap draws together: those of one build of the arm with the fewest, or single blocks
// if no arm has several builds.
func (d *Data) drawn(blocks map[string]int, cells ...selection.Cell) [][]int {
	partitions, _ := d.Partitions(cells)
	var coarsest map[string]string
	fewest := math.MaxInt
	for _, partition := range partitions {
		distinct := map[string]bool{}
		for block := range blocks {
			distinct[partition[block]] = true
		}
		if len(distinct) < fewest {
			coarsest, fewest = partition, len(distinct)
		}
	}
	var out [][]int
	at := map[string]int{}
	for _, name := range inOrderOf(blocks) {
		group := cmp.Or(coarsest[name], name)
		i, ok := at[group]
		if !ok {
			i = len(out)
			at[group] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], blocks[name])
	}
	return out
}
