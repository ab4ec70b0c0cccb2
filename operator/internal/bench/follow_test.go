package bench

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/record"
)

func TestFollow_WavesFitRoomAndNoneIsInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		// blocks fit into the budget, and width is the relative half width of ten blocks.
		blocks int
		width  float64
		want   string
		why    string
	}{
		"a narrow interval ends after the first wave":     {100, 0.009, "[10]", ""},
		"waves grow until the interval is narrow":         {100, 0.02, "[10 10 20]", ""},
		"the last wave is reduced to the room":            {35, 0.1, "[10 10 15]", "±5.35 % and design.stop asks for ±1 %, and the time budget allows no further block"},
		"the first wave is complete without room":         {4, 0.1, "[10]", "the time budget allows no further block"},
		"a single block that fits is measured":            {21, 0.1, "[10 10 1]", "the time budget allows no further block"},
		"exactly the room is used and nothing is left of": {20, 0.1, "[10 10]", "the time budget allows no further block"},
	} {
		t.Run(name, func(t *testing.T) {
			question := Question{
				Commands: [][]string{{"/a"}, {"/b"}}, Names: []string{"a", "b"}, Figures: Figures{Format: "None"}, CPUs: 1, Budget: 1e9,
			}
			exp := frozen(t, &question)
			course := design.Begin(exp)
			var waves []int
			step, err := Follow(course, []design.Lane{{}}, func() int { return c.blocks - course.Blocks() },
				func(wave *record.Wave, _ string) (design.Findings, bool, error) {
					waves = append(waves, len(wave.Blocks))
					width := c.width * math.Sqrt(10/float64(course.Blocks()))
					return design.Findings{Valid: course.Blocks(), HalfWidth: &width}, false, nil
				})
			said := strings.Contains(step.Why, c.why) && (step.Why == "") == (c.why == "")
			if got := fmt.Sprint(waves); err != nil || got != c.want || !step.Done || !said {
				t.Errorf("waves %s, %+v (%v); want %s and %q", got, step, err, c.want, c.why)
			}
		})
	}
}
