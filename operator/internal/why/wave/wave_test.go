package wave

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/why"
	"assay.dev/assay/operator/internal/why/recording"
)

func judged() *record.Wave {
	return &record.Wave{
		Schema: record.WaveSchema, Arms: []record.Arm{{Name: "new"}, {Name: "old", Baseline: true}, {Name: "other"}},
		Points: []record.Point{{}},
		Cells:  []record.Cell{{Arm: 0, Argv: []string{"/new"}}, {Arm: 1, Argv: []string{"/old"}}, {Arm: 2, Argv: []string{"/other"}}},
		Blocks: []record.Block{{ID: "w000-b0000", Order: []int{0, 1, 2}}},
	}
}

func TestLay_ThreeArmsUnderEachInstrument(t *testing.T) {
	before := judged()
	got, plan, err := Lay(before, "new", 0, 2, 6, 3, []string{"usage", "profile"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(judged(), before); diff != "" {
		t.Errorf("the judged wave was modified:\n%s", diff)
	}
	var arms, programs []string
	for i, cell := range got.Cells {
		arms, programs = append(arms, got.Arms[cell.Arm].Name), append(programs, cell.Argv[0])
		if cell.Arm != i {
			t.Errorf("cell %d runs arm %d", i, cell.Arm)
		}
	}
	if !slices.Equal(arms, []string{"old", "new", NullArm}) || !slices.Equal(programs, []string{"/old", "/new", "/old"}) || !got.Arms[2].Null {
		t.Errorf("arms %q run %q", arms, programs)
	}
	if len(got.Blocks) != 6 || got.Blocks[5].ID != "w002-b0005" || got.Wave != 2 {
		t.Errorf("blocks %+v", got.Blocks)
	}
	if want := (Block{ID: "w002-b0005", Round: 8, Instrument: "profile"}); plan.Kind != "causes" || plan.Blocks[5] != want {
		t.Errorf("plan %+v", plan)
	}
	for _, block := range got.Blocks {
		for i, cell := range block.Order {
			if i%TrialsPerVisit != 0 && cell != block.Order[i-1] {
				t.Errorf("block %s has order %v, want visits of %d trials", block.ID, block.Order, TrialsPerVisit)
			}
		}
	}
}

func TestLay_UnknownCandidate(t *testing.T) {
	for _, candidate := range []string{"none", "old"} {
		if _, _, err := Lay(judged(), candidate, 0, 0, 0, 1, []string{"usage"}); err == nil {
			t.Errorf("candidate %s is accepted", candidate)
		}
	}
}

func attempt(slot int, outcome record.Outcome) record.Attempt {
	return record.Attempt{
		Trial: "t", Block: "b", Arm: "old", Slot: slot, Outcome: outcome, StartedAt: time.Unix(1, 0), DurationSeconds: 2,
		Resources: record.Resources{UserSeconds: ptr.To(1.0), SystemSeconds: ptr.To(0.25), MinorFaults: ptr.To(int64(7))},
	}
}

func TestTrials_FirstTrialOfAVisitAndFailuresAreNotUsed(t *testing.T) {
	attempts := []record.Attempt{
		attempt(0, record.Succeeded), attempt(1, record.Succeeded), attempt(2, record.Failed), attempt(3, record.Succeeded),
	}
	of := Observed{Block: Block{ID: "b", Round: 4, Instrument: "usage"}, Attempts: attempts}
	got := of.Trials(why.WallTime)
	want := []why.Trial{{
		Block: 4, Arm: "old", Instrument: "usage", Elapsed: 2, Seconds: 2, Counts: map[string]float64{why.MinorFaults: 7},
		Costs: []why.Cost{{Stack: []string{why.UserCode}, Seconds: 1}, {Stack: []string{why.KernelCode}, Seconds: 0.25},
			{Stack: []string{why.WaitOther}, Seconds: 0.75}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if windows := Windows(attempts, "b"); len(windows) != 1 || windows[0].Start != 1e9 || windows[0].End != 3e9 {
		t.Errorf("windows %+v", windows)
	}
}

func TestTrials_ParallelProgramsHaveNoCoarseWaits(t *testing.T) {
	parallel := attempt(1, record.Succeeded)
	parallel.Resources.UserSeconds = ptr.To(3.0)
	of := Observed{Block: Block{ID: "b", Instrument: "usage"}, Attempts: []record.Attempt{parallel}}
	if got := of.Trials(why.WallTime); len(got) != 1 || got[0].Costs != nil {
		t.Errorf("%+v, want no partition of the wall time", got)
	}
	if got := of.Trials(why.CPUTime); got[0].Seconds != 3.25 || len(got[0].Costs) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestTrials_ReadingOfTheFigure(t *testing.T) {
	readings := &recording.Readings{Trials: []recording.Reading{{
		Trial: "t", WallSeconds: 1.9, CPUSeconds: 1.2, Wall: []why.Cost{{Stack: []string{"a"}, Seconds: 1.9}},
		CPU: []why.Cost{{Stack: []string{"b"}, Seconds: 1.2}}, Counts: map[string]float64{"calls of read": 3},
	}}}
	of := Observed{Block: Block{ID: "b", Instrument: "profile"}, Attempts: []record.Attempt{attempt(1, record.Succeeded)}, Readings: readings}
	for figure, want := range map[why.Figure]float64{why.WallTime: 1.9, why.CPUTime: 1.2} {
		if got := of.Trials(figure); got[0].Seconds != want || got[0].Costs[0].Seconds != want || got[0].Counts["calls of read"] != 3 {
			t.Errorf("%s: %+v", figure, got)
		}
	}
}
