package selection

import (
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// Completion is what became of the measured trials of a cell that ran: how many gave a usable result, and how the others failed.
// A trial that noise or its environment disturbed completed; one of a block of which nothing started was not measured.
type Completion struct {
	Of, Done int
	Failures Losses
	// Unknown are those of which nobody knows how they ended, unseen is the first of them, and how is what became of it.
	Unknown     int
	Unseen, How string
	Blocks      map[string]bool
	// First is the first attempt that failed, and why is its reason in a few words.
	First *record.Attempt
	Why   string
}

// telling are the kinds of attempts that say what became of their trial.
var telling = []Rejection{"", Noisy, environment, Failed, Unusable}

// Ran are the blocks of every cell in which a measured trial told something, whether it counts or not: of the blocks that in says; of all
// blocks if in is nil.
func (s *Selection) Ran(in func(block string) bool) map[Cell]map[string]bool {
	out := map[Cell]map[string]bool{}
	for attempt, c := range s.Cells {
		if attempt.Warmup || in != nil && !in(attempt.Block) || !slices.Contains(telling, s.Kinds[attempt]) {
			continue
		}
		Inner(out, c)[attempt.Block] = true
	}
	return out
}

// Completions counts the trials of the blocks that in says; of all blocks if in is nil.
func (s *Selection) Completions(in func(block string) bool) map[Cell]*Completion {
	out := map[Cell]*Completion{}
	counted := func(c Cell, block string) *Completion {
		if out[c] == nil {
			out[c] = &Completion{Failures: Losses{}, Blocks: map[string]bool{}}
		}
		out[c].Of++
		out[c].Blocks[block] = true
		return out[c]
	}
	for attempt, c := range s.Cells {
		kind := s.Kinds[attempt]
		if attempt.Warmup || in != nil && !in(attempt.Block) || !slices.Contains(telling, kind) {
			continue
		}
		of := counted(c, attempt.Block)
		if kind != Failed && kind != Unusable {
			of.Done++
			continue
		}
		of.Failures[howLost(kind, attempt)]++
		if of.First == nil || attempt.Trial < of.First.Trial {
			of.First, of.Why = attempt, howLost(kind, attempt)
			if kind == Unusable {
				of.Why = s.Rejected[slices.IndexFunc(s.Rejected, func(r exclusion) bool { return r.Attempt == attempt.ID })].Reason
			}
		}
	}
	unknown := func(c Cell, block, trial, how string) {
		if in != nil && !in(block) {
			return
		}
		of := counted(c, block)
		of.Unknown++
		of.Failures[how]++
		if of.Unseen == "" || trial < of.Unseen {
			of.Unseen, of.How = trial, how
		}
	}
	for _, one := range s.Absent {
		unknown(one.Cell, one.block, one.Trial, one.how)
	}
	spoilt := map[string]bool{}
	for _, one := range s.Spoilt {
		spoilt[one.Trial] = true
		unknown(one.Cell, one.block, one.Trial, one.how)
	}
	for _, one := range s.Unended {
		if !one.warmup && !one.Repeated && !spoilt[one.trial] {
			unknown(one.Cell, one.block, one.trial, LostUnended)
		}
	}
	return out
}

// outputless is how many trials left no output that anybody knows, and the first of them.
type outputless struct {
	count int
	first string
}

// Outputless counts the measured trials of an arm of which nobody knows what they gave, and names the first. What an execution that does
// not count gave is known.
func (s *Selection) Outputless(arm int) (count int, first string) {
	if s.outputless == nil {
		s.findOutputless()
	}
	of := s.outputless[arm]
	return of.count, of.first
}

// findOutputless counts them for all arms at once: every gate asks for every candidate at every point.
func (s *Selection) findOutputless() {
	s.outputless = map[int]outputless{}
	seen := map[string]bool{}
	unknown := func(c Cell, trial string) {
		if seen[trial] {
			return
		}
		seen[trial] = true
		of := s.outputless[c.Arm]
		if of.count++; of.first == "" || record.CompareNames(trial, of.first) < 0 {
			of.first = trial
		}
		s.outputless[c.Arm] = of
	}
	for _, one := range s.Spoilt {
		unknown(one.Cell, one.Trial)
	}
	for _, attempt := range s.Genuine {
		seen[attempt.Trial] = true
	}
	for _, one := range s.Absent {
		unknown(one.Cell, one.Trial)
	}
	for _, one := range s.Unended {
		if !one.warmup && !one.Repeated {
			unknown(one.Cell, one.trial)
		}
	}
}

// Add counts another cell's trials as well; nil has none.
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
