package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figureName is how programs name a figure of verdicts.
var figureName = regexp.MustCompile(`"(verdict\.[a-z0-9_.]+)"`)

// ofSentences are the figures that a sentence describes, in place of a row: those of six arms compare one machine's own hours, and the
// highest coverage stands in the row of the lowest.
var ofSentences = []string{
	"verdict.coverage.95.highest", "verdict.real.six_arms.used_share", "verdict.real.six_arms.halfwidth_over_all_trials",
}

// A measured claim without a row could become false unnoticed.
func TestFigures_OfVerdictsHaveRows(t *testing.T) {
	page := textOf(t, "docs/methodology/calibration.md")
	var names []string
	for _, folder := range []string{"operator/calibration/calibrate", "operator/internal/fixture", "operator/calibration/cmd/calibrate"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range figureName.FindAllStringSubmatch(string(text), -1) {
				names = append(names, found[1])
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) < 10 {
		t.Fatalf("the programs name %d figures: where are they?", len(names))
	}
	for _, name := range names {
		if !strings.Contains(page, "\n| `"+name+"`") && !slices.Contains(ofSentences, name) {
			t.Errorf("docs/methodology/calibration.md lacks a row for %s in the figures of make bench-verdict: add its meaning, its target "+
				"and the measured value", name)
		}
	}
}
