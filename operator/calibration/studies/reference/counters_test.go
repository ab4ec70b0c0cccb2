package reference

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/record"
)

func attempt(arm, size string, warmup bool, outcome record.Outcome, reads, items float64) record.Attempt {
	return record.Attempt{
		Arm: arm, Point: "size=" + size, Warmup: warmup, Outcome: outcome, Parameters: map[string]string{"size": size, "items": "10"},
		Result: &record.Result{
			Counters:  map[string]record.Quantity{"reads": {Value: reads}, "items": {Value: items}},
			Effective: map[string]any{"share": 0.25, "path": "avx2"},
		},
	}
}

func TestCountersOf_RowsAreArmsAtPoints(t *testing.T) {
	table, err := countersOf([]record.Attempt{
		attempt("b", "1", false, record.Succeeded, 30, 100),
		attempt("b", "1", false, record.Succeeded, 10, 100),
		attempt("b", "1", false, record.Succeeded, 20, 100),
		attempt("b", "1", true, record.Succeeded, 1000, 100),
		attempt("b", "1", false, record.Failed, 1000, 100),
		attempt("b", "2", false, record.Succeeded, 40, 200),
		{Arm: "b", Outcome: record.Succeeded},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		expression string
		want       float64
	}{
		"the median of the measured attempts":      {"reads, b, size=1", 20},
		"a numeric fact":                           {"share, b, size=2", 0.25},
		"a counter with the name of a parameter":   {"counter items, b, size=2", 200},
		"a quotient of points":                     {"reads, b, size=2 over b, size=1", 2},
		"a row by the value of a parameter":        {"reads, items=10, size=2", 40},
		"a quotient of counters of the same trial": {"counter items, size=2 over reads, size=2", 5},
	} {
		t.Run(name, func(t *testing.T) {
			cells, _, err := evaluate(table, tc.expression)
			if err != nil || len(cells) != 1 || cells[0].Value != tc.want {
				t.Errorf("got %v, error %v, want %g", cells, err, tc.want)
			}
		})
	}
	cells, _, err := evaluate(table, "reads, b, size=1")
	if err != nil || cells[0].Low != 10 || cells[0].High != 30 {
		t.Errorf("got %v, error %v, want the least and the greatest, 10 and 30", cells, err)
	}
}

func TestCountersOf_WithoutAResultIsAnError(t *testing.T) {
	if _, err := countersOf([]record.Attempt{{Arm: "a", Outcome: record.Failed}}); err == nil || !strings.Contains(err.Error(), "no attempt") {
		t.Errorf("got %v", err)
	}
}
