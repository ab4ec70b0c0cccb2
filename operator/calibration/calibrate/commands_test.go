package calibrate

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
)

func TestPairs_DecisionAgainstTheTruthIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		verdict experiment.Verdict
		slower  int
		want    Pairs
	}{
		"a faster candidate is Go":          {experiment.VerdictGo, -1, Pairs{1, 1, 0}},
		"a slower candidate is NoGo":        {experiment.VerdictNoGo, 1, Pairs{1, 1, 0}},
		"a slower candidate that is Go":     {experiment.VerdictGo, 1, Pairs{1, 1, 1}},
		"a faster candidate that is NoGo":   {experiment.VerdictNoGo, -1, Pairs{1, 1, 1}},
		"equal commands that are Go":        {experiment.VerdictGo, 0, Pairs{1, 1, 1}},
		"equal commands that are NoGo":      {experiment.VerdictNoGo, 0, Pairs{1, 1, 1}},
		"equal commands without a decision": {experiment.VerdictInconclusive, 0, Pairs{1, 0, 0}},
		"a difference without a decision":   {experiment.VerdictInvalid, 1, Pairs{1, 0, 0}},
	} {
		var got Pairs
		if got.Add(c.verdict, c.slower); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestCommandCounts_AccumulateOverSeedsAndCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "commands.json")
	const runs = 12
	var sums []Pairs
	for range 2 {
		counts, err := ReadCommandCounts(path, "code", "cpu")
		if err != nil {
			t.Fatal(err)
		}
		if err := counts.Simulate(runs, 2); err != nil {
			t.Fatal(err)
		}
		counts.Different.Add(experiment.VerdictGo, -1)
		counts.Measured("here")
		if err := counts.Write(path); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, counts.Simulated)
	}
	got, err := ReadCommandCounts(path, "code", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if got.Simulated.Runs != 2*runs || got.Different.Decided != 2 || !cmp.Equal(got.Seeds, []uint64{1, 2}) ||
		!cmp.Equal(got.Machines, []string{"here"}) {
		t.Errorf("counts %+v after %+v", got, sums)
	}
	for _, other := range [][2]string{{"other", "cpu"}, {"code", "wall"}} {
		if got, err := ReadCommandCounts(path, other[0], other[1]); err != nil || got.Simulated.Runs != 0 || got.By != other[1] {
			t.Errorf("counts of %v: %+v (%v)", other, got, err)
		}
	}
}

func TestSimulateCommands_CountsDoNotDependOnWorkers(t *testing.T) {
	const runs = 20
	one, err := SimulateCommands(runs, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := SimulateCommands(runs, 3, 2)
	if err != nil || one != two || one.Runs != runs {
		t.Errorf("%+v with one worker and %+v with two (%v)", one, two, err)
	}
}
