package design

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func courseOf(edit func(*experiment.Plan)) *Course {
	exp := testExperiment(2, 2, experiment.OrderABBA, 0)
	exp.Plan.Design.Blocks, exp.Plan.Retries, exp.Plan.Budget.Trials = experiment.Blocks{Min: 4, Max: 20}, 3, 2000
	if edit != nil {
		edit(&exp.Plan)
	}
	return Begin(exp)
}

func TestFollow_WavesUntilDone(t *testing.T) {
	broken := errors.New("the runner is gone")
	valid := func(n int) Findings { return Findings{Valid: n} }
	cases := map[string]struct {
		edit     func(*experiment.Plan)
		findings []Findings
		// stops and breaks are the waves in which execution stops or fails, counted from 1.
		stops, breaks int
		blocks        []int
		done          bool
		err           string
	}{
		"a fixed design is one wave":                 {nil, []Findings{valid(4)}, 0, 0, []int{4}, true, ""},
		"lost blocks are measured again":             {nil, []Findings{{Valid: 3, Lost: 1}, valid(4)}, 0, 0, []int{4, 1}, true, ""},
		"stopped, it reports the missing blocks":     {nil, []Findings{{Valid: 1, Lost: 3}}, 1, 0, []int{4}, false, ""},
		"stopped with all it asks for, it is done":   {nil, []Findings{valid(4)}, 1, 0, []int{4}, true, ""},
		"an error ends it":                           {nil, []Findings{{Valid: 3, Lost: 1}, {}}, 0, 2, []int{4, 1}, false, "the runner is gone"},
		"a first wave that cannot be is no good end": {func(p *experiment.Plan) { p.Budget.Trials = 1 }, nil, 0, 0, nil, true, "0 blocks"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			course := courseOf(tc.edit)
			var blocks []int
			step, err := course.Follow([]Lane{{}}, func(wave *record.Wave, _ string) (Findings, bool, error) {
				blocks = append(blocks, len(wave.Blocks))
				if len(blocks) == tc.breaks {
					return Findings{}, false, broken
				}
				if len(course.Waves) != len(blocks) || wave.Wave != len(blocks)-1 {
					t.Errorf("wave %d is executed as wave %d of %d", len(blocks)-1, wave.Wave, len(course.Waves))
				}
				if want := record.BlockName(wave.Wave, course.Blocks()-1); wave.Blocks[len(wave.Blocks)-1].ID != want {
					t.Errorf("the last block of %d is %s, want %s", course.Blocks(), wave.Blocks[len(wave.Blocks)-1].ID, want)
				}
				return tc.findings[len(blocks)-1], len(blocks) == tc.stops, nil
			})
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if !slices.Equal(blocks, tc.blocks) || step.Done != tc.done {
				t.Errorf("waves of %v blocks, done %v (%s); want %v and %v", blocks, step.Done, step.Why, tc.blocks, tc.done)
			}
		})
	}
}

// The operator reads a course anew in every reconcile. It must plan the same waves as Follow.
func TestCourse_ReadAnewPlansTheSameWaves(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		findings := func(wave *record.Wave, before Findings) Findings {
			draw := rand.New(rand.NewPCG(seed, uint64(wave.Wave)))
			lost := draw.IntN(len(wave.Blocks) + 1)
			width := 0.01 + 0.02*draw.Float64()
			before.Valid, before.Lost, before.HalfWidth = before.Valid+len(wave.Blocks)-lost, before.Lost+lost, &width
			return before
		}
		edit := func(p *experiment.Plan) {
			p.Retries = random.IntN(3)
			if random.IntN(2) == 0 {
				p.Design.Stop = &experiment.Stop{RelativeHalfWidth: 0.02}
			}
		}
		lanes := []Lane{{Node: "a", Token: 1}, {Node: "b", Token: 1}}[:1+random.IntN(2)]
		followed := courseOf(edit)
		last, err := followed.Follow(lanes, func(wave *record.Wave, _ string) (Findings, bool, error) {
			return findings(wave, followed.Found), false, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		read := Begin(followed.Experiment)
		step := read.Next()
		for !step.Done {
			wave, err := read.Lay(step, lanes, nil)
			if err != nil {
				t.Fatal(err)
			}
			read = &Course{read.Experiment, append(slices.Clone(read.Waves), *wave), findings(wave, read.Found)}
			step = read.Next()
		}
		if diff := cmp.Diff(followed.Waves, read.Waves); diff != "" || step.Why != last.Why {
			t.Fatalf("seed %d: %q and %q, (-followed +read):\n%s", seed, last.Why, step.Why, diff)
		}
	}
}
