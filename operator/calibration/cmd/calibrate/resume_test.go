package main

import (
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/experiment"
)

func TestResume_ContinuesAnInterruptedCalibration(t *testing.T) {
	rows := []calibrate.RealTally{{Workload: "spin", Effect: 0.01}, {Workload: "pir", Neighbour: "cpu"}}
	o := realOptions{runs: 3, seed: 1, json: filepath.Join(t.TempDir(), "out", "runs.json")}
	tallies, err := o.resume(rows)
	if err != nil || len(tallies) != 2 || len(tallies[0].Runs)+len(tallies[1].Runs) != 0 {
		t.Fatalf("without a file: %+v, %v", tallies, err)
	}
	tallies[1].Runs = []calibrate.RealRun{{Verdict: experiment.VerdictNoGo, Seconds: 4}}
	if err := o.save(tallies); err != nil {
		t.Fatal(err)
	}
	again, err := o.resume(rows)
	if err != nil || len(again[0].Runs) != 0 || len(again[1].Runs) != 1 || again[1].Runs[0].Seconds != 4 {
		t.Fatalf("with a file: %+v, %v", again, err)
	}
	one := realOptions{runs: 3, seed: 1, json: o.json}
	if tallies, err := one.resume(rows[:1]); err != nil || one.save(tallies) != nil {
		t.Fatal(err)
	}
	if tallies, err := o.resume(rows); err != nil || len(tallies[1].Runs) != 1 {
		t.Fatalf("a row outside the selection was lost: %+v, %v", tallies, err)
	}
	o.seed = 2
	if _, err := o.resume(rows); err == nil || !strings.Contains(err.Error(), "--seed 1") {
		t.Fatalf("runs of other seeds were accepted: %v", err)
	}
}
