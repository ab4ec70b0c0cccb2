package design

import (
	"errors"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestLay_StepIsCutToFit(t *testing.T) {
	exp := &experiment.Experiment{Cells: []record.Cell{{}}, Points: []record.Point{{}}, Arms: []record.Arm{{Name: "only"}}}
	exp.Plan.Design.Seed = 1
	limit := func(fixed, perBlock, allowed int) Fits {
		return func(_ *experiment.Experiment, wave *record.Wave, _ []Lane) error {
			if got := fixed + perBlock*len(wave.Blocks); got > allowed {
				return &TooLarge{What: "the Workflow", Found: got, Allowed: allowed, Blocks: len(wave.Blocks)}
			}
			return nil
		}
	}
	cases := map[string]struct {
		fits Fits
		want int
		err  string
	}{
		"anything fits":                        {nil, 1000, ""},
		"all of it fits":                       {limit(10, 1, 1010), 1000, ""},
		"as many as fit beside the fixed part": {limit(500, 10, 2000), 150, ""},
		"next to nothing fits beside it":       {limit(990_000, 400, 1_000_000), 25, ""},
		"exactly one":                          {limit(500, 10, 510), 1, ""},
		"not even one":                         {limit(500, 10, 509), 0, "the Workflow of 1 block"},
		"something that fewer blocks cure not": {func(*experiment.Experiment, *record.Wave, []Lane) error { return errors.New("a brace") }, 0, "a brace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tries := 0
			counted := func(exp *experiment.Experiment, wave *record.Wave, lanes []Lane) error {
				tries++
				return tc.fits(exp, wave, lanes)
			}
			if tc.fits == nil {
				counted = nil
			}
			wave, err := Begin(exp).Lay(Step{Purpose: record.Screen, Blocks: 1000}, []Lane{{Node: "a"}}, counted)
			// Limit the tries, because each builds a megabyte.
			if tries > 5 {
				t.Errorf("%d tries", tries)
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// The cut may be slightly too small.
			if got := len(wave.Blocks); got > tc.want || got < tc.want*95/100 {
				t.Errorf("%d blocks, want about %d", got, tc.want)
			}
		})
	}
}

// A run with more blocks than four digits can number gets them, each with a unique name.
func TestBuildWave_BlockNumbersBeyondFourDigits(t *testing.T) {
	exp := &experiment.Experiment{Cells: []record.Cell{{}}, Points: []record.Point{{}}, Arms: []record.Arm{{Name: "only"}}}
	exp.Plan.Design.Blocks = experiment.Blocks{Min: 12000, Max: 12000}
	exp.Plan.Budget.Trials = 1 << 30
	var waves []record.Wave
	seen := map[string]bool{}
	last := ""
	for {
		step := (&Course{exp, waves, Findings{Valid: len(seen)}}).Next()
		if step.Done {
			break
		}
		// As many as a Workflow holds, more or less.
		step.Blocks = min(step.Blocks, 700)
		wave, err := BuildStep(exp, len(waves), len(seen), step, []Lane{{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range wave.Blocks {
			if seen[block.ID] || record.CompareNames(last, block.ID) >= 0 {
				t.Fatalf("block %s comes after %s", block.ID, last)
			}
			seen[block.ID], last = true, block.ID
		}
		waves = append(waves, *wave)
	}
	if len(seen) != 12000 || last != "w017-b11999" {
		t.Errorf("%d blocks, the last is %s", len(seen), last)
	}
}
