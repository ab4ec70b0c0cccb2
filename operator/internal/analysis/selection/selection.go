// Package selection decides which attempts of a ledger may be judged, and keeps what became of the others and why: what was altered,
// foreign, stale, failed, unusable, from elsewhere or beyond a noise limit. It computes no figure.
package selection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Which attempts count. A block is the unit that is executed again when a pod is lost, so an execution of a block is taken
// or left as a whole: mixing two would compare trials that did not run beside each other. Of a block's executions the one
// in which most measured trials ran counts; with equal numbers the one that started first, then the one whose name sorts
// first. Clocks of two machines say nothing of what came first: of executions on several nodes that on the node which sorts first. Whether
// a trial succeeded plays no part, or repeating a block until it pleases would be a way to win.

// Rejection is why an attempt is not used.
type Rejection string

const (
	foreign     Rejection = "not part of this experiment"
	altered     Rejection = "changed since it was analysed before"
	unreadable  Rejection = "unreadable"
	absent      Rejection = "missing"
	staleLease  Rejection = "under a stale lease"
	superseded  Rejection = "superseded by another execution of the block"
	Failed      Rejection = "failed"
	notStarted  Rejection = "not started"
	Unusable    Rejection = "reporting something that cannot be used"
	environment Rejection = "from another environment"
	Noisy       Rejection = "beyond a noise limit"
)

// Reason is a rejection in a word.
func (r Rejection) Reason() analysis.Reason {
	return map[Rejection]analysis.Reason{
		foreign: "foreign", altered: "altered", unreadable: "unreadable", absent: "missing", staleLease: analysis.StaleLease,
		superseded: "superseded", Failed: "failed", notStarted: "not_started", Unusable: "unusable", environment: "environment", Noisy: "noise",
	}[r]
}

type exclusion struct {
	analysis.Exclusion
	Kind Rejection
}

// Selection sorts the evidence into what counts and what does not.
type Selection struct {
	// Used are the attempts that the figures rest on: at most one per trial, in the order of their trials.
	Used []*record.Attempt
	// Genuine are all successful attempts of this experiment, whether they count or not: an output that differs is wrong in
	// any of them.
	Genuine []*record.Attempt
	// Cells is where an attempt belongs.
	Cells map[*record.Attempt]Cell

	Rejected   []exclusion
	Kinds      map[*record.Attempt]Rejection
	Histograms trial.Histograms
	Hard       map[string]any
	// Elsewhere are the attempts of other environments than the one most have, by a number for each, and OtherKeys how the first differs.
	Elsewhere map[*record.Attempt]int
	OtherKeys string
	Isolation map[string]int
	Noise     Noise
	// Judged are the attempts that the noise limits were set against: those used, and those they rejected.
	Judged []*record.Attempt
	Lost   map[Cell]Balance
	// lostOf are the sums of that by arm, and p what was computed of them; nil until somebody asks.
	lostOf map[int]Balance
	p      map[stats.Table]float64
	// Changed says of arms, by index, how their programs changed during the run.
	Changed map[int]string
	// Strangers are the arms whose results name another workload than the baseline's.
	Strangers map[int]stranger
	Trials    analysis.Trials
	Digest    string
	// Unended are the trials that began and left no attempt of that execution.
	Unended []Unended
	// Spoilt are the measured trials of which there is only what may not be used, and gone the objects that an earlier analysis read.
	Spoilt []Spoilt
	gone   []string
	// useless are the attempts of executions that do not count which would be of no use there.
	useless map[*record.Attempt]bool
	// Absent are the measured trials that were planned in blocks that ran and of which there is nothing, or only what ran under a stale
	// lease.
	Absent []Spoilt
	// outputless are trials without an output, by arm; nil until somebody asks.
	outputless map[int]outputless
	// Gaps are the plans and blocks that are missing, cannot be read or contradict the experiment.
	Gaps []string
	// Altered are the objects that an earlier analysis read and that are gone or are not what they were.
	Altered []string
	// Apart describes trials of blocks that were no neighbours, and Copied those of two blocks that are one process.
	Apart, Copied string
	// Purposes of the planned blocks.
	Purposes map[string]record.Purpose
}

// Of selects what counts of the waves up to and including wave. The order in which one rejection comes before another is its rule.
func Of(exp *experiment.Experiment, evidence record.Evidence, wave int) *Selection {
	s := &Selection{
		Cells: map[*record.Attempt]Cell{}, Histograms: trial.Histograms{},
		Isolation: map[string]int{}, Lost: map[Cell]Balance{}, Elsewhere: map[*record.Attempt]int{}, Kinds: map[*record.Attempt]Rejection{},
		Purposes: map[string]record.Purpose{}, useless: map[*record.Attempt]bool{},
	}
	attempts := upTo(evidence.Attempts, wave)
	found := sums(attempts, evidence.Problems)
	for _, problem := range evidence.Problems {
		s.reject(problem.Key, unreadable, "%s", problem.Reason)
	}
	s.findGaps(exp, evidence, wave)
	planned := s.indexPlan(exp, evidence.Waves, wave)
	genuine := s.rejectForeign(exp, planned, s.rejectAltered(evidence.Sealed, found, attempts))
	for _, attempt := range genuine {
		if attempt.Outcome == record.Succeeded {
			s.Genuine = append(s.Genuine, attempt)
		}
	}
	s.findMissingBlocks(exp, planned, evidence, wave)
	s.findUnplannedWarmups(exp, planned, genuine)
	s.findUnended(exp, planned, evidence.Unfinished, wave, found)
	s.Digest = found.digest()
	// Before one execution of a block is chosen: what ran beside another run's blocks must not stand in for what ran alone.
	inForce := s.keep(genuine, staleLease, indexLeases(evidence.Leases, exp.Run.UID).stale)
	used := s.chooseExecutions(inForce)
	s.Changed = s.changedArms(genuine)
	s.Strangers = strangers(exp, evidence.Waves, s.workloads(genuine))
	used = s.rejectUnusable(exp, used)
	s.Apart = notNeighbours(used)
	used = s.rejectOtherPrograms(s.rejectOtherEnvironments(used))
	s.Used = s.rejectNoisy(exp, genuine, used)
	s.Copied = copied(s.Used)
	for _, attempt := range s.Used {
		s.Isolation[attempt.Isolation.Level]++
	}
	s.count(exp, planned, attempts, evidence.Problems)
	s.Trials.Attempts = len(attempts)
	return s
}

func (s *Selection) reject(attempt string, kind Rejection, format string, args ...any) {
	s.Rejected = append(s.Rejected, exclusion{analysis.Exclusion{Attempt: attempt, Reason: fmt.Sprintf(format, args...)}, kind})
}

func (s *Selection) rejectAttempt(attempt *record.Attempt, kind Rejection, format string, args ...any) {
	s.Kinds[attempt] = kind
	s.reject(attempt.ID, kind, format, args...)
}

// keep are the attempts that nothing speaks against; the others are rejected for what does.
func (s *Selection) keep(attempts []*record.Attempt, kind Rejection, against func(*record.Attempt) string) []*record.Attempt {
	var out []*record.Attempt
	for _, attempt := range attempts {
		if why := against(attempt); why != "" {
			s.rejectAttempt(attempt, kind, "%s", why)
			continue
		}
		out = append(out, attempt)
	}
	return out
}

// Excluded is what the analysis shows of the rejected.
func (s *Selection) Excluded() []analysis.Exclusion {
	slices.SortStableFunc(s.Rejected, func(a, b exclusion) int { return cmp.Compare(a.Attempt, b.Attempt) })
	var out []analysis.Exclusion
	for _, r := range s.Rejected {
		out = append(out, r.Exclusion)
	}
	return out
}

// upTo returns the attempts of the waves up to a wave, in a fixed order.
func upTo(attempts []record.Attempt, wave int) []*record.Attempt {
	out := make([]*record.Attempt, 0, len(attempts))
	for i := range attempts {
		if attempts[i].Wave <= wave {
			out = append(out, &attempts[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *record.Attempt) int {
		return cmp.Or(record.CompareNames(a.Trial, b.Trial), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// plan is what the waves say should have run.
type plan struct {
	// known is false for a ledger without plans: then the attempts are taken at their word.
	known  bool
	slots  map[string]plannedSlot
	leases map[string]*record.Lease
}

type plannedSlot struct {
	cell         Cell
	block, build string
	warmup       bool
	command      *command
}

func (s *Selection) indexPlan(exp *experiment.Experiment, waves []record.Wave, through int) plan {
	out := plan{slots: map[string]plannedSlot{}, leases: map[string]*record.Lease{}}
	points, arms := indexes(exp)
	for _, wave := range waves {
		if wave.Wave > through {
			continue
		}
		if wave.Run.UID != exp.Run.UID || wave.Experiment != exp.Digest {
			// Whoever makes it another run's takes what it planned out of what is judged.
			s.Gaps = append(s.Gaps, record.WaveKey(wave.Wave))
			s.reject(record.WaveKey(wave.Wave), foreign, "the plan is of run %s and experiment %s", wave.Run.UID, wave.Experiment)
			continue
		}
		out.known = true
		if why := cmp.Or(contradictsArms(exp.Arms, wave.Arms), contradictsPurpose(&exp.Plan, wave.Why())); why != "" {
			key := record.WaveKey(wave.Wave)
			s.Gaps = append(s.Gaps, key)
			s.reject(key, foreign, "the plan contradicts the experiment: %s", why)
		}
		add := func(block string, order []int, warmup bool) {
			for slot, index := range order {
				c := wave.Cells[index]
				point, knownPoint := points[wave.Points[c.Point].Key]
				arm, knownArm := arms[wave.Arms[c.Arm].Name]
				if knownPoint && knownArm {
					out.slots[record.TrialName(block, slot, warmup)] = plannedSlot{Cell{point, arm}, block, c.Build, warmup,
						&command{c.Argv, c.Parameters}}
				}
			}
		}
		for _, block := range wave.Blocks {
			out.leases[block.ID], s.Purposes[block.ID] = block.Lease, wave.Why()
			add(block.ID, block.Warmup, true)
			add(block.ID, block.Order, false)
		}
	}
	return out
}

// rejectForeign keeps the attempts that belong to this experiment and agree with the plan.
func (s *Selection) rejectForeign(exp *experiment.Experiment, planned plan, attempts []*record.Attempt) []*record.Attempt {
	points, arms := indexes(exp)
	asked := commands(exp)
	seen := map[string]bool{}
	return s.keep(attempts, foreign, func(attempt *record.Attempt) (reason string) {
		point, knownPoint := points[attempt.Point]
		arm, knownArm := arms[attempt.Arm]
		switch {
		case attempt.Run.UID != exp.Run.UID:
			reason = fmt.Sprintf("it is of run uid %q and this run has %q", attempt.Run.UID, exp.Run.UID)
		case attempt.Experiment != exp.Digest:
			reason = fmt.Sprintf("it is of experiment %s and this one is %s", attempt.Experiment, exp.Digest)
		case !knownPoint:
			reason = fmt.Sprintf("the experiment has no point %q", attempt.Point)
		case !knownArm:
			reason = fmt.Sprintf("the experiment has no arm %q", attempt.Arm)
		case attempt.Trial != record.TrialName(attempt.Block, attempt.Slot, attempt.Warmup) || trial.Executor(attempt) == attempt.ID:
			reason = fmt.Sprintf("id %q, trial %q, block %q, slot %d do not fit together", attempt.ID, attempt.Trial, attempt.Block, attempt.Slot)
		case !strings.HasPrefix(attempt.Block, record.WavePrefix(attempt.Wave)):
			reason = fmt.Sprintf("it is of wave %d and block %s is not", attempt.Wave, attempt.Block)
		case seen[attempt.ID]:
			reason = "another attempt has the same id"
		default:
			at := Cell{point, arm}
			if _, ok := planned.slots[attempt.Trial]; planned.known && !ok {
				// Every plan is older than what ran: whoever shortens it chooses what is judged.
				s.Gaps = append(s.Gaps, sourceOf(attempt).Key)
			}
			own, known := asked[variant{at, attempt.Build}]
			if !known {
				reason = unknownBuild(exp, attempt, at)
			} else if reason = disagreement(planned, attempt, at); reason == "" {
				reason = contradiction(attempt, own, planned.slots[attempt.Trial].command)
			}
		}
		if reason == "" {
			seen[attempt.ID] = true
			s.Cells[attempt] = Cell{point, arm}
		}
		return reason
	})
}

// disagreement is how an attempt differs from the plan of its wave.
func disagreement(planned plan, attempt *record.Attempt, c Cell) string {
	if !planned.known {
		return ""
	}
	slot, ok := planned.slots[attempt.Trial]
	switch lease := planned.leases[attempt.Block]; {
	case !ok:
		return fmt.Sprintf("no wave planned trial %s", attempt.Trial)
	case slot.cell != c:
		return fmt.Sprintf("trial %s was planned for another arm or point than arm %q at point %q", attempt.Trial, attempt.Arm, attempt.Point)
	case slot.build != attempt.Build:
		return fmt.Sprintf("trial %s was planned for build %q of arm %q and it ran build %q", attempt.Trial, slot.build, attempt.Arm,
			attempt.Build)
	case lease != nil && (attempt.Lease == nil || *attempt.Lease != *lease):
		return fmt.Sprintf("block %s may run only under lease token %d of node %s", attempt.Block, lease.Token, lease.Node)
	}
	return ""
}

// chooseExecutions leaves one execution of every block, and of that the measured trials that succeeded.
func (s *Selection) chooseExecutions(attempts []*record.Attempt) []*record.Attempt {
	type execution struct {
		name    string
		node    string
		ran     int
		started int64
	}
	blocks := map[string]map[string]*execution{}
	for _, attempt := range attempts {
		name, executions := trial.Executor(attempt), Inner(blocks, attempt.Block)
		e := executions[name]
		if e == nil {
			e = &execution{name: name, node: trial.NodeOf(attempt), started: attempt.StartedAt.UnixNano()}
			executions[name] = e
		}
		e.started = min(e.started, attempt.StartedAt.UnixNano())
		if !attempt.Warmup && trial.Started(attempt) {
			e.ran++
		}
	}
	chosen := map[string]string{}
	for block, executions := range blocks {
		best := slices.MinFunc(slices.Collect(maps.Values(executions)), func(a, b *execution) int {
			return cmp.Or(cmp.Compare(b.ran, a.ran), cmp.Compare(a.node, b.node), cmp.Compare(a.started, b.started), cmp.Compare(a.name, b.name))
		})
		chosen[block] = best.name
	}

	var out []*record.Attempt
	for _, attempt := range attempts {
		switch {
		case trial.Executor(attempt) != chosen[attempt.Block]:
			s.rejectAttempt(attempt, superseded, "block %s was executed more than once and execution %s counts", attempt.Block,
				chosen[attempt.Block])
		case attempt.Warmup:
			// Recorded and never compared; counted with the trials.
		case !trial.Started(attempt):
			s.rejectAttempt(attempt, notStarted, "%s: %s", attempt.Outcome, attempt.Message)
		case attempt.Outcome != record.Succeeded:
			s.rejectAttempt(attempt, Failed, "%s: %s%s", attempt.Outcome, attempt.Message, failedAgainst(attempt))
		default:
			out = append(out, attempt)
		}
	}
	return out
}

// rejectOtherEnvironments keeps the attempts of the environment that most of them share.
func (s *Selection) rejectOtherEnvironments(attempts []*record.Attempt) []*record.Attempt {
	type group struct {
		hard          map[string]any
		count, number int
	}
	groups := map[string]*group{}
	of := make([]*group, len(attempts))
	for i, attempt := range attempts {
		raw, _ := json.Marshal(attempt.Environment.Hard) // What was read as JSON can be written as JSON.
		if groups[string(raw)] == nil {
			groups[string(raw)] = &group{hard: attempt.Environment.Hard, number: len(groups) + 1}
		}
		of[i] = groups[string(raw)]
		of[i].count++
	}
	if len(groups) == 0 {
		return nil
	}
	// The majority; with equal numbers the text that sorts first, so that the choice never depends on order.
	majority := groups[slices.MinFunc(slices.Sorted(maps.Keys(groups)), func(a, b string) int {
		return cmp.Or(cmp.Compare(groups[b].count, groups[a].count), cmp.Compare(a, b))
	})]
	s.Hard = majority.hard
	out := attempts[:0:0]
	for i, attempt := range attempts {
		if of[i] == majority {
			out = append(out, attempt)
			continue
		}
		how := strings.Join(differences(attempt.Environment.Hard, s.Hard, hardKey), "; ")
		s.rejectAttempt(attempt, environment, "its environment cannot be compared with that of most attempts: %s", how)
		s.Elsewhere[attempt], s.OtherKeys = of[i].number, cmp.Or(s.OtherKeys, how)
	}
	return out
}

// Everywhere are the attempts used and those of other environments, in the order of their trials.
func (s *Selection) Everywhere() []*record.Attempt {
	out := slices.AppendSeq(slices.Clone(s.Used), maps.Keys(s.Elsewhere))
	slices.SortFunc(out, func(a, b *record.Attempt) int { return record.CompareNames(a.Trial, b.Trial) })
	return out
}

// Own are the attempts up to a wave that are this experiment's.
func (s *Selection) Own(evidence record.Evidence, wave int) []*record.Attempt {
	return slices.DeleteFunc(upTo(evidence.Attempts, wave), func(attempt *record.Attempt) bool { _, ok := s.Cells[attempt]; return !ok })
}
