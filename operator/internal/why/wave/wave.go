// Package wave lays out the waves of trials that explain a difference, and assembles their observations. It is pure. These waves are no
// part of the run's design: they have a separate ledger, with the same arms and a second copy of the baseline, and are never judged.
package wave

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/why"
	"assay.dev/assay/operator/internal/why/recording"
)

// Kind is the kind of these waves in their plan.
const Kind = "causes"

// NullArm is the name of the baseline's second copy.
const NullArm = "baseline-copy"

// TrialsPerVisit is the number of trials of an arm in a row. The first follows another program, and is not used.
const TrialsPerVisit = 3

// Plan states which instrument observes which block of a cause wave.
type Plan struct {
	Kind   string  `json:"kind"`
	Blocks []Block `json:"blocks"`
}

// Block is a block of a cause wave. Blocks of the same round are compared with each other.
type Block struct {
	ID         string `json:"id"`
	Round      int    `json:"round"`
	Instrument string `json:"instrument"`
}

// Lay returns a wave of rounds that compares a candidate with the baseline at a point of a judged wave, one block for each instrument in a
// round. Number is the number of the wave, and rounds before it have run.
func Lay(judged *record.Wave, candidate string, point, number, before, rounds int, instruments []string) (*record.Wave, *Plan, error) {
	find := func(accept func(record.Arm) bool) (record.Cell, record.Arm, error) {
		arm := slices.IndexFunc(judged.Arms, accept)
		for _, cell := range judged.Cells {
			if arm >= 0 && cell.Arm == arm && cell.Point == point && cell.Build == "" {
				return cell, judged.Arms[arm], nil
			}
		}
		return record.Cell{}, record.Arm{}, fmt.Errorf("no cell of candidate %q and of the baseline at point %d of the run has a single build",
			candidate, point)
	}
	base, baseArm, err := find(func(arm record.Arm) bool { return arm.Baseline })
	if err != nil {
		return nil, nil, err
	}
	cand, candArm, err := find(func(arm record.Arm) bool { return arm.Name == candidate && !arm.Baseline })
	if err != nil {
		return nil, nil, err
	}
	out := *judged
	out.Wave, out.Points, out.Blocks = number, []record.Point{judged.Points[point]}, nil
	null := baseArm
	null.Name, null.Baseline, null.Null = NullArm, false, true
	out.Arms = []record.Arm{baseArm, candArm, null}
	out.Cells = nil
	for arm, cell := range []record.Cell{base, cand, base} {
		cell.Arm, cell.Point = arm, 0
		out.Cells = append(out.Cells, cell)
	}
	plan := &Plan{Kind: Kind}
	for round := range rounds {
		for _, instrument := range instruments {
			id := fmt.Sprintf("w%03d-b%04d", number, len(out.Blocks))
			order := rand.New(rand.NewPCG(uint64(number), uint64(len(out.Blocks)))).Perm(len(out.Cells))
			var visits []int
			for _, cell := range order {
				visits = append(visits, slices.Repeat([]int{cell}, TrialsPerVisit)...)
			}
			out.Blocks = append(out.Blocks, record.Block{ID: id, Order: visits})
			plan.Blocks = append(plan.Blocks, Block{ID: id, Round: before + round, Instrument: instrument})
		}
	}
	return &out, plan, nil
}

// Windows returns the times of the trials of a block that are used.
func Windows(attempts []record.Attempt, block string) (out []recording.Window) {
	for _, attempt := range attempts {
		if attempt.Block == block && used(&attempt) {
			start := attempt.StartedAt.UnixNano()
			out = append(out, recording.Window{ID: attempt.Trial, Start: start, End: start + int64(attempt.DurationSeconds*1e9)})
		}
	}
	return out
}

// used reports whether a trial succeeded and followed a trial of the same arm.
func used(attempt *record.Attempt) bool {
	return attempt.Outcome == record.Succeeded && !attempt.Warmup && attempt.Slot%TrialsPerVisit != 0
}

// Observed has the observations of one block.
type Observed struct {
	Block
	Attempts []record.Attempt
	Readings *recording.Readings
}

// Trials converts the observations of a block to the trials of an explanation. A program without a number of operations counts as one
// operation per process.
func (o *Observed) Trials(figure why.Figure) (out []why.Trial) {
	readings := map[string]recording.Reading{}
	if o.Readings != nil {
		for _, reading := range o.Readings.Trials {
			readings[reading.Trial] = reading
		}
	}
	for i := range o.Attempts {
		attempt := &o.Attempts[i]
		if attempt.Block != o.ID || !used(attempt) {
			continue
		}
		trial := why.Trial{
			Block: o.Round, Arm: attempt.Arm, Instrument: o.Instrument, Elapsed: attempt.DurationSeconds, Counts: map[string]float64{},
		}
		usage := attempt.Resources
		for name, value := range map[string]*float64{
			why.MinorFaults: number(usage.MinorFaults), why.MajorFaults: number(usage.MajorFaults),
			why.VoluntarySwitches:   number(usage.VoluntaryContextSwitches),
			why.InvoluntarySwitches: number(usage.InvoluntaryContextSwitches),
		} {
			if value != nil {
				trial.Counts[name] = *value
			}
		}
		reading, seen := readings[attempt.Trial]
		for name, value := range reading.Counts {
			trial.Counts[name] = value
		}
		switch {
		case seen && figure == why.CPUTime && len(reading.CPU) > 0:
			trial.Seconds, trial.Costs = reading.CPUSeconds, reading.CPU
		case seen && figure == why.WallTime && len(reading.Wall) > 0:
			trial.Seconds, trial.Costs = reading.WallSeconds, reading.Wall
		default:
			trial.Seconds, trial.Costs = coarse(attempt, figure)
		}
		out = append(out, trial)
	}
	return out
}

// coarse partitions the figure by the resource usage alone. Waiting is known only of programs that do not run in parallel.
func coarse(attempt *record.Attempt, figure why.Figure) (float64, []why.Cost) {
	user, system := attempt.Resources.UserSeconds, attempt.Resources.SystemSeconds
	if user == nil || system == nil {
		return attempt.DurationSeconds, nil
	}
	costs := []why.Cost{{Stack: []string{why.UserCode}, Seconds: *user}, {Stack: []string{why.KernelCode}, Seconds: *system}}
	if figure == why.CPUTime {
		return *user + *system, costs
	}
	wait := attempt.DurationSeconds - *user - *system
	if wait < 0 {
		return attempt.DurationSeconds, nil
	}
	return attempt.DurationSeconds, append(costs, why.Cost{Stack: []string{why.WaitOther}, Seconds: wait})
}

func number(of *int64) *float64 {
	if of == nil {
		return nil
	}
	value := float64(*of)
	return &value
}
