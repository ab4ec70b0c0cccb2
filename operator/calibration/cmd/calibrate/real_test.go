package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
)

const root = "../../../.."

func TestReal_RunsOfTheTreeAreValidAndMeasured(t *testing.T) {
	o := realOptions{workloads: []string{"spin", "pir"}, slowdowns: []string{"0", "1", "2", "5"}, neighbours: []string{"cpu", "none"}}
	rows, err := o.rows()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "workflows/calibration/*.yaml"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			at := slices.IndexFunc(rows, func(r calibrate.RealTally) bool { return fileOf(&r) == filepath.Base(file) && r.Neighbour == "" })
			if at < 0 {
				t.Fatal("no row of the table uses it")
			}
			set, err := manifest.Read(file, filepath.Join(root, "charts/assay/files/benchmarktemplates"))
			if err != nil {
				t.Fatal(err)
			}
			template, err := set.Template(&set.Runs[0])
			if err != nil {
				t.Fatal(err)
			}
			frozen, err := experiment.Freeze(record.Run{Name: "x", UID: "x"}, set.Runs[0].Spec, *template)
			if err != nil {
				t.Fatal(err)
			}
			// The true slowdown of spin is the additional work in the candidate's arguments.
			if rows[at].Workload == "spin" {
				old, more := frozen.Cells[0].Parameters["work"], frozen.Cells[1].Parameters["work"]
				want := map[float64]string{0: "1000", 0.01: "1010", 0.02: "1020", 0.05: "1050"}[rows[at].Effect]
				if old != "1000" || more != want {
					t.Errorf("work %s and %s for a slowdown of %g", old, more, rows[at].Effect)
				}
			} else if !slices.Equal(frozen.Cells[0].Argv, frozen.Cells[1].Argv) {
				t.Errorf("the arms differ: %v and %v", frozen.Cells[0].Argv, frozen.Cells[1].Argv)
			}
		})
	}
}

func TestReal_UnknownRowsAreRefused(t *testing.T) {
	for want, o := range map[string]realOptions{
		"--workload":  {workloads: []string{"sort"}},
		"--slowdown":  {workloads: []string{"spin"}, slowdowns: []string{"3"}},
		"--neighbour": {workloads: []string{"pir"}, neighbours: []string{"gpu"}},
	} {
		if _, err := o.rows(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that names %s", err, want)
		}
	}
}

func TestDocuments_HaveMarkers(t *testing.T) {
	for path, names := range map[string][]string{
		"docs/methodology/calibration.md": {"simulated", "real", "cluster"}, "docs/methodology/noise.md": {"limits"},
		"docs/history.md": {"history", "history peer", "bisections"},
	} {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "copy.md")
		if err := os.WriteFile(copied, data, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := update(copied, name, "x\n"); err != nil {
				t.Error(err)
			}
		}
	}
}
