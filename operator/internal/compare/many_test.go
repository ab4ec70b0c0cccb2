package compare

import (
	"strconv"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
)

// Each cell of an experiment may differ in another way from those of the other run.
func TestCells_CostIsLinearInDifferences(t *testing.T) {
	const cells, most = 40_000, 5 * time.Second
	side := func(other string) *experiment.Experiment {
		exp := &experiment.Experiment{Arms: []record.Arm{{Name: "x"}}}
		for i := range cells {
			exp.Points = append(exp.Points, record.Point{Key: strconv.Itoa(i)})
			exp.Cells = append(exp.Cells, record.Cell{Point: i, Parameters: map[string]string{"seed": other + strconv.Itoa(i)}})
		}
		return exp
	}
	used := cputime.Start()
	if found := parameters(side("a"), side("b")); len(found) != cells {
		t.Errorf("%d differences", len(found))
	}
	if took := used(); took > most {
		t.Errorf("it took %s", took)
	}
}
