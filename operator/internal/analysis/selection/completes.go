package selection

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// Completion counts the measured trials of a cell in blocks that ran: how many gave a usable result, and how the others failed. A trial
// that noise or its environment disturbed completed. The trials of a block of which nothing started are not counted.
type Completion struct {
	Of, Done int
	Failures Losses
	// Unknown counts the trials with an unknown outcome, Unseen is the first of them, and How names its loss.
	Unknown     int
	Unseen, How string
	Blocks      map[string]bool
	// First is the first attempt that failed, and Why is the reason in a few words.
	First *record.Attempt
	Why   string
}

// telling are the kinds of attempts that report the outcome of their trial.
var telling = []Rejection{"", Noisy, environment, Failed, Unusable}

// Ran returns, by cell, the blocks in which an attempt reports the outcome of a measured trial. It reads the blocks that in selects; all
// blocks if in is nil.
func (s *Selection) Ran(in func(block string) bool) map[Cell]map[string]bool {
	out := map[Cell]map[string]bool{}
	for attempt, c := range s.Cells {
		if s.reportsOutcome(attempt, in) {
			Inner(out, c)[attempt.Block] = true
		}
	}
	return out
}

// reportsOutcome reports whether an attempt reports the outcome of a measured trial of a selected block.
func (s *Selection) reportsOutcome(attempt *record.Attempt, in func(block string) bool) bool {
	return !attempt.Warmup && (in == nil || in(attempt.Block)) && slices.Contains(telling, s.Kinds[attempt])
}

// Completions counts the trials of the blocks that in selects; of all blocks if in is nil.
func (s *Selection) Completions(in func(block string) bool) map[Cell]*Completion {
	out := map[Cell]*Completion{}
	at := func(c Cell, block string) *Completion {
		if out[c] == nil {
			out[c] = &Completion{Failures: Losses{}, Blocks: map[string]bool{}}
		}
		out[c].Of++
		out[c].Blocks[block] = true
		return out[c]
	}
	for attempt, c := range s.Cells {
		if !s.reportsOutcome(attempt, in) {
			continue
		}
		if of, kind := at(c, attempt.Block), s.Kinds[attempt]; kind == Failed || kind == Unusable {
			of.fail(attempt, howLost(kind, attempt))
		} else {
			of.Done++
		}
	}
	for _, of := range out {
		if of.First != nil {
			of.Why = s.whyFailed(of.First)
		}
	}
	invalidated := map[string]bool{}
	for _, found := range s.fates {
		invalidated[found.trial] = found.invalidated()
		if how := found.unknownAs(); how != "" && (in == nil || in(found.block)) {
			at(found.cell, found.block).addUnknown(found.trial, how)
		}
	}
	for _, one := range s.Unfinished {
		if one.countsOnce() && !invalidated[one.trial] && (in == nil || in(one.block)) {
			at(one.Cell, one.block).addUnknown(one.trial, LostUnfinished)
		}
	}
	return out
}

// NeverCompletes reports whether a repetition would not give a usable result: no trial has one, and more than half of the trials failed for
// reasons other than their timeout, which depends on the speed of the machine.
func (c *Completion) NeverCompletes() bool {
	lasting := 0
	for how, count := range c.Failures {
		if slices.Contains(lastingFailures, how) {
			lasting += count
		}
	}
	return c.Done == 0 && 2*lasting > c.Of && c.First != nil
}

// lastingFailures are the failures of a trial that its program, its command or its output cause.
var lastingFailures = []string{lostFailed, lostMalformed, lostUnusable}

// Cause describes the first failure in the words of its attempt, quoted because the program may choose them.
func (c *Completion) Cause() string {
	return record.Quote(cmp.Or(c.First.Message, c.Why), longestCause)
}

// longestCause limits a program's error message.
const longestCause = 300

// fail counts a failed attempt.
func (c *Completion) fail(attempt *record.Attempt, how string) {
	c.Failures[how]++
	if c.First == nil || attempt.Trial < c.First.Trial {
		c.First = attempt
	}
}

// addUnknown counts a trial with an unknown outcome.
func (c *Completion) addUnknown(trial, how string) {
	c.Unknown++
	c.Failures[how]++
	if c.Unseen == "" || trial < c.Unseen {
		c.Unseen, c.How = trial, how
	}
}

// whyFailed describes the failure of a failed or unusable attempt in a few words.
func (s *Selection) whyFailed(attempt *record.Attempt) string {
	if kind := s.Kinds[attempt]; kind != Unusable {
		return howLost(kind, attempt)
	}
	return s.Rejected[slices.IndexFunc(s.Rejected, func(one Exclusion) bool { return one.of == attempt })].Reason
}

// unknownAs names the loss of a trial that the ledger has no usable object of; empty if it has one or if the trial is unfinished.
func (f fate) unknownAs() string {
	if f.invalidated() {
		return f.useless
	}
	return f.absent
}

// Add adds the trials of another completion, of which the first failed and the first unknown trial remain the first ones; nil adds nothing.
func (c *Completion) Add(other *Completion) {
	if other == nil {
		return
	}
	c.Of += other.Of
	c.Done += other.Done
	c.Unknown += other.Unknown
	if c.Unseen == "" || other.Unseen != "" && other.Unseen < c.Unseen {
		c.Unseen, c.How = other.Unseen, other.How
	}
	for how, count := range other.Failures {
		c.Failures[how] += count
	}
	for block := range other.Blocks {
		c.Blocks[block] = true
	}
	if other.First != nil && (c.First == nil || other.First.Trial < c.First.Trial) {
		c.First, c.Why = other.First, other.Why
	}
}
