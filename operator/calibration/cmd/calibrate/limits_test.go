package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/record"
)

func TestLimits_ReadingsAreGroupedByNeighbour(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	trial := func(second int, steal float64) *record.Attempt {
		attempt := &record.Attempt{ID: fmt.Sprint(second), StartedAt: begin.Add(time.Duration(second) * time.Second), DurationSeconds: 1,
			Outcome: record.Succeeded}
		attempt.Noise.During.StealRatio = &steal
		return attempt
	}
	all := readings{}
	warmup := trial(9, 0.9)
	warmup.Warmup = true
	tried, err := limitsWith(map[string]string{"steal": "1.5%", "canary": "off"})
	if err != nil {
		t.Fatal(err)
	}
	judged := &verdicts{tried, map[string]int{}, map[under]int{}}
	collect(all, judged, []*record.Attempt{trial(0, 0.01), trial(1, 0.02), warmup}, neighboured{})
	collect(all, judged, []*record.Attempt{trial(0, 0.3), trial(1, 0.1)}, neighboured{
		Kind: "cpu", Busy: []calibrate.Busy{{From: begin, To: begin.Add(time.Second)}},
	})
	quiet, beside := all[under{"steal", "quiet"}], all[under{"steal", "cpu"}]
	if len(quiet) != 2 || len(beside) != 1 || beside[0] != 0.3 {
		t.Fatalf("%v", all)
	}
	if table := limitsTable(all); !strings.Contains(table, "| steal | 2 | 1.0 % | 2.0 % | 2.0 % | 30.0 % | 30.0 % |  |  |  |  | 2 % |\n") {
		t.Errorf("the table is:\n%s", table)
	}
	for _, row := range []string{"| steal | 1.5 % | 0.5000 [0.0945, 0.9055] | 1.0000 [0.2065, 1.0000] | - | - |", "| canary |  | 0.0000",
		"| any of them |  | 0.5000 [0.0945, 0.9055] | 1.0000"} {
		if table := judged.table(); !strings.Contains(table, row) {
			t.Errorf("the table lacks %q:\n%s", row, table)
		}
	}
}

func TestLimits_InvalidFlagsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ kind, text, says string }{
		"an unknown kind":  {"moon", "1%", "limits are"},
		"an invalid share": {"steal", "much", "allowed are shares such as"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := limitsWith(map[string]string{tc.kind: tc.text}); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
		})
	}
}
