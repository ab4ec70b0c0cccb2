package analysis

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Whatever takes trials of one arm and not of the other may have chosen which: what is left of it is then no fair sample, whoever
// is to blame. So everything that an arm lost is counted, whatever for, and compared with what the baseline lost.

// losses counts lost trials by how they were lost.
type losses map[string]int

const (
	lostMissing = "missing"
	lostTimeout = "timed out"
)

// howLost is how a trial was lost whose attempt was rejected, in a few words; empty if it was not.
func howLost(kind rejection, attempt *record.Attempt) string {
	switch kind {
	case "":
		return ""
	case notStarted:
		return lostMissing
	case failed:
		switch attempt.Outcome {
		case record.TimedOut:
			return lostTimeout
		case record.Malformed:
			return "malformed"
		}
		return "failed"
	case unusable:
		return "unusable"
	default:
		return string(kind)
	}
}

func (l losses) total() int {
	sum := 0
	for _, count := range l {
		sum += count
	}
	return sum
}

func (l losses) String() string {
	var parts []string
	for _, how := range slices.Sorted(maps.Keys(l)) {
		if l[how] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", l[how], how))
		}
	}
	return strings.Join(parts, ", ")
}

// balance is what a cell lost of how many trials. Blocks that never ran are no loss of anybody; trials that noise took are judged
// by the noise limits.
type balance struct {
	of   int
	lost losses
	// some are the names of the first that were lost.
	some []string
}

func (b *balance) add(other balance) {
	b.of += other.of
	for how, count := range other.lost {
		if b.lost == nil {
			b.lost = losses{}
		}
		b.lost[how] += count
	}
	b.some = append(b.some, other.some...)
	slices.Sort(b.some)
	b.some = b.some[:min(len(b.some), shownTrials)]
}

// shownTrials is how many lost trials a warning names.
const shownTrials = 3

// besides are the losses without those by timeout, for figures that know what to make of these.
func (b balance) besides(timeouts bool) int {
	lost := b.lost.total()
	if timeouts {
		lost -= b.lost[lostTimeout]
	}
	return lost
}

// trialFate is what became of a trial, in the order in which one attempt's replaces another's.
type trialFate struct {
	rank  int
	cell  cell
	block string
	how   string
}

const (
	fateMissing = iota
	fateUnended
	fateInvalid
	fateFailed
	fateUsed
)

// count counts what became of every trial, planned or seen. Each ends in exactly one of the counts.
func (s *selection) count(exp *experiment.Experiment, planned plan, attempts []*record.Attempt, problems []record.Problem) {
	fates, warmups, ran := map[string]trialFate{}, map[string]bool{}, map[string]bool{}
	for trial, slot := range planned.slots {
		if slot.warmup {
			warmups[trial] = true
			continue
		}
		fates[trial] = trialFate{fateMissing, slot.cell, slot.block, lostMissing}
	}
	raise := func(trial string, to trialFate) {
		if have, ok := fates[trial]; !ok || to.rank > have.rank {
			fates[trial] = to
		}
	}
	// spoil counts a trial of which the ledger holds only something that may not be used.
	spoil := func(trial, how string) {
		if have, ok := fates[trial]; ok {
			raise(trial, trialFate{fateInvalid, have.cell, have.block, how})
		}
	}
	for _, attempt := range attempts {
		ran[attempt.Block] = true
		c, belongs := s.cells[attempt]
		kind := s.kinds[attempt]
		switch {
		case !belongs:
			spoil(attempt.Trial, howLost(kind, attempt))
		case attempt.Warmup:
			warmups[attempt.Trial] = true
		case kind == "":
			raise(attempt.Trial, trialFate{fateUsed, c, attempt.Block, ""})
		case kind == failed:
			raise(attempt.Trial, trialFate{fateFailed, c, attempt.Block, howLost(kind, attempt)})
		case kind == notStarted:
			raise(attempt.Trial, trialFate{fateMissing, c, attempt.Block, lostMissing})
		default:
			raise(attempt.Trial, trialFate{fateInvalid, c, attempt.Block, howLost(kind, attempt)})
		}
	}
	for _, one := range s.unended {
		if !one.warmup && !one.repeated {
			ran[one.block] = true
			raise(one.trial, trialFate{fateUnended, one.cell, one.block, lostUnended})
		}
	}
	for _, problem := range problems {
		ran[path.Base(path.Dir(path.Dir(problem.Key)))] = true
		spoil(strings.TrimSuffix(path.Base(problem.Key), ".json"), string(unreadable))
	}

	if !planned.known {
		maps.Copy(fates, unplanned(exp, fates))
	}
	s.trials.Planned, s.trials.Warmups = len(fates)+len(warmups), len(warmups)
	for _, trial := range slices.Sorted(maps.Keys(fates)) {
		f := fates[trial]
		switch f.rank {
		case fateUsed:
			s.trials.Used++
		case fateFailed:
			s.trials.Failed++
		case fateInvalid:
			s.trials.Invalid++
		case fateMissing, fateUnended:
			s.trials.Missing++
		}
		one := balance{of: 1}
		if f.rank != fateUsed && f.how != string(noisy) {
			one.lost, one.some = losses{f.how: 1}, []string{trial}
		}
		if ran[f.block] {
			all := s.lost[f.cell]
			all.add(one)
			s.lost[f.cell] = all
		}
	}
	for _, one := range s.unended {
		if !one.warmup && one.repeated {
			all := s.lost[one.cell]
			all.add(balance{of: 1, lost: losses{lostUnended: 1}, some: []string{one.id}})
			s.lost[one.cell] = all
		}
	}
}

// unplanned are the trials that are missing from a ledger without plans: every block is taken to have been meant to run every arm as
// often as the arm and block that ran most.
func unplanned(exp *experiment.Experiment, fates map[string]trialFate) map[string]trialFate {
	seen := map[string]map[cell]int{}
	most := 0
	for _, f := range fates {
		if seen[f.block] == nil {
			seen[f.block] = map[cell]int{}
		}
		seen[f.block][f.cell]++
		most = max(most, seen[f.block][f.cell])
	}
	out := map[string]trialFate{}
	for block, cells := range seen {
		for point := range exp.Points {
			var there int
			for arm := range exp.Arms {
				there += cells[cell{point, arm}]
			}
			if there == 0 && exp.Plan.Search != nil {
				continue // A block of a search tries some of the loads.
			}
			for arm := range exp.Arms {
				for n := cells[cell{point, arm}]; n < most; n++ {
					name := fmt.Sprintf("%s, %s at %s, trial %d", block, exp.Arms[arm].Name, PointName(exp.Points[point].Key), n+1)
					out[name] = trialFate{fateMissing, cell{point, arm}, block, lostMissing}
				}
			}
		}
	}
	return out
}

// lossLevel is how surprising it must be that two arms lost so differently before a candidate's gates are doubted. It is no part of
// any verdict's level: a false alarm costs a decision, and a difference overlooked may turn one, so that it is far above a gate's.
// It is shared among the points at which a candidate is judged and all of them together.
const lossLevel = 0.05

// lostApart describes how a candidate and the baseline lost trials so differently that what is left cannot be compared.
func lostApart(d *data, _ *judgement, gate *GateResult) string {
	baseline, arm := d.exp.Baseline(), armIndex(d.exp, gate.Candidate)
	if baseline < 0 {
		return ""
	}
	// The gate's own point, and all points together: a little everywhere may be as telling.
	here, everywhere := [2]balance{}, [2]balance{}
	for point := range d.exp.Points {
		for side, a := range []int{arm, baseline} {
			everywhere[side].add(d.chosen.lost[cell{point, a}])
			if d.exp.Points[point].Key == gate.Point {
				here[side].add(d.chosen.lost[cell{point, a}])
			}
		}
	}
	// Timeouts are in the figures of what they censor.
	higher, lower := d.censors(gate.Metric)
	places, pairs, levels := []string{"at " + PointName(gate.Point)}, [][2]balance{here}, []float64{lossLevel}
	if points := len(d.exp.Points); points > 1 {
		places, pairs = append(places, "at all points"), append(pairs, everywhere)
		levels = []float64{lossLevel / 2 / float64(points), lossLevel / 2}
	}
	for i, pair := range pairs {
		if p := fisher(pair[0].besides(higher || lower), pair[0].of, pair[1].besides(higher || lower), pair[1].of); p <= levels[i] {
			return fmt.Sprintf("%s arm %s lost %s, and the baseline %s (Fisher's exact test: p = %.2g): what is left of the two may not be alike",
				places[i], gate.Candidate, pair[0], pair[1], p)
		}
	}
	return ""
}

func (b balance) String() string {
	text := fmt.Sprintf("%d of %d trials", b.lost.total(), b.of)
	if len(b.lost) > 0 {
		text += fmt.Sprintf(" (%s)", b.lost)
	}
	return text
}

// lossWarnings name the arms that did not always give a result: what is left may be the easier half.
func lossWarnings(d *data) []string {
	var out []string
	for arm := range d.exp.Arms {
		all, timeouts := balance{}, 0
		for point := range d.exp.Points {
			all.add(d.chosen.lost[cell{point, arm}])
			for _, seconds := range d.timedOut[cell{point, arm}] {
				timeouts += len(seconds)
			}
		}
		if all.lost.total() == 0 {
			continue
		}
		more := ""
		if all.lost.total() > len(all.some) {
			more = ", …"
		}
		text := fmt.Sprintf("arm %s lost %s, first %s%s; its figures rest on the others", d.exp.Arms[arm].Name, all,
			strings.Join(all.some, "; "), more)
		if timeouts > 0 {
			text += fmt.Sprintf(", and times and rates also on the %d that timed out, taken at the bound", timeouts)
		}
		out = append(out, text)
	}
	return out
}
