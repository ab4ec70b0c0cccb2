package suite

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// looks are the numbers of blocks at which a member is judged. They are fixed, so that looking again does not make a false difference more
// likely: each look has an equal share of the error rate, and no sum over the looks exceeds it, whatever decides when to stop. They are
// even, because the second of two blocks runs the order of the first one backwards.
var looks = []int{6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}

// FirstLook is the number of blocks that every member has, unless it fails.
func FirstLook() int { return looks[0] }

// waveShare is the part of the remaining time that one wave takes at most, if more than one member needs blocks. The later ones are planned
// with what it found.
const waveShare = 0.25

// Outcome is the result of one member.
type Outcome string

// Outcomes of members, at the error rate of the whole suite. NoDifference means that none was found; the interval of the member has the
// differences that remain possible.
const (
	Slower       Outcome = "Slower"
	Faster       Outcome = "Faster"
	NoDifference Outcome = "NoDifference"
	Failed       Outcome = "Failed"
)

// state is the course of one member.
type state struct {
	// blocks are those that ran, and judged those at the last look.
	blocks, judged int
	// p is the smallest p-value of all looks, times their number.
	p      float64
	found  *contrast.Contrast
	doubt  string
	failed string
	// failedIn has the arms with a failed trial.
	failedIn map[string]bool
	// needs are the further blocks that would decide the member if its estimate were true.
	needs float64
}

// Course is a suite while it is measured: it plans the waves, and judges the members after each of them.
type Course struct {
	exp *experiment.Experiment
	// rate is the family-wise error rate.
	rate    float64
	members []state
	// result is the newest analysis, of the members that did not fail.
	result *analysis.Analysis
	// waves are those of its evidence.
	waves []record.Wave
}

// NewCourse begins the course of a suite's experiment at a family-wise error rate.
func NewCourse(exp *experiment.Experiment, rate float64) *Course {
	out := &Course{exp: exp, rate: rate, members: make([]state, len(exp.Points))}
	for i := range out.members {
		out.members[i].p, out.members[i].failedIn = 1, map[string]bool{}
	}
	return out
}

// quantity is the figure of a member that is judged.
func (c *Course) quantity(member int) contrast.Quantity {
	metric := c.exp.Metrics()[0]
	return contrast.Quantity{Point: c.exp.Points[member].Key, Metric: metric.Name, Statistic: metric.Statistic}
}

// Observe judges the members by an analysis of all waves so far and its evidence.
func (c *Course) Observe(result *analysis.Analysis, evidence *record.Evidence) {
	ran := blocksOf(c.exp, evidence.Waves)
	c.observeFailures(evidence.Attempts)
	c.result, c.waves = c.withoutFailed(result, evidence), evidence.Waves
	for i := range c.members {
		m := &c.members[i]
		if m.blocks = ran[i]; m.failed == "" && m.blocks > m.judged {
			c.look(m, c.result, c.quantity(i))
		}
	}
}

// withoutFailed returns the analysis of the members of which no trial failed. An arm that fails somewhere is doubted everywhere, which is
// right for one program and wrong for benchmarks that have nothing to do with each other.
func (c *Course) withoutFailed(result *analysis.Analysis, evidence *record.Evidence) *analysis.Analysis {
	kept := *c.exp
	kept.Points, kept.Cells = nil, nil
	at := make([]int, len(c.exp.Points))
	keys := map[string]bool{}
	for i := range c.members {
		if at[i] = len(kept.Points); c.members[i].failed == "" {
			kept.Points, keys[c.exp.Points[i].Key] = append(kept.Points, c.exp.Points[i]), true
		}
	}
	if len(kept.Points) == 0 || len(kept.Points) == len(c.exp.Points) {
		return result
	}
	for _, cell := range c.exp.Cells {
		if c.members[cell.Point].failed == "" {
			cell.Point = at[cell.Point]
			kept.Cells = append(kept.Cells, cell)
		}
	}
	rest := *evidence
	rest.Attempts = nil
	for i := range evidence.Attempts {
		if keys[evidence.Attempts[i].Point] {
			rest.Attempts = append(rest.Attempts, evidence.Attempts[i])
		}
	}
	rest.Unfinished = slices.DeleteFunc(slices.Clone(evidence.Unfinished), func(one record.Started) bool { return !keys[one.Point] })
	rest.Sealed = nil // It lists the attempts that are left out here.
	return analyze.Evidence(&kept, rest, result.Wave)
}

// observeFailures finds members of which a trial gave no result. The others of the same blocks are not concerned.
func (c *Course) observeFailures(attempts []record.Attempt) {
	points := map[string]int{}
	for i := range c.exp.Points {
		points[c.exp.Points[i].Key] = i
	}
	for i := range attempts {
		attempt := &attempts[i]
		at, known := points[attempt.Point]
		if !known || attempt.Outcome == record.Succeeded {
			continue
		}
		m := &c.members[at]
		m.failedIn[attempt.Arm] = true
		if m.failed == "" {
			m.failed = fmt.Sprintf("a trial of %s %s: %s", attempt.Arm, describe(attempt.Outcome), cmp.Or(attempt.Message, "no message"))
		}
	}
}

// describe is an outcome of a trial in a sentence.
func describe(outcome record.Outcome) string {
	switch outcome {
	case record.TimedOut:
		return "timed out"
	case record.Malformed:
		return "has no readable result"
	case record.NotStarted:
		return "did not start"
	default:
		return "failed"
	}
}

// look judges a member at its number of blocks.
func (c *Course) look(m *state, result *analysis.Analysis, of contrast.Quantity) {
	m.judged, m.found, m.doubt, m.needs = m.blocks, nil, "", math.Inf(1)
	found, err := contrast.Of(result, c.exp, of, []string{New}, []string{Old})
	if err != nil {
		m.doubt = err.Error()
		return
	}
	m.found = &found
	if m.doubt = contrast.LeftOut(result, c.exp, of, []string{New}, []string{Old}, found); m.doubt != "" {
		return
	}
	p := 2 * stats.DistanceTail(math.Abs(found.LogRatio), found.SE, found.DF)
	m.p = min(m.p, p*float64(len(looks)))
	m.needs = c.needs(found)
}

// needs returns the further blocks up to the look that would decide a member whose estimate and spread are the truth. Beyond the last look
// they are those of an interval that narrows with the root of the blocks.
func (c *Course) needs(found contrast.Contrast) float64 {
	spread, lost := found.SE*math.Sqrt(float64(found.Blocks)), float64(found.Blocks)-found.DF
	distance, last := math.Abs(found.LogRatio), math.Inf(1)
	for _, blocks := range looks {
		df := float64(blocks) - lost
		if blocks <= found.Blocks || df < 1 {
			continue
		}
		reach := stats.StudentQuantile(1-c.level()/2, df) * spread / math.Sqrt(float64(blocks))
		if reach < distance {
			return float64(blocks - found.Blocks)
		}
		last = float64(blocks) * (reach / distance) * (reach / distance)
	}
	return last
}

// level is the error rate of one look at one member that no other result has relaxed: the widest of all intervals.
func (c *Course) level() float64 { return c.rate / float64(len(c.members)*len(looks)) }

// interval is that of a member at the level of one look, as logarithms.
func (c *Course) interval(found *contrast.Contrast) (low, high float64) {
	reach := stats.StudentQuantile(1-c.level()/2, found.DF) * found.SE
	return found.LogRatio - reach, found.LogRatio + reach
}

// differs returns the members with a difference, by Holm's procedure over the p-values of all members (Holm 1979). The p-value of a member
// can only fall with further looks, so that a difference once found remains one.
func (c *Course) differs() []bool {
	out := make([]bool, len(c.members))
	order := make([]int, len(c.members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.members[a].p, c.members[b].p) })
	for step, i := range order {
		if c.members[i].p > c.rate/float64(len(order)-step) {
			break
		}
		out[i] = true
	}
	return out
}

// candidate is a member that further blocks may decide, with the blocks up to its next look.
type candidate struct{ member, next int }

// Next returns the next step of the suite: blocks for the members that the fewest blocks would decide, if their estimates are true. Room is
// the number of blocks of one member for which there is time. Done is true where all members are decided, or none has room for its next
// look. To stop earlier or later never makes a false difference more likely, because the looks are fixed.
func (c *Course) Next(room int) design.Step {
	if !slices.ContainsFunc(c.members, func(m state) bool { return m.blocks > 0 }) {
		return c.step(c.all(looks[0]), "every benchmark")
	}
	undecided := c.undecided()
	if len(undecided) == 0 {
		return design.Step{Done: true}
	}
	limit := max(int(waveShare*float64(room)), undecided[0].next)
	chosen, taken := map[int]int{}, 0
	for _, one := range undecided {
		if taken+one.next > min(limit, room) {
			break
		}
		chosen[one.member], taken = one.next, taken+one.next
	}
	if len(chosen) == 0 {
		return design.Step{Done: true, Why: fmt.Sprintf("no difference of %s was found within the budget",
			quantity.Count(len(undecided), "benchmark"))}
	}
	return c.step(chosen, fmt.Sprintf("%d of %s without a difference yet", len(chosen), quantity.Count(len(undecided), "benchmark")))
}

// Further returns blocks up to the next look for every undecided member, whether they are expected to decide it or not. Done is true where
// all are decided or have had their last look.
func (c *Course) Further() design.Step {
	blocks := map[int]int{}
	for _, one := range c.undecided() {
		blocks[one.member] = one.next
	}
	if len(blocks) == 0 {
		return design.Step{Done: true}
	}
	return c.step(blocks, "every undecided benchmark")
}

// undecided returns the members that further looks may decide, those that the fewest blocks would decide first.
func (c *Course) undecided() []candidate {
	var out []candidate
	for i, differs := range c.differs() {
		m := &c.members[i]
		at := slices.IndexFunc(looks, func(blocks int) bool { return blocks > m.blocks })
		if differs || m.failed != "" || at < 0 {
			continue
		}
		out = append(out, candidate{i, looks[at] - m.blocks})
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(c.members[a.member].needs, c.members[b.member].needs) })
	return out
}

// all is a number of blocks for every member.
func (c *Course) all(blocks int) map[int]int {
	out := map[int]int{}
	for i := range c.members {
		out[i] = blocks
	}
	return out
}

// step is a step with a number of blocks for some members.
func (c *Course) step(blocks map[int]int, why string) design.Step {
	out := design.Step{Purpose: record.Screen, Cells: map[int]int{}, Why: why}
	for i, cell := range c.exp.Cells {
		if of := blocks[cell.Point]; of > 0 {
			out.Cells[i], out.Blocks = of, max(out.Blocks, of)
		}
	}
	return out
}

// blocksOf counts the planned blocks of each member.
func blocksOf(exp *experiment.Experiment, waves []record.Wave) []int {
	points := map[string]int{}
	for i := range exp.Points {
		points[exp.Points[i].Key] = i
	}
	out := make([]int, len(exp.Points))
	for w := range waves {
		for _, block := range waves[w].Blocks {
			for _, at := range membersOf(&waves[w], block, points) {
				out[at]++
			}
		}
	}
	return out
}

// membersOf returns the members of a block.
func membersOf(wave *record.Wave, block record.Block, points map[string]int) []int {
	var out []int
	for _, cell := range block.Order {
		if at := points[wave.Points[wave.Cells[cell].Point].Key]; len(out) == 0 || out[len(out)-1] != at {
			out = append(out, at)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}

// CheckBudget returns an error if the first look does not fit into the budget behind the pilot block of all members.
func CheckBudget(members int, budget, block time.Duration) error {
	if time.Duration(looks[0]+1)*block <= budget {
		return nil
	}
	return fmt.Errorf("--budget %s is too short: a block of %s took %s, and each has %d blocks after the first: give --budget %s, or choose "+
		"benchmarks with --filter", budget, quantity.Count(members, "benchmark"), quantity.Duration(block, time.Millisecond), looks[0],
		quantity.Seconds(bench.Enough(block)))
}

// Size is the number of blocks of one member in waves: the unit in which a suite counts its time.
func Size(exp *experiment.Experiment, waves []record.Wave) int {
	total := 0
	for _, blocks := range blocksOf(exp, waves) {
		total += blocks
	}
	return total
}

// Follow executes the waves that plan returns until it is done. Unlike the Follow of a course, its steps have blocks for some members only.
func Follow(course *design.Course, lanes []design.Lane, plan func() design.Step, execute design.Execute) (design.Step, error) {
	for {
		step := plan()
		if step.Done {
			return step, nil
		}
		wave, err := course.Lay(step, lanes, nil)
		if err != nil {
			return step, err
		}
		course.Waves = append(course.Waves, *wave)
		var stopped bool
		if course.Found, stopped, err = execute(wave, step.Why); err != nil || stopped {
			return step, err
		}
	}
}
