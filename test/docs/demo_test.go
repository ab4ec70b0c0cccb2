package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The shortened output of assay results for the demo's study.
const results = `batchSize  deltaEntries  arm          latency median  /loop [95 %]
8          0             loop         11.29 ms        1

batchSize  deltaEntries  arm          throughput        /loop [95 %]
1          0             loop         804.0 queries/s   1
8          0             loop         749.7 queries/s   1
8          0             fused-naive  603.6 queries/s   0.8084x [0.7216, 0.9057]
8          1             fused-naive  618.9 queries/s   0.7690x [0.6327, 0.9346]

batchSize  deltaEntries  arm          effectiveBandwidth  /loop [95 %]
8          0             loop         8.010 GB/s          1

NoGo  fused-naive handles 19 % fewer queries per second than loop at batchSize=8,deltaEntries=0 (at least 9 %,
  99.5 % confidence)
warning: the axis deltaEntries (0, 1) has no measurable effect on any metric of any arm
not seen: 5 blocks cannot show effects in fewer than one block in 5: an effect in 5 % of the blocks is in none
  of them in 77 % of runs
120 of 120 trials used (0 warm-ups, 0 failed, 0 invalid, 0 missing)
verdict: NoGo

Look further:
`

const shown = "```\n" + `batchSize  deltaEntries  arm          throughput        /loop [95 %]
8          0             loop         749.7 queries/s   1
8          0             fused-naive  603.6 queries/s   0.8084x [0.7216, 0.9057]
…
NoGo  fused-naive handles 19 % fewer queries per second than loop at batchSize=8,deltaEntries=0 (at least 9 %,
  99.5 % confidence)
120 of 120 trials used (0 warm-ups, 0 failed, 0 invalid, 0 missing)
verdict: NoGo
` + "```\n"

func TestDemo_PageShowsTheResult(t *testing.T) {
	const page = "before\n<!-- demo -->\nof long ago\n<!-- /demo -->\nafter\n"
	for sentence, tc := range map[string]struct {
		results, page string
		want          []string
	}{
		"a whole demo":                     {results, page, []string{"before\n<!-- demo -->\nOn ", " CPUs (", shown + "<!-- /demo -->\nafter\n"}},
		"a demo without a verdict":         {strings.ReplaceAll(results, "verdict: ", "phase: "), page, nil},
		"a demo of something else":         {strings.ReplaceAll(results, "throughput", "goodput"), page, nil},
		"a page that shows no demo":        {results, "before\nafter\n", nil},
		"a page whose demo does not end":   {results, "before\n<!-- demo -->\nafter\n", nil},
		"a demo that has not been started": {"", page, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			results, target := filepath.Join(dir, "demo.txt"), filepath.Join(dir, "page.md")
			if err := os.WriteFile(target, []byte(tc.page), 0o644); err != nil {
				t.Fatal(err)
			}
			if tc.results != "" {
				if err := os.WriteFile(results, []byte(tc.results), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command(filepath.Join(root, "hack", "readme-demo.sh"), results, target).CombinedOutput()
			got, readErr := os.ReadFile(target)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if tc.want == nil && (err == nil || string(got) != tc.page) {
				t.Errorf("%v, and the page is\n%s\n%s", err, got, out)
			}
			for _, part := range tc.want {
				if err != nil || !strings.Contains(string(got), part) {
					t.Errorf("%v: the page lacks\n%s\n%s\n%s", err, part, got, out)
				}
			}
		})
	}
}

func TestDemo_ReadmeHasAPlaceForTheResult(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(readme), "\n<!-- demo -->\n")
	inside, _, ends := strings.Cut(rest, "\n<!-- /demo -->\n")
	if !begins || !ends || !strings.Contains(inside, "\nverdict: ") {
		t.Errorf("README.md lacks the result of make demo between <!-- demo --> and <!-- /demo -->: make readme-demo writes it")
	}
}
