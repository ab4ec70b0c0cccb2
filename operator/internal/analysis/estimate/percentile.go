package estimate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
)

// resamples of every bootstrap: enough that the ends of a 95 % interval move by a few per cent of its width at most.
const resamples = 2000

// percentileBlocks is the smallest number of blocks with which the percentile bootstrap can reach its level, because both ends together
// miss with probability of at least 2^(1-n). With fewer, Student's interval uses the bootstrap's standard error.
const percentileBlocks = 5

// pool is the merged samples of an arm's trials at a point, ready for percentiles under any weighting of the blocks.
type pool struct {
	values []float64
	block  []int32
	// count of every value; nil where each is one sample.
	count []int64
	// marks hold, every stride values, how many samples of each block lie below: a percentile needs one search and a short
	// walk, not a pass over everything.
	stride int
	marks  [][]int64
	totals []int64
}

// poolMarks is the number of marks of a large pool. It limits the length of a walk, and the marks of thousands of blocks take less memory
// than the samples.
const poolMarks = 64

// newPool merges samples; blocks gives each block its index.
func (d *Data) newPool(q Quantity, blocks map[string]int) *pool {
	type sample struct {
		value float64
		count int64
		block int32
	}
	distinct := 0
	for _, metric := range d.reported(q.Cell, q.Metric) {
		distinct += d.Chosen.Histograms.Distinct(metric)
	}
	samples := make([]sample, 0, distinct)
	single := true
	add := func(value float64, count int64, block int) {
		samples = append(samples, sample{value, count, int32(block)})
		single = single && count == 1
	}
	for attempt, metric := range d.reported(q.Cell, q.Metric) {
		if block, counts := blocks[attempt.Block]; counts {
			of := trial.Samples(metric)
			d.Chosen.Histograms.Each(metric, func(value float64, count int64) { add(value, d.weight(count, of), block) })
		}
	}
	d.eachTimeout(q, func(value float64, count int64, block string) {
		if at, ok := blocks[block]; ok {
			add(value, d.weight(count, count), at)
		}
	})
	slices.SortFunc(samples, func(a, b sample) int {
		if c := cmp.Compare(a.value, b.value); c != 0 {
			return c // Most often: millions of samples are compared, and few are equal.
		}
		return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.count, b.count))
	})

	p := &pool{stride: max(64, len(samples)/poolMarks), totals: make([]int64, len(blocks))}
	p.values, p.block = make([]float64, len(samples)), make([]int32, len(samples))
	if !single {
		p.count = make([]int64, len(samples))
	}
	for i, s := range samples {
		if i%p.stride == 0 {
			p.marks = append(p.marks, slices.Clone(p.totals))
		}
		p.values[i], p.block[i] = s.value, s.block
		if !single {
			p.count[i] = s.count
		}
		p.totals[s.block] += s.count
	}
	return p
}

// weightOfTrial is the weight of a trial with equal weights, large enough for accurate shares.
const weightOfTrial = 1 << 30

// weight is the weight of a value with a number of occurrences among the samples of a trial.
func (d *Data) weight(count, of int64) int64 {
	if !d.byTrials {
		return count
	}
	return max(1, int64(math.Round(float64(count)/float64(of)*weightOfTrial)))
}

// positive reports whether the percentile is positive in each block, and so under any weighting of the blocks.
func (p *pool) positive(share float64) bool {
	others := make([]int64, len(p.totals))
	for i := 0; i < len(p.values) && !(p.values[i] > 0); i++ {
		others[p.block[i]] += p.samples(i)
	}
	for block, count := range others {
		if count >= stats.NearestRank(share, p.totals[block]) {
			return false
		}
	}
	return true
}

// samples of the i-th value.
func (p *pool) samples(i int) int64 {
	if p.count == nil {
		return 1
	}
	return p.count[i]
}

// percentile is the smallest value that at least the share p of the weighted samples does not exceed (nearest rank).
func (p *pool) percentile(share float64, weights []int64) float64 {
	total := weigh(p.totals, weights)
	rank := stats.NearestRank(share, total)
	mark := sort.Search(len(p.marks), func(i int) bool { return weigh(p.marks[i], weights) >= rank }) - 1
	below := weigh(p.marks[mark], weights)
	for i := mark * p.stride; i < len(p.values); i++ {
		if below += p.samples(i) * weights[p.block[i]]; below >= rank {
			return p.values[i]
		}
	}
	return p.values[len(p.values)-1]
}

func weigh(counts, weights []int64) int64 {
	var sum int64
	for i, count := range counts {
		sum += count * weights[i]
	}
	return sum
}

func (p *pool) size() int {
	var sum int64
	for _, total := range p.totals {
		sum += total
	}
	return int(sum)
}

// EnoughSamples reports whether a percentile of an arm at a point exists.
func (d *Data) EnoughSamples(c selection.Cell, metric string, statistic experiment.Statistic) bool {
	return d.samples(c, metric) >= experiment.MinSamples(statistic)
}

// blocksWith are the blocks in which the cell has samples of the metric.
func (d *Data) blocksWith(c selection.Cell, metric string) map[string]bool {
	out := map[string]bool{}
	for attempt := range d.reported(c, metric) {
		out[attempt.Block] = true
	}
	d.eachTimeout(Quantity{Cell: c, Metric: metric}, func(_ float64, _ int64, block string) { out[block] = true })
	return out
}

func number(blocks iter.Seq[string]) map[string]int {
	out := map[string]int{}
	for i, name := range slices.Sorted(blocks) {
		out[name] = i
	}
	return out
}

func (d *Data) percentileLevel(q Quantity, share float64) Inference {
	blocks := number(maps.Keys(d.blocksWith(q.Cell, q.Metric)))
	if len(blocks) == 0 {
		return Inference{Reason: "no block has a value"}
	}
	positive := true // All blocks are evaluated first, so that all nodes are compared on one scale.
	var all *pool
	found := d.percentileAcrossNodes(q.Statistic, blocks, false, func(blocks map[string]int, least int) Inference {
		p := d.newPool(q, blocks)
		all = cmp.Or(all, p)
		positive = positive && p.values[0] > 0
		out := Inference{Blocks: len(blocks), samples: p.size(), logarithmic: positive}
		return d.bootstrap(q, out, least, d.drawn(blocks, q.Cell), func(weights []int64) float64 { return p.percentile(share, weights) })
	})
	return d.acrossGaps(found, share, q, all)
}

// percentileAcrossNodes computes for every node the percentile of the merged samples of its blocks. All nodes together must have the
// samples that a percentile needs.
func (d *Data) percentileAcrossNodes(statistic experiment.Statistic, blocks map[string]int, paired bool,
	of func(blocks map[string]int, least int) Inference) Inference {
	pooled := of(blocks, experiment.MinSamples(statistic))
	return d.acrossNodes(pooled, slices.Sorted(maps.Keys(blocks)), paired, func(part []string) Inference {
		return of(number(slices.Values(part)), 1)
	})
}

func (d *Data) percentileRatio(mine, theirs Quantity, share float64) Inference {
	shared := d.blocksWith(mine.Cell, mine.Metric)
	other := d.blocksWith(theirs.Cell, theirs.Metric)
	maps.DeleteFunc(shared, func(block string, _ bool) bool { return !other[block] })
	blocks := number(maps.Keys(shared))
	if len(blocks) == 0 {
		return Inference{Reason: "no block has trials of both arms"}
	}
	var ofMine, ofTheirs *pool // Of all blocks, which are evaluated first.
	found := d.percentileAcrossNodes(mine.Statistic, blocks, true, func(blocks map[string]int, least int) Inference {
		a, b := d.newPool(mine, blocks), d.newPool(theirs, blocks)
		ofMine, ofTheirs = cmp.Or(ofMine, a), cmp.Or(ofTheirs, b)
		out := Inference{Blocks: len(blocks), samples: a.size() + b.size(), logarithmic: true}
		if min(a.size(), b.size()) < least {
			out.Reason = fmt.Sprintf("%s needs at least %d samples of each arm and there are %d and %d", mine.Statistic, least, a.size(), b.size())
			out.Value = math.NaN() // Absent, and not zero.
			return out
		}
		if !a.positive(share) || !b.positive(share) {
			return Inference{NoRatio: true, Reason: noRatio(mine.Metric, d.PerBlock(mine), d.PerBlock(theirs))}
		}
		return d.bootstrap(mine, out, least, d.drawn(blocks, mine.Cell, theirs.Cell), func(weights []int64) float64 {
			return a.percentile(share, weights) / b.percentile(share, weights)
		})
	})
	return d.acrossGaps(found, share, mine, ofMine, compared{theirs, ofTheirs})
}

// A percentile is undetermined if it lies at the edge of a gap: where each process has slow samples in a fixed share, such as its first of
// twenty, p95 is the largest of the others, and jumps over the gap if the share changes by any amount. Drawing whole blocks does not change
// the share, so that the bootstrap does not show it, and the interval is moved over the gap instead.

const (
	// gapWindow is the share of a trial's samples around a percentile in which a gap is searched, to each side.
	gapWindow = 0.25
	// leastGap is the share of the spread around a gap and below it that a gap has, and gapSteps the number of its clock's steps.
	leastGap, gapSteps = 0.5, 3
)

// acrossGaps moves the ends of a level over the gap at its percentile, and those of a ratio or difference over the gaps at both. The pools
// are those of the quantities.
func (d *Data) acrossGaps(found Inference, share float64, mine Quantity, a *pool, others ...compared) Inference {
	down, up := d.gap(mine, a, share, found)
	for _, with := range others {
		theirDown, theirUp := d.gap(with.Quantity, with.pool, share, found)
		down, up = down+theirUp, up+theirDown
	}
	if down == 0 && up == 0 {
		return found
	}
	found.Note = fmt.Sprintf("%s lies at the edge of a gap between the samples of a trial, which its interval includes, so more blocks do "+
		"not make it narrower: judge another percentile or the mean", mine.Statistic)
	return found.moved(down, up).At(d.Confidence)
}

// compared is a quantity that a percentile is compared with, with its merged samples.
type compared struct {
	Quantity
	pool *pool
}

// gap returns the distances from a percentile over the gap that it lies beside, down and up, on the working scale of an inference; 0
// without a gap.
func (d *Data) gap(q Quantity, p *pool, share float64, found Inference) (down, up float64) {
	trials := 0
	for range d.reported(q.Cell, q.Metric) {
		trials++
	}
	if !found.HasInterval() || trials == 0 || p.size() < 2*trials {
		return 0, 0
	}
	total := int64(p.size())
	window := gapWindow * float64(trials) / float64(p.size())
	first := stats.NearestRank(max(share-window, 0), total)
	last := stats.NearestRank(min(share+window, 1), total)
	here := stats.NearestRank(share, total)
	var rank int64
	var values []float64
	at, upper, widest := 0, 0, 0.0
	for i, value := range p.values {
		rank += p.samples(i)
		if rank < first {
			continue
		}
		if values = append(values, value); rank >= here && at == 0 {
			at = len(values)
		}
		if n := len(values); n > 1 {
			if jump := found.Scale(value) - found.Scale(values[n-2]); jump > widest {
				upper, widest = n-1, jump
			}
		}
		if rank >= last {
			break
		}
	}
	if upper == 0 || values[upper]-values[upper-1] <= gapSteps*d.readBy(q).step {
		return 0, 0
	}
	// A gap is wide beside the spread of its neighbourhood and of all samples below it.
	ones := slices.Repeat([]int64{1}, len(p.totals))
	around := found.Scale(values[len(values)-1]) - found.Scale(values[0])
	below := found.Scale(values[upper-1]) - found.Scale(p.percentile(share/10, ones))
	if widest < leastGap*max(around, below) {
		return 0, 0
	}
	middle := found.Scale(values[at-1])
	return max(0, middle-found.Scale(values[upper-1])), max(0, found.Scale(values[upper])-middle)
}

// bootstrap computes the interval of a statistic of merged samples. Whole blocks are drawn with replacement, because samples of one
// process and trials of one block are not independent. The percentiles of the bootstrap distribution are expanded, because they are too
// narrow for few blocks (Hesterberg 2015, The American Statistician 69:371, "expanded percentile interval"). Blocks of one build of an arm
// with several builds are drawn together.
func (d *Data) bootstrap(q Quantity, out Inference, least int, units [][]int, statistic func(weights []int64) float64) Inference {
	n := len(units)
	weights := make([]int64, out.Blocks)
	if n < out.Blocks {
		out.Builds = n
	}
	for i := range weights {
		weights[i] = 1
	}
	out.Value = statistic(weights)
	if out.samples < least {
		out.Reason = fmt.Sprintf("%s needs at least %d samples and there are %d", q.Statistic, least, out.samples)
		return out
	}
	if n < stats.MinBlocks {
		out.Reason = fmt.Sprintf("%d of at least %d blocks", n, stats.MinBlocks)
		if out.Builds > 0 {
			out.Reason = fmt.Sprintf("%d of at least %d builds", n, stats.MinBlocks)
		}
	}
	if n < 2 {
		return out
	}

	random := rand.New(rand.NewPCG(uint64(d.Exp.Plan.Design.Seed), d.stream(q)))
	drawn := make([]float64, resamples)
	for i := range drawn {
		clear(weights)
		for range n {
			for _, block := range units[random.IntN(n)] {
				weights[block]++
			}
		}
		drawn[i] = out.Scale(statistic(weights))
	}
	slices.Sort(drawn)

	center := out.Scale(out.Value)
	out.DF = float64(n - 1)
	middle := stats.Mean(drawn)
	out.SE = math.Sqrt(float64(n)/out.DF) * math.Sqrt(stats.Squares(drawn, middle)/float64(resamples-1))
	se := out.SE
	out.Ends = func(confidence float64) (low, high float64) { return bootstrapEnds(drawn, center, se, n, confidence) }
	scale := out.Scale
	out.Tail = func(bound float64) float64 { return bootstrapTail(drawn, center, scale(bound), se, n) }
	return out.At(d.Confidence)
}

// bootstrapEnds returns the ends of the expanded percentile interval. If too few draws lie beyond an end, the end is at least as far out as
// that of Student's interval with the bootstrap's standard error.
func bootstrapEnds(drawn []float64, center, se float64, n int, confidence float64) (low, high float64) {
	df := float64(n - 1)
	quantile := stats.StudentQuantile((1+confidence)/2, df)
	low, high = center-quantile*se, center+quantile*se
	if n < percentileBlocks {
		return low, high
	}
	rank := int(distuv.UnitNormal.CDF(-math.Sqrt(float64(n)/df)*quantile) * float64(len(drawn)+1))
	if rank < 1 {
		return min(low, drawn[0]), max(high, drawn[len(drawn)-1])
	}
	// The estimate always lies inside its interval, also where the bootstrap distribution is lopsided.
	rank = min(rank, len(drawn)/2)
	return min(center, drawn[rank-1]), max(center, drawn[len(drawn)-rank])
}

// bootstrapTail inverts the interval and returns the level at which its end reaches the bound. Beyond the farthest draw it uses Student's
// tail with the bootstrap's standard error.
func bootstrapTail(drawn []float64, center, bound, se float64, n int) float64 {
	student := stats.DistanceTail(math.Abs(bound-center), se, float64(n-1))
	if n < percentileBlocks {
		return student
	}
	beyond := sort.SearchFloat64s(drawn, bound)
	if bound > center {
		beyond = len(drawn) - beyond
	}
	if beyond == 0 {
		floor := expandedTail(1/float64(len(drawn)+1), n)
		return min(student, floor)
	}
	return expandedTail(float64(beyond)/float64(len(drawn)+1), n)
}

func expandedTail(share float64, n int) float64 {
	df := float64(n - 1)
	return stats.StudentTail(-distuv.UnitNormal.Quantile(min(share, 0.5))*math.Sqrt(df/float64(n)), df)
}

// stream returns a separate random stream for every quantity, so that no figure depends on the order of the computations.
func (d *Data) stream(q Quantity) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%d/%d/%s/%s", q.Point, q.Arm, q.Metric, q.Statistic)
	return hash.Sum64()
}
