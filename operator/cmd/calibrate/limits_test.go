package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/calibrate"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

func TestReadingsAreSortedByWhatWasBesideTheTrial(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	trial := func(second int, steal float64) *record.Attempt {
		attempt := &record.Attempt{ID: fmt.Sprint(second), StartedAt: begin.Add(time.Duration(second) * time.Second), DurationSeconds: 1, Outcome: record.Succeeded}
		attempt.Noise.During.StealRatio = &steal
		return attempt
	}
	all := map[noise.Kind]readings{}
	for _, kind := range noise.Kinds {
		all[kind] = readings{}
	}
	warmup := trial(9, 0.9)
	warmup.Warmup = true
	collect(all, []*record.Attempt{trial(0, 0.01), trial(1, 0.02), warmup}, neighboured{})
	collect(all, []*record.Attempt{trial(0, 0.3), trial(1, 0.1)}, neighboured{
		Kind: "cpu", Busy: []calibrate.Busy{{From: begin, To: begin.Add(time.Second)}},
	})
	found := all["steal"]
	if len(found["quiet"]) != 2 || len(found["cpu"]) != 1 || found["cpu"][0] != 0.3 {
		t.Fatalf("%v", found)
	}
	if table := limitsTable(all); !strings.Contains(table, "| steal | 2 | 1.0 % | 2.0 % | 2.0 % | 30.0 % | 30.0 % |  |  |  |  | 2 % |\n") {
		t.Errorf("the table is:\n%s", table)
	}
}
