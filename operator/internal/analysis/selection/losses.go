package selection

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Whatever takes trials of one arm and not of the other may have chosen which: what is left of it is then no fair sample, whoever
// is to blame. So everything that an arm lost is counted, whatever for, and compared with what the baseline lost.

// Losses counts what was lost, mostly trials, by how it was lost.
type Losses map[string]int

const (
	lostMissing = "missing"
	lostTimeout = "timed out"
	// What failed where it is not counted did fail: in an execution that does not count, or before what is measured.
	lostElsewhere = "failed in an execution that does not count"
	lostWarmup    = "failed in a warm-up"
	lostUnread    = "of no use in another execution"
	// besideOthers is said of what whole blocks lose, where it is a part of a block that lost it.
	besideOthers = ", unlike others of its block"
)

// howLost is how a trial was lost whose attempt was rejected, in a few words; empty if it was not.
func howLost(kind Rejection, attempt *record.Attempt) string {
	switch kind {
	case "":
		return ""
	case notStarted:
		return lostMissing
	case Failed:
		switch attempt.Outcome {
		case record.TimedOut:
			return lostTimeout
		case record.Malformed:
			return "malformed"
		}
		return "failed"
	case Unusable:
		return "unusable"
	default:
		return string(kind)
	}
}

// Total is how many trials were lost, however.
func (l Losses) Total() int {
	sum := 0
	for _, count := range l {
		sum += count
	}
	return sum
}

func (l Losses) String() string {
	var parts []string
	for _, how := range slices.Sorted(maps.Keys(l)) {
		if l[how] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", l[how], how))
		}
	}
	return strings.Join(parts, ", ")
}

// Spoilt is a measured trial that ran and of which the ledger holds nothing that may be used: what is there cannot be read, is of something
// else or was changed. Its program may have made it so, that nobody sees what it did.
type Spoilt struct {
	Cell              Cell
	Trial, block, how string
}

var trialName = regexp.MustCompile("^" + record.TrialForm + "$")

// Balance is what a cell lost of how many trials. Blocks that never ran are no loss of anybody; trials that noise took are judged
// by the noise limits.
type Balance struct {
	Of   int
	Lost Losses
	// Some are the names of the first that were lost.
	Some []string
}

// Add counts what another cell lost as well.
func (b *Balance) Add(other Balance) {
	b.Of += other.Of
	for how, count := range other.Lost {
		if b.Lost == nil {
			b.Lost = Losses{}
		}
		b.Lost[how] += count
	}
	b.Some = append(b.Some, other.Some...)
	slices.Sort(b.Some)
	b.Some = b.Some[:min(len(b.Some), shownTrials)]
}

// shownTrials is how many lost trials a warning names.
const shownTrials = 3

// Besides are the losses without those by timeout, for figures that know what to make of these.
func (b Balance) Besides(timeouts bool) int {
	lost := b.Lost.Total()
	if timeouts {
		lost -= b.Lost[lostTimeout]
	}
	return lost
}

// OfArm is what is left of the losses when those are taken out that whole blocks have, whatever their arms did: the trials of another
// environment, with which gates are judged as well, and those under a stale lease. Single trials of a block are left in.
func (b Balance) OfArm() Balance {
	out := Balance{Of: b.Of, Lost: maps.Clone(b.Lost), Some: b.Some}
	for _, how := range ofBlocks {
		out.Of -= out.Lost[how]
		delete(out.Lost, how)
	}
	return out
}

// LostOf is what an arm lost at all points; of no arm, -1, it is nothing. Every gate asks for it at each of them.
func (s *Selection) LostOf(arm int) Balance {
	if s.lostOf == nil {
		s.lostOf = map[int]Balance{}
		for c, lost := range s.Lost {
			all := s.lostOf[c.Arm]
			all.Add(lost)
			s.lostOf[c.Arm] = all
		}
	}
	return s.lostOf[arm]
}

// P is the p-value of a table, which takes as long as there are trials and is the same at all points.
func (s *Selection) P(table stats.Table) float64 {
	if s.p == nil {
		s.p = map[stats.Table]float64{}
	}
	p, known := s.p[table]
	if !known {
		p = table.P()
		s.p[table] = p
	}
	return p
}

// notCounting are the kinds of attempts of executions that do not count.
var notCounting = []Rejection{superseded, staleLease}

// ofBlocks is how whole blocks are lost.
var ofBlocks = []string{string(environment), string(staleLease)}

// trialFate is what became of a trial, in the order in which one attempt's replaces another's.
type trialFate struct {
	rank  int
	cell  Cell
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
func (s *Selection) count(exp *experiment.Experiment, planned plan, attempts []*record.Attempt, problems []record.Problem) {
	fates, warmups, ran := map[string]trialFate{}, map[string]bool{}, map[string]bool{}
	for name, slot := range planned.slots {
		if slot.warmup {
			warmups[name] = true
			continue
		}
		fates[name] = trialFate{fateMissing, slot.cell, slot.block, lostMissing}
	}
	raise := func(name string, to trialFate) {
		if have, ok := fates[name]; !ok || to.rank > have.rank {
			fates[name] = to
		}
	}
	spoilt, told, seen := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, attempt := range attempts {
		ran[attempt.Block], seen[attempt.Trial] = true, true
		c, belongs := s.Cells[attempt]
		kind := s.Kinds[attempt]
		told[attempt.Trial] = told[attempt.Trial] || belongs && slices.Contains(telling, kind)
		switch {
		case !belongs: // Below, when all is known that others say of the trial.
		case attempt.Warmup:
			warmups[attempt.Trial] = true
		case kind == "":
			raise(attempt.Trial, trialFate{fateUsed, c, attempt.Block, ""})
		case kind == Failed:
			raise(attempt.Trial, trialFate{fateFailed, c, attempt.Block, howLost(kind, attempt)})
		case kind == notStarted:
			raise(attempt.Trial, trialFate{fateMissing, c, attempt.Block, lostMissing})
		default:
			raise(attempt.Trial, trialFate{fateInvalid, c, attempt.Block, howLost(kind, attempt)})
		}
	}
	for _, one := range s.Unended {
		if !one.warmup && !one.Repeated {
			ran[one.block] = true
			raise(one.trial, trialFate{fateUnended, one.Cell, one.block, LostUnended})
		}
	}
	// ofNoUse counts a trial of which the ledger holds only something that may not be used.
	ofNoUse := func(name, key, how string) {
		if have, known := fates[name]; known {
			raise(name, trialFate{fateInvalid, have.cell, have.block, how})
			spoilt[name] = how
		} else if !planned.known && trialName.MatchString(name) {
			s.Gaps = append(s.Gaps, key) // Without a plan nobody knows whose it was.
		}
	}
	for _, attempt := range attempts {
		if _, belongs := s.Cells[attempt]; !belongs {
			ofNoUse(attempt.Trial, sourceOf(attempt).Key, howLost(s.Kinds[attempt], attempt))
		}
	}
	for _, problem := range problems {
		ran[path.Base(path.Dir(path.Dir(problem.Key)))] = true
		ofNoUse(strings.TrimSuffix(path.Base(problem.Key), ".json"), problem.Key, string(unreadable))
	}
	for _, gone := range s.gone {
		name := strings.TrimSuffix(path.Base(gone), ".json")
		if have, ok := fates[name]; ok && have.rank <= fateUnended {
			have.how = string(altered)
			fates[name], spoilt[name], ran[have.block] = have, have.how, true
		}
	}
	// absent counts a trial of which nothing else says what became of it, or it would count twice.
	absent := func(name string, f trialFate) {
		if !told[name] && spoilt[name] == "" {
			s.Absent = append(s.Absent, Spoilt{f.cell, name, f.block, f.how})
		}
	}
	// What takes a whole block does not choose among its trials. Where it took some of them, it may have been the slow ones.
	kept := map[string]bool{}
	for _, f := range fates {
		if f.rank >= fateInvalid && !slices.Contains(ofBlocks, f.how) {
			kept[f.block] = true
		}
	}
	for name, f := range fates {
		if f.how == string(superseded) {
			absent(name, f) // The execution that counts has nothing of it.
		}
		if f.rank == fateMissing && seen[name] && kept[f.block] {
			absent(name, f) // It says that it did not start, and others of its block did.
		}
		if !slices.Contains(ofBlocks, f.how) || !kept[f.block] {
			continue
		}
		if f.how == string(staleLease) {
			absent(name, f)
		}
		f.how += besideOthers
		fates[name] = f
	}
	for name, how := range spoilt {
		if f := fates[name]; !told[name] {
			s.Spoilt = append(s.Spoilt, Spoilt{f.cell, name, f.block, how})
		}
	}
	for name, slot := range planned.slots {
		if f := fates[name]; !slot.warmup && f.rank == fateMissing && ran[slot.block] && !seen[name] {
			absent(name, f)
		}
	}
	for _, list := range [][]Spoilt{s.Spoilt, s.Absent} {
		slices.SortFunc(list, func(a, b Spoilt) int { return record.CompareNames(a.Trial, b.Trial) })
	}

	if !planned.known {
		maps.Copy(fates, unplanned(exp, fates))
	}
	s.Trials.Planned, s.Trials.Warmups = len(fates)+len(warmups), len(warmups)
	lose := func(c Cell, what Balance) {
		all := s.Lost[c]
		all.Add(what)
		s.Lost[c] = all
	}
	for _, name := range slices.Sorted(maps.Keys(fates)) {
		f := fates[name]
		switch f.rank {
		case fateUsed:
			s.Trials.Used++
		case fateFailed:
			s.Trials.Failed++
		case fateInvalid:
			s.Trials.Invalid++
		case fateMissing, fateUnended:
			s.Trials.Missing++
		}
		one := Balance{Of: 1}
		if f.rank != fateUsed && f.how != string(Noisy) {
			one.Lost, one.Some = Losses{f.how: 1}, []string{name}
		}
		if ran[f.block] {
			lose(f.cell, one)
		}
	}
	alsoLost := func(c Cell, how, name string) { lose(c, Balance{Of: 1, Lost: Losses{how: 1}, Some: []string{name}}) }
	for _, one := range s.Unended {
		if one.warmup || one.Repeated {
			alsoLost(one.Cell, LostUnended, one.ID)
		}
	}
	// What cannot be read beside an execution that can may be the one that went badly.
	for name := range spoilt {
		if told[name] {
			alsoLost(fates[name].cell, lostUnread, name)
		}
	}
	// A program that fails a block's measured trials fails its warm-up for the same reason, which is counted there.
	measured := map[Cell]map[string]bool{}
	for attempt, kind := range s.Kinds {
		if kind == Failed {
			Inner(measured, s.Cells[attempt])[attempt.Block] = true
		}
	}
	// A trial that only such an execution has is counted above, and a block under a stale lease is nobody's loss.
	elsewhere := func(attempt *record.Attempt, kind Rejection) bool {
		return slices.Contains(notCounting, kind) && (kind != staleLease || kept[attempt.Block]) &&
			!strings.HasPrefix(fates[attempt.Trial].how, string(kind))
	}
	for _, attempt := range attempts {
		c, belongs := s.Cells[attempt]
		kind := s.Kinds[attempt]
		if !belongs || !trial.Started(attempt) || attempt.Outcome == record.Succeeded && !s.useless[attempt] {
			continue
		}
		switch {
		case attempt.Warmup && kind == "":
			if !measured[c][attempt.Block] {
				alsoLost(c, lostWarmup, attempt.Trial)
			}
		case !elsewhere(attempt, kind):
		case s.useless[attempt]:
			alsoLost(c, lostUnread, attempt.ID)
		default:
			alsoLost(c, lostElsewhere, attempt.ID)
		}
	}
}

// unplanned are the trials that are missing from a ledger without plans: every block is taken to have been meant to run every arm as
// often as the arm and block that ran most.
func unplanned(exp *experiment.Experiment, fates map[string]trialFate) map[string]trialFate {
	seen := map[string]map[Cell]int{}
	most := 0
	for _, f := range fates {
		in := Inner(seen, f.block)
		in[f.cell]++
		most = max(most, in[f.cell])
	}
	out := map[string]trialFate{}
	for block, cells := range seen {
		for point := range exp.Points {
			var there int
			for arm := range exp.Arms {
				there += cells[Cell{point, arm}]
			}
			if there == 0 && exp.Plan.Search != nil {
				continue // A block of a search tries some of the loads.
			}
			for arm := range exp.Arms {
				for n := cells[Cell{point, arm}]; n < most; n++ {
					name := fmt.Sprintf("%s, %s at %s, trial %d", block, exp.Arms[arm].Name, analysis.PointName(exp.Points[point].Key), n+1)
					out[name] = trialFate{fateMissing, Cell{point, arm}, block, lostMissing}
				}
			}
		}
	}
	return out
}

func (b Balance) String() string {
	text := fmt.Sprintf("%d of %d trials", b.Lost.Total(), b.Of)
	if len(b.Lost) > 0 {
		text += fmt.Sprintf(" (%s)", b.Lost)
	}
	return text
}
