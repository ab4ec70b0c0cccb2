package explain_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

// Warnings report contradictions in a ledger, and deviations from the design of the run.
func TestStrictWarnings_OverlapAndFewBlocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*analyzed.Run)
		want  string
	}{
		"nothing": {func(*analyzed.Run) {}, ""},
		"trials that began before the one before had ended": {func(l *analyzed.Run) {
			for i := range l.Attempts {
				l.Attempts[i].DurationSeconds = 5000
			}
		}, "trials of 10 blocks ran at the same time by their own clock (w000-b0000: slot 1 began 5e+03 s before slot 0 ended)"},
		"trials a clock's adjustment apart": {func(l *analyzed.Run) {
			for i := range l.Attempts {
				l.Attempts[i].DurationSeconds += 0.05
			}
		}, ""},
		"more blocks than the design allows": {func(l *analyzed.Run) { l.Exp.Plan.Design.Blocks.Max = 9 }, "10 screening blocks ran every arm at every point, and spec.design.blocks.max allows 9"},
		"fewer blocks than asked for":        {func(l *analyzed.Run) { l.Exp.Plan.Design.Blocks.Min = 40 }, "the figures rest on 10 blocks, and spec.design.blocks.min asks for at least 40"},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			c.spoil(l)
			said := strings.Join(l.Analyze().Warnings, "\n")
			if c.want == "" && (strings.Contains(said, "at the same time") || strings.Contains(said, "blocks.m")) ||
				!strings.Contains(said, c.want) {
				t.Errorf("warnings:\n%s\nwant %q", said, c.want)
			}
		})
	}
}

func TestUnfinished_TrialsAreReported(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulateScan(t, 3, fixture.Machine{}, nil)
	markers := append(l.CutShort("loop", 1, true), l.CutShort("fused-m4r", 1, false)...)
	found := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Unfinished: markers}, 0)
	got := strings.Join(found.Warnings, "\n")
	for _, want := range []string{"1 of arm fused-m4r, 1 of arm loop", markers[0].ID, "another execution of 1 of them ended"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}
}
