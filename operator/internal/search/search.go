// Package search finds the highest load that meets constraints. It is pure: from the results of the loads tried so far it computes the
// next loads and the answer.
//
// A coarse pass over the whole range comes first, to detect a response that is not monotone. Bisection follows, between the highest
// feasible load below the first infeasible one and that one. An undecided load does not stop it: the gap below the lowest undecided load
// and the gap above the highest one are halved, with the initial number of blocks, and loads between these two are not
// tried any more. Only when both gaps are closed do the lowest and the highest of them get more blocks, three times as many each
// time up to the most; those between never do. Last come the two loads of the answer again, on fresh blocks.
package search

// Outcome classifies a load by the results of some blocks.
type Outcome string

// Outcomes. A load that was not tried has none.
const (
	// Feasible means that every constraint holds over its whole interval.
	Feasible Outcome = "Feasible"
	// Infeasible means that some constraint is missed over its whole interval.
	Infeasible Outcome = "Infeasible"
	// Failed means that a trial did not complete: that breaks any constraint.
	Failed Outcome = "Failed"
	// Uncertain is any other outcome.
	Uncertain Outcome = "Uncertain"
)

func (o Outcome) breach() bool { return o == Infeasible || o == Failed }

// Finding summarizes the blocks of one purpose at a load.
type Finding struct {
	Outcome Outcome `json:"outcome"`
	// Planned counts the planned blocks, and Blocks those with usable results.
	Planned int `json:"planned"`
	Blocks  int `json:"blocks"`
	// Constraint is the one that is missed, or else the first that is undecided.
	Constraint string `json:"constraint,omitempty"`
	// Breached reports whether the point estimate of some constraint misses its bound, regardless of the interval.
	Breached bool `json:"breached,omitempty"`
}

// Level is a load that was tried.
type Level struct {
	// Index counts the loads of the search from the lowest.
	Index int    `json:"index"`
	Load  string `json:"load"`
	// Probe summarizes the search blocks of the load, and Fresh the blocks planned to confirm it.
	Probe Finding  `json:"probe"`
	Fresh *Finding `json:"fresh,omitempty"`
}

// Rules bound the search.
type Rules struct {
	// Probe is how many blocks a load has at first, Max how many at most, and Confirm how many fresh ones repeat it.
	Probe, Max, Confirm int
}

// Coarse is how many loads the first pass tries, and maxTried bounds how many a search tries in all.
const (
	Coarse   = 7
	maxTried = 40
)

// Search is the loads and the rules. It is the same for every arm.
type Search struct {
	Loads []string
	Rules Rules
}

// Probe is a load to try in a number of additional blocks.
type Probe struct{ Level, Blocks int }

// Step holds the next loads to try; without probes the search is over. Fresh blocks confirm earlier results.
type Step struct {
	Probes []Probe
	Fresh  bool
}

// Next returns what to try after the loads tried so far. The same loads give the same step.
func (s Search) Next(tried []Level) Step {
	k := s.know(tried)
	for _, step := range []func() []Probe{k.coarsePass, k.bisect, k.replicate} {
		if probes := step(); len(probes) > 0 {
			return Step{Probes: probes}
		}
	}
	return Step{Probes: k.confirm(), Fresh: true}
}

// knowledge is the loads by index; those not tried are nil.
type knowledge struct {
	Search
	levels []*Level
	tried  int
	// feasible is the highest load that holds below the first that breaks, -1 without one; breach is the first that
	// breaks, len(levels) without one.
	feasible, breach int
}

func (s Search) know(tried []Level) *knowledge {
	k := &knowledge{Search: s, levels: make([]*Level, len(s.Loads)), feasible: -1, breach: len(s.Loads)}
	for i := range tried {
		if index := tried[i].Index; index >= 0 && index < len(k.levels) {
			k.levels[index] = &tried[i]
			k.tried++
		}
	}
	for i := range k.levels {
		if k.outcome(i).breach() {
			k.breach = i
			break
		}
		if k.outcome(i) == Feasible {
			k.feasible = i
		}
	}
	return k
}

// outcome is the current outcome of a load; if fresh blocks do not repeat it, it is uncertain.
func (k *knowledge) outcome(i int) Outcome {
	level := k.levels[i]
	if level == nil {
		return ""
	}
	if k.contested(level) {
		return Uncertain
	}
	return level.Probe.Outcome
}

// contested reports whether all allowed fresh blocks have run and do not repeat the earlier outcome.
func (k *knowledge) contested(level *Level) bool {
	if level == nil || level.Fresh == nil || level.confirmed() {
		return false
	}
	return level.Fresh.Outcome != Uncertain || level.Fresh.Planned >= k.maxFresh()
}

func (l *Level) confirmed() bool {
	if l.Fresh == nil {
		return false
	}
	return l.Probe.Outcome == Feasible && l.Fresh.Outcome == Feasible || l.Probe.Outcome.breach() && l.Fresh.Outcome.breach()
}

func (k *knowledge) maxFresh() int { return max(k.Rules.Confirm, k.Rules.Max) }

// coarsePass tries loads all over the range, evenly in the steps of the grid and so geometrically in the load.
func (k *knowledge) coarsePass() []Probe {
	var out []Probe
	last := len(k.levels) - 1
	points := min(Coarse, len(k.levels))
	for i := range points {
		index := (i*last + (points-1)/2) / max(1, points-1)
		if k.levels[index] == nil {
			out = append(out, Probe{index, k.Rules.Probe})
		}
	}
	return out
}

// bisect halves the gaps between the boundary and the undecided loads inside it, from both sides.
func (k *knowledge) bisect() []Probe {
	if k.tried >= maxTried {
		return nil
	}
	low, high := k.uncertain()
	var out []Probe
	add := func(from, to int) {
		if to-from > 1 {
			out = append(out, Probe{from + (to-from)/2, k.Rules.Probe})
		}
	}
	add(k.feasible, low)
	if high >= low {
		add(high, k.breach)
	}
	return out
}

// uncertain are the lowest and the highest load tried inside the boundary; without one, low is the breach and high is below
// it.
func (k *knowledge) uncertain() (low, high int) {
	low, high = k.breach, k.feasible
	for i := k.feasible + 1; i < k.breach; i++ {
		if k.levels[i] != nil {
			low, high = min(low, i), i
		}
	}
	return low, high
}

// replicate triples the blocks of the undecided loads at the boundary: four times as many halve an interval.
func (k *knowledge) replicate() []Probe {
	var out []Probe
	low, high := k.uncertain()
	for i, index := range []int{low, high} {
		if index <= k.feasible || index >= k.breach || i == 1 && high == low {
			continue
		}
		level := k.levels[index]
		if more := min(2*level.Probe.Planned, k.Rules.Max-level.Probe.Planned); more > 0 && level.Fresh == nil {
			out = append(out, Probe{index, more})
		}
	}
	return out
}

// confirm repeats the two loads of the answer on fresh blocks, as many as it took to decide, and adds to these while they do
// not decide.
func (k *knowledge) confirm() []Probe {
	var out []Probe
	for _, index := range []int{k.feasible, k.breach} {
		if index < 0 || index >= len(k.levels) {
			continue
		}
		switch level := k.levels[index]; {
		case level.Fresh == nil:
			out = append(out, Probe{index, max(k.Rules.Confirm, level.Probe.Planned)})
		case !level.confirmed():
			out = append(out, Probe{index, min(2*level.Fresh.Planned, k.maxFresh()-level.Fresh.Planned)})
		}
	}
	return out
}
