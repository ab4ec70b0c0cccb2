package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
)

func TestReal_ManyArmsAndAdaptiveRunsAreValid(t *testing.T) {
	for _, arms := range []int{1, 2, 3, 6, 16, 17} {
		t.Run(fmt.Sprint(arms), func(t *testing.T) {
			set, err := manifest.Read(filepath.Join(root, "workflows/calibration/spin-same.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			run := set.Runs[0]
			truth, err := manyArms(&run, arms)
			if allowed := arms >= 2 && arms <= 16; (err == nil) != allowed {
				t.Fatalf("%v, allowed: %v", err, allowed)
			} else if !allowed {
				return
			}
			adaptive(&run, 60)
			template, err := set.Template(&run)
			if err != nil {
				t.Fatal(err)
			}
			frozen, err := experiment.Freeze(record.Run{Name: "x", UID: "x"}, run.Spec, *template)
			if err != nil {
				t.Fatal(err)
			}
			if len(frozen.Arms) != arms {
				t.Errorf("%d arms, want %d", len(frozen.Arms), arms)
			}
			for i := range frozen.Cells {
				arm := &frozen.Arms[frozen.Cells[i].Arm]
				if want := fmt.Sprint(int(1000 * (1 + truth[arm.Name]))); frozen.Cells[i].Parameters["work"] != want {
					t.Errorf("arm %s does %s units, want %s", arm.Name, frozen.Cells[i].Parameters["work"], want)
				}
			}
		})
	}
}
