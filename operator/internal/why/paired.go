package why

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis/stats"
)

// paired has the trials by block and arm. Only blocks with trials of all three arms count.
type paired struct {
	question Question
	blocks   []int
	// trials by arm, then by index of the block.
	trials map[string][][]Trial
}

func newPaired(question Question, trials []Trial) *paired {
	arms := []string{question.Baseline, question.Candidate, question.Null}
	grouped := map[int]map[string][]Trial{}
	for _, trial := range trials {
		if trial.Instrument != question.Instrument || len(trial.Costs) == 0 || !slices.Contains(arms, trial.Arm) {
			continue
		}
		if grouped[trial.Block] == nil {
			grouped[trial.Block] = map[string][]Trial{}
		}
		grouped[trial.Block][trial.Arm] = append(grouped[trial.Block][trial.Arm], trial)
	}
	out := &paired{question: question, trials: map[string][][]Trial{}}
	for _, block := range slices.Sorted(maps.Keys(grouped)) {
		if len(grouped[block]) < len(arms) {
			continue
		}
		out.blocks = append(out.blocks, block)
		for _, arm := range arms {
			out.trials[arm] = append(out.trials[arm], grouped[block][arm])
		}
	}
	return out
}

// figure returns the mean figure of an arm in each block.
func (p *paired) figure(arm string) []float64 {
	return p.each(arm, func(trial Trial) float64 { return trial.Seconds })
}

func (p *paired) each(arm string, of func(Trial) float64) []float64 {
	out := make([]float64, 0, len(p.blocks))
	for _, trials := range p.trials[arm] {
		var sum float64
		for _, trial := range trials {
			sum += of(trial)
		}
		out = append(out, sum/float64(len(trials)))
	}
	return out
}

func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stats.Mean(values)
}

func subtract(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] -= b[i]
	}
	return out
}

// interval is Student's interval of the mean over blocks, with the probability level of missing it. The standard deviation of a block is
// at least the resolution, because blocks that agree to the last sample do so by chance.
func interval(blocks []float64, level, resolution float64) Interval {
	center, n := mean(blocks), float64(len(blocks))
	if n < 2 {
		return Interval{center, math.Inf(-1), math.Inf(1)}
	}
	deviation := max(math.Sqrt(stats.Squares(blocks, center)/(n-1)), resolution)
	half := stats.StudentQuantile(1-level/2, n-1) * deviation / math.Sqrt(n)
	return Interval{center, center - half, center + half}
}

// ratio is the geometric mean of the blocks' ratios with its interval.
func ratio(candidate, baseline []float64, level float64) Interval {
	logs := make([]float64, len(candidate))
	for i := range logs {
		logs[i] = math.Log(max(candidate[i], math.SmallestNonzeroFloat64) / max(baseline[i], math.SmallestNonzeroFloat64))
	}
	in := interval(logs, level, 0)
	return Interval{math.Exp(in.Value), math.Exp(in.Low), math.Exp(in.High)}
}

// overhead is the time of the baseline under an instrument over its time without one, paired in blocks; nil without trials of both.
func overhead(question Question, instrument string, trials []Trial) *Interval {
	if instrument == question.Uninstrumented {
		return nil
	}
	times := map[string]map[int][]float64{instrument: {}, question.Uninstrumented: {}}
	for _, trial := range trials {
		if of := times[trial.Instrument]; of != nil && trial.Arm == question.Baseline && trial.Elapsed > 0 {
			of[trial.Block] = append(of[trial.Block], trial.Elapsed)
		}
	}
	var with, without []float64
	for _, block := range slices.Sorted(maps.Keys(times[instrument])) {
		if plain := times[question.Uninstrumented][block]; plain != nil {
			with, without = append(with, mean(times[instrument][block])), append(without, mean(plain))
		}
	}
	if len(with) < 2 {
		return nil
	}
	out := ratio(with, without, Level)
	return &out
}

// moreBlocks estimates how many further blocks make the interval of the unexplained part as narrow as EnoughExplained.
func moreBlocks(rest []float64, difference float64) int {
	n := len(rest)
	now := interval(rest, Level, 0)
	half, want := now.High-now.Value, EnoughExplained*math.Abs(difference)
	if half <= want || want == 0 {
		return 0
	}
	need := math.Ceil(float64(n) * (half / want) * (half / want))
	return int(min(need-float64(n), 1e6))
}

// counts compares the counts per operation of all trials that have them.
func counts(question Question, trials []Trial) []Count {
	type key struct {
		name string
		arm  string
	}
	sums := map[key]map[int][]float64{}
	names := map[string]bool{}
	for _, trial := range trials {
		for name, value := range trial.Counts {
			names[name] = true
			at := key{name, trial.Arm}
			if sums[at] == nil {
				sums[at] = map[int][]float64{}
			}
			sums[at][trial.Block] = append(sums[at][trial.Block], value)
		}
	}
	var out []Count
	for _, name := range slices.Sorted(maps.Keys(names)) {
		base, cand := sums[key{name, question.Baseline}], sums[key{name, question.Candidate}]
		var first, second []float64
		for _, block := range slices.Sorted(maps.Keys(base)) {
			if cand[block] != nil {
				first, second = append(first, mean(base[block])), append(second, mean(cand[block]))
			}
		}
		if len(first) < 2 {
			continue
		}
		out = append(out, Count{Name: name, Baseline: mean(first), Candidate: mean(second),
			Difference: interval(subtract(second, first), Level/float64(len(names)), 0)})
	}
	for i := range out {
		count := &out[i]
		size := max(math.Abs(count.Baseline), math.Abs(count.Candidate))
		count.Differs = count.Difference.Excludes(0) && math.Abs(count.Difference.Value) >= MinEffect*size
	}
	slices.SortStableFunc(out, func(a, b Count) int {
		return cmp.Or(-cmp.Compare(number(a.Differs), number(b.Differs)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
