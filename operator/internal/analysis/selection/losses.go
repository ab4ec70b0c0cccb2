package selection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/record"
)

// A cause that removes trials of one arm and not of the other may have selected which, so that the remaining ones are no fair sample, be it
// caused on purpose or not. So every loss of an arm is counted, with any cause, and compared with the losses of the baseline.

// Losses counts losses, mostly of trials, by their names.
type Losses map[string]int

const (
	lostMissing = "missing"
	lostTimeout = "timed out"
	// Failures that the program, its command or its output cause.
	lostFailed    = "failed"
	lostMalformed = "malformed"
	lostUnusable  = "unusable"
	// A failure in an execution that does not count, or before the measured trials, is a failure too.
	lostElsewhere = "failed in an execution that does not count"
	lostWarmup    = "failed in a warm-up"
	lostUnread    = "of no use in another execution"
	// besideOthers is appended to a loss of whole blocks if only a part of a block has it.
	besideOthers = ", unlike others of its block"
)

// howLost names the loss of a trial by a rejected attempt; empty if the attempt is not rejected.
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
			return lostMalformed
		default:
			return lostFailed
		}
	case Unusable:
		return lostUnusable
	default:
		return string(kind)
	}
}

// Total is the number of losses of all names.
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

// Balance holds the trials of a cell and its losses. Blocks that never ran are no losses, and trials that noise limits reject are judged by
// the noise limits.
type Balance struct {
	Of   int
	Lost Losses
	// Some are the names of the first lost trials.
	Some []string
}

// shownTrials limits the lost trials that a warning names.
const shownTrials = 3

// Add adds the trials and losses of another balance.
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

// Besides is the number of losses, without timeouts if these are censored values of the figure.
func (b Balance) Besides(timeouts bool) int {
	lost := b.Lost.Total()
	if timeouts {
		lost -= b.Lost[lostTimeout]
	}
	return lost
}

// OfArm returns the balance without the losses of whole blocks, which no arm causes: trials of another environment, with which gates are
// judged as well, and trials under a stale lease. Losses of a part of a block remain.
func (b Balance) OfArm() Balance {
	out := Balance{Of: b.Of, Lost: maps.Clone(b.Lost), Some: b.Some}
	for _, how := range lostWithBlocks {
		out.Of -= out.Lost[how]
		delete(out.Lost, how)
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

// lostWithBlocks are the losses of whole blocks.
var lostWithBlocks = []string{string(environment), string(staleLease)}

// Lost holds the balances by cell, and by arm over all points.
type Lost struct {
	Cells map[Cell]Balance
	arms  map[int]Balance
	// p caches p-values: computing one takes as long as there are trials, and every gate asks for the same ones at every point.
	p map[stats.Table]float64
}

// NewLost sums the balances of the cells by arm.
func NewLost(cells map[Cell]Balance) Lost {
	arms := map[int]Balance{}
	for c, lost := range cells {
		all := arms[c.Arm]
		all.Add(lost)
		arms[c.Arm] = all
	}
	return Lost{cells, arms, map[stats.Table]float64{}}
}

// OfArm returns the balance of an arm over all points; an empty one for an arm that does not exist, such as -1.
func (l Lost) OfArm(arm int) Balance { return l.arms[arm] }

// P returns the p-value of a table of losses. It is not safe for concurrent use.
func (l Lost) P(table stats.Table) float64 {
	p, known := l.p[table]
	if !known {
		p = table.P()
		if l.p != nil {
			l.p[table] = p
		}
	}
	return p
}

// loss is one loss of a cell. Its trial counts in addition to the measured trials.
type loss struct {
	cell      Cell
	how, name string
}

// sumLosses returns the balances of the cells: their measured trials in blocks that ran, and the further losses.
func sumLosses(trials fates, further []loss) Lost {
	cells := map[Cell]Balance{}
	add := func(c Cell, what Balance) {
		all := cells[c]
		all.Add(what)
		cells[c] = all
	}
	for _, found := range trials.trials {
		if !trials.ran[found.block] {
			continue
		}
		one := Balance{Of: 1}
		if found.state != used && found.how != string(Noisy) {
			one.Lost, one.Some = Losses{found.how: 1}, []string{found.trial}
		}
		add(found.cell, one)
	}
	for _, one := range further {
		add(one.cell, Balance{Of: 1, Lost: Losses{one.how: 1}, Some: []string{one.name}})
	}
	return NewLost(cells)
}

// unfinishedLosses are the unfinished warm-ups, and the unfinished executions of trials that have another one.
func unfinishedLosses(unfinished []Unfinished) (out []loss) {
	for _, one := range unfinished {
		if !one.countsOnce() {
			out = append(out, loss{one.Cell, LostUnfinished, one.ID})
		}
	}
	return out
}

// uselessLosses are the trials with a known outcome and a useless object: that may be the object of an execution that went badly.
func uselessLosses(trials fates) (out []loss) {
	for _, found := range trials.trials {
		if found.useless != "" && found.known {
			out = append(out, loss{found.cell, lostUnread, found.trial})
		}
	}
	return out
}

// warmupLosses are the failed warm-ups of blocks without a failed trial of the same cell: a program that fails the measured trials of a
// block fails its warm-up for the same reason.
func warmupLosses(of Admission) (out []loss) {
	measured := map[Cell]map[string]bool{}
	for attempt, kind := range of.Kinds {
		if kind == Failed {
			Inner(measured, of.Cells[attempt])[attempt.Block] = true
		}
	}
	for _, attempt := range of.Own {
		c := of.Cells[attempt]
		failed := trial.Started(attempt) && attempt.Outcome != record.Succeeded
		if attempt.Warmup && failed && of.Kinds[attempt] == "" && !measured[c][attempt.Block] {
			out = append(out, loss{c, lostWarmup, attempt.Trial})
		}
	}
	return out
}

// executionLosses are the attempts of executions that do not count which failed, or would be unusable in one that counts. A trial that only
// such an execution has is lost with it already, and no arm loses a block under a stale lease.
func executionLosses(of Admission, trials fates, useless map[*record.Attempt]bool) (out []loss) {
	for _, attempt := range of.Own {
		kind := of.Kinds[attempt]
		counted := kind != superseded && (kind != staleLease || !trials.partial[attempt.Block])
		if !counted {
			found, _ := trials.find(attempt.Trial)
			counted = strings.HasPrefix(found.how, string(kind))
		}
		switch {
		case counted || !trial.Started(attempt):
		case useless[attempt]:
			out = append(out, loss{of.Cells[attempt], lostUnread, attempt.ID})
		case attempt.Outcome != record.Succeeded:
			out = append(out, loss{of.Cells[attempt], lostElsewhere, attempt.ID})
		}
	}
	return out
}
