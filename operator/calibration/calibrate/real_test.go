package calibrate

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
)

func TestReal_DisturbedTrialsOverlapANeighbour(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	attempt := func(id string, from, length float64) record.Attempt {
		return record.Attempt{ID: id, StartedAt: at(from), DurationSeconds: length, Outcome: record.Succeeded}
	}
	attempts := []record.Attempt{
		attempt("before", 0, 1), attempt("partly", 1.8, 1), attempt("mostly", 1.9, 1.5), attempt("inside", 3, 1), attempt("missed", 4, 1),
		attempt("after", 9, 1),
	}
	warmup := attempt("warmup", 3, 1)
	warmup.Warmup = true
	attempts = append(attempts, warmup)
	result := &analysis.Analysis{Verdict: "Inconclusive", Excluded: []analysis.Exclusion{{Attempt: "inside"}, {Attempt: "after"}}}
	got := Conclude(result, attempts, nil, []Busy{{at(2.5), at(4.4)}, {at(4.5), at(6)}})
	if got.Disturbed != 3 || got.Flagged != 1 || got.Quiet != 2 || got.FalseAlarms != 1 {
		t.Errorf("%+v, want 3 disturbed (mostly, inside, missed), 1 flagged, 2 quiet, 1 false alarm", got)
	}
}

func TestRealTally_Counts(t *testing.T) {
	runs := []RealRun{{Verdict: "Go"}, {Verdict: "NoGo"}, {Verdict: "NoGo"}, {Verdict: "Inconclusive"}}
	if wrong := (RealTally{Runs: runs}).Wrong(); wrong != 3 {
		t.Errorf("same program: %d wrong verdicts, want the Go and both NoGo", wrong)
	}
	slower := RealTally{Workload: "spin", Effect: 0.02, Runs: runs}
	if wrong := slower.Wrong(); wrong != 1 {
		t.Errorf("slower program: %d wrong verdicts, want the Go", wrong)
	}
	if table := RealTable([]RealTally{slower, {Workload: "spin", Runs: runs}}); !strings.Contains(table,
		"together: 3 of 4 runs had a wrong verdict, 0.7500") {
		t.Error(table)
	}
	if table := RealTable([]RealTally{slower}); strings.Contains(table, "together") ||
		!strings.Contains(table, "| spin | 2 % | none | 4 | 1 | 2 | 1 | 0 | 0.2500") {
		t.Error(table)
	}
}
