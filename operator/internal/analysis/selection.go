package analysis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Which attempts count. A block is the unit that is executed again when a pod is lost, so an execution of a block is taken
// or left as a whole: mixing two would compare trials that did not run beside each other. Of a block's executions the one
// in which most measured trials ran counts; with equal numbers the one that started first, then the one whose name sorts
// first. Clocks of two machines say nothing of what came first: of executions on several nodes that on the node which sorts first. Whether
// a trial succeeded plays no part, or repeating a block until it pleases would be a way to win.

// rejection is why an attempt is not used.
type rejection string

const (
	foreign     rejection = "not part of this experiment"
	altered     rejection = "changed since it was analysed before"
	unreadable  rejection = "unreadable"
	absent      rejection = "missing"
	staleLease  rejection = "under a stale lease"
	superseded  rejection = "superseded by another execution of the block"
	failed      rejection = "failed"
	notStarted  rejection = "not started"
	unusable    rejection = "reporting something that cannot be used"
	environment rejection = "from another environment"
	noisy       rejection = "beyond a noise limit"
)

// reason is a rejection in a word.
func (r rejection) reason() Reason {
	return map[rejection]Reason{
		foreign: "foreign", altered: "altered", unreadable: "unreadable", absent: "missing", staleLease: StaleLease, superseded: "superseded",
		failed: "failed", notStarted: "not_started", unusable: "unusable", environment: "environment", noisy: "noise",
	}[r]
}

type exclusion struct {
	Exclusion
	kind rejection
}

// selection sorts the evidence into what counts and what does not.
type selection struct {
	// used are the attempts that the figures rest on: at most one per trial, in the order of their trials.
	used []*record.Attempt
	// genuine are all successful attempts of this experiment, whether they count or not: an output that differs is wrong in
	// any of them.
	genuine []*record.Attempt
	// cells is where an attempt belongs.
	cells map[*record.Attempt]cell

	rejected   []exclusion
	kinds      map[*record.Attempt]rejection
	histograms histograms
	hard       map[string]any
	isolation  map[string]int
	noise      noiseFindings
	// judged are the attempts that the noise limits were set against: those used, and those they rejected.
	judged []*record.Attempt
	lost   map[cell]balance
	// changed says of arms, by index, how their programs changed during the run.
	changed map[int]string
	// strangers are the arms whose results name another workload than the baseline's.
	strangers map[int]stranger
	trials    Trials
	digest    string
	// unended are the trials that began and left no attempt of that execution.
	unended []unended
	// gaps are the plans that are missing or cannot be read.
	gaps []string
	// apart describes trials of blocks that were no neighbours.
	apart string
	// purposes of the planned blocks.
	purposes map[string]record.Purpose
}

func selectTrials(exp *experiment.Experiment, evidence record.Evidence, wave int) *selection {
	s := &selection{
		cells: map[*record.Attempt]cell{}, histograms: histograms{},
		isolation: map[string]int{}, lost: map[cell]balance{}, kinds: map[*record.Attempt]rejection{},
		purposes: map[string]record.Purpose{},
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
		if attempt.Outcome == record.Succeeded && attempt.Result != nil {
			s.genuine = append(s.genuine, attempt)
		}
	}
	s.findUnended(exp, planned, evidence.Unfinished, wave, found)
	s.digest = found.digest()
	used := s.chooseExecutions(s.rejectStale(evidence.Leases, exp.Run.UID, genuine))
	s.changed = s.changedArms(genuine)
	s.strangers = strangers(exp, evidence.Waves, s.workloads(genuine))
	used = s.rejectUnusable(exp, used)
	used = s.rejectOtherPrograms(s.rejectOtherEnvironments(used))
	s.used = s.rejectNoisy(exp, genuine, used)
	s.apart = notNeighbours(s.used)
	for _, attempt := range s.used {
		s.isolation[attempt.Isolation.Level]++
	}
	s.count(exp, planned, attempts, evidence.Problems)
	s.trials.Attempts = len(attempts)
	return s
}

func (s *selection) reject(attempt string, kind rejection, format string, args ...any) {
	s.rejected = append(s.rejected, exclusion{Exclusion{attempt, fmt.Sprintf(format, args...)}, kind})
}

func (s *selection) rejectAttempt(attempt *record.Attempt, kind rejection, format string, args ...any) {
	s.kinds[attempt] = kind
	s.reject(attempt.ID, kind, format, args...)
}

// excluded is what the analysis shows of the rejected.
func (s *selection) excluded() []Exclusion {
	slices.SortStableFunc(s.rejected, func(a, b exclusion) int { return cmp.Compare(a.Attempt, b.Attempt) })
	var out []Exclusion
	for _, r := range s.rejected {
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
	cell         cell
	block, build string
	warmup       bool
	command      *command
}

func (s *selection) indexPlan(exp *experiment.Experiment, waves []record.Wave, through int) plan {
	out := plan{slots: map[string]plannedSlot{}, leases: map[string]*record.Lease{}}
	points, arms := indexes(exp)
	for _, wave := range waves {
		if wave.Wave > through {
			continue
		}
		if wave.Run.UID != exp.Run.UID || wave.Experiment != exp.Digest {
			s.reject(record.WaveKey(wave.Wave), foreign, "the plan is of run %s and experiment %s", wave.Run.UID, wave.Experiment)
			continue
		}
		out.known = true
		if why := contradictsArms(exp.Arms, wave.Arms); why != "" {
			key := record.WaveKey(wave.Wave)
			s.gaps = append(s.gaps, key)
			s.reject(key, foreign, "the plan contradicts the experiment: %s", why)
		}
		at := func(block string, index int, warmup bool) (plannedSlot, bool) {
			if index >= len(wave.Cells) || wave.Cells[index].Point >= len(wave.Points) || wave.Cells[index].Arm >= len(wave.Arms) {
				return plannedSlot{}, false
			}
			point, ok1 := points[wave.Points[wave.Cells[index].Point].Key]
			arm, ok2 := arms[wave.Arms[wave.Cells[index].Arm].Name]
			return plannedSlot{cell{point, arm}, block, wave.Cells[index].Build, warmup,
				&command{wave.Cells[index].Argv, wave.Cells[index].Parameters}}, ok1 && ok2
		}
		for _, block := range wave.Blocks {
			out.leases[block.ID], s.purposes[block.ID] = block.Lease, wave.Why()
			for slot, index := range block.Warmup {
				if planned, ok := at(block.ID, index, true); ok {
					out.slots[record.TrialName(block.ID, slot, true)] = planned
				}
			}
			for slot, index := range block.Order {
				if planned, ok := at(block.ID, index, false); ok {
					out.slots[record.TrialName(block.ID, slot, false)] = planned
				}
			}
		}
	}
	return out
}

func indexes(exp *experiment.Experiment) (points, arms map[string]int) {
	points, arms = map[string]int{}, map[string]int{}
	for i, point := range exp.Points {
		points[point.Key] = i
	}
	for i, arm := range exp.Arms {
		arms[arm.Name] = i
	}
	return points, arms
}

// executor is the pod or local process that ran an attempt.
func executor(attempt *record.Attempt) string {
	return strings.TrimSuffix(attempt.ID, "/"+attempt.Trial)
}

// rejectForeign keeps the attempts that belong to this experiment and agree with the plan.
func (s *selection) rejectForeign(exp *experiment.Experiment, planned plan, attempts []*record.Attempt) []*record.Attempt {
	points, arms := indexes(exp)
	asked := commands(exp)
	seen := map[string]bool{}
	var out []*record.Attempt
	for _, attempt := range attempts {
		point, knownPoint := points[attempt.Point]
		arm, knownArm := arms[attempt.Arm]
		reason := ""
		switch {
		case attempt.Run.UID != exp.Run.UID:
			reason = fmt.Sprintf("it is of run uid %q and this run has %q", attempt.Run.UID, exp.Run.UID)
		case attempt.Experiment != exp.Digest:
			reason = fmt.Sprintf("it is of experiment %s and this one is %s", attempt.Experiment, exp.Digest)
		case !knownPoint:
			reason = fmt.Sprintf("the experiment has no point %q", attempt.Point)
		case !knownArm:
			reason = fmt.Sprintf("the experiment has no arm %q", attempt.Arm)
		case attempt.Trial != record.TrialName(attempt.Block, attempt.Slot, attempt.Warmup) || executor(attempt) == attempt.ID:
			reason = fmt.Sprintf("id %q, trial %q, block %q, slot %d do not fit together", attempt.ID, attempt.Trial, attempt.Block, attempt.Slot)
		case !strings.HasPrefix(attempt.Block, record.WavePrefix(attempt.Wave)):
			reason = fmt.Sprintf("it is of wave %d and block %s is not", attempt.Wave, attempt.Block)
		case seen[attempt.ID]:
			reason = "another attempt has the same id"
		default:
			at := cell{point, arm}
			if reason = cmp.Or(unknownBuild(exp, attempt, at), disagreement(planned, attempt, at)); reason == "" {
				reason = contradiction(attempt, asked[variant{at, attempt.Build}], planned.slots[attempt.Trial].command)
			}
		}
		if reason != "" {
			s.rejectAttempt(attempt, foreign, "%s", reason)
			continue
		}
		seen[attempt.ID] = true
		s.cells[attempt] = cell{point, arm}
		out = append(out, attempt)
	}
	return out
}

// disagreement is how an attempt differs from the plan of its wave.
func disagreement(planned plan, attempt *record.Attempt, c cell) string {
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
func (s *selection) chooseExecutions(attempts []*record.Attempt) []*record.Attempt {
	type execution struct {
		name    string
		node    string
		ran     int
		started int64
	}
	blocks := map[string]map[string]*execution{}
	for _, attempt := range attempts {
		name := executor(attempt)
		if blocks[attempt.Block] == nil {
			blocks[attempt.Block] = map[string]*execution{}
		}
		e := blocks[attempt.Block][name]
		if e == nil {
			e = &execution{name: name, node: nodeOf(attempt), started: attempt.StartedAt.UnixNano()}
			blocks[attempt.Block][name] = e
		}
		e.started = min(e.started, attempt.StartedAt.UnixNano())
		if !attempt.Warmup && started(attempt) {
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
		case executor(attempt) != chosen[attempt.Block]:
			s.rejectAttempt(attempt, superseded, "block %s was executed more than once and execution %s counts", attempt.Block,
				chosen[attempt.Block])
		case attempt.Warmup:
			// Recorded and never compared; counted with the trials.
		case !started(attempt):
			s.rejectAttempt(attempt, notStarted, "%s: %s", attempt.Outcome, attempt.Message)
		case attempt.Outcome != record.Succeeded:
			s.rejectAttempt(attempt, failed, "%s: %s%s", attempt.Outcome, attempt.Message, failedAgainst(attempt))
		default:
			out = append(out, attempt)
		}
	}
	return out
}

// rejectOtherEnvironments keeps the attempts of the environment that most of them share.
func (s *selection) rejectOtherEnvironments(attempts []*record.Attempt) []*record.Attempt {
	type group struct {
		hard  map[string]any
		count int
	}
	groups := map[string]*group{}
	of := make([]*group, len(attempts))
	for i, attempt := range attempts {
		raw, err := json.Marshal(attempt.Environment.Hard)
		if err != nil {
			raw = nil
		}
		if groups[string(raw)] == nil {
			groups[string(raw)] = &group{hard: attempt.Environment.Hard}
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
	s.hard = majority.hard
	out := attempts[:0:0]
	for i, attempt := range attempts {
		if of[i] != majority {
			s.rejectAttempt(attempt, environment, "its environment cannot be compared with that of most attempts: %s",
				differences(attempt.Environment.Hard, s.hard))
			continue
		}
		out = append(out, attempt)
	}
	return out
}
