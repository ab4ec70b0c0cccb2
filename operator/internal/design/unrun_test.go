package design

import (
	"fmt"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/test/cputime"
)

// An analysis is untrusted and may list any number of blocks. Planning the next step must take no longer than reading it.
func TestNext_AnalysisWithTooManyBlocksIsFast(t *testing.T) {
	exp := testExperiment(1, 2, experiment.OrderABBA, 0)
	exp.Plan.Design.Blocks = experiment.Blocks{Min: 1000, Max: 1000}
	exp.Plan.Budget.Trials = 1 << 30
	course := Begin(exp)
	for range 2 {
		wave, err := BuildWave(exp, len(course.Waves), course.Blocks(), 1000, []Lane{{}})
		if err != nil {
			t.Fatal(err)
		}
		course.Waves = append(course.Waves, *wave)
	}
	for i := range 1_000_000 {
		course.Found.Unrun = append(course.Found.Unrun, fmt.Sprintf("w000-b%04d", 5000+i%1000))
	}
	course.Found.Valid = 1000
	used := cputime.Start()
	step := course.Next()
	if took := used(); took > 2*time.Second {
		t.Errorf("the next step takes %s: %s", took, describeStep(step))
	}
}
