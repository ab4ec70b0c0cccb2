package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// estimate is what the analysis would say of blocks with these logarithms.
func estimate(logs []float64, confidence float64) analysis.Estimate {
	mean, sd := stat.MeanStdDev(logs, nil)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(len(logs) - 1)}.Quantile((1+confidence)/2) * sd / math.Sqrt(float64(len(logs)))
	low, high := math.Exp(mean-half), math.Exp(mean+half)
	return analysis.Estimate{Value: math.Exp(mean), Unit: "s", Low: &low, High: &high, Blocks: len(logs)}
}

func run(name string, environment map[string]any, arms ...analysis.ArmResult) Run {
	result := &analysis.Analysis{Confidence: 0.95, Environment: environment, Arms: arms}
	result.Run.Name = name
	return Run{&experiment.Experiment{
		Points: []record.Point{{Key: "size=1"}}, Arms: []record.Arm{{Name: "x"}},
		Cells: []record.Cell{{Parameters: map[string]string{"size": "1", "rows": "10"}}},
	}, result}
}

func withRows(r Run, rows string) Run {
	r.Experiment.Cells[0].Parameters["rows"] = rows
	return r
}

func arm(metric string, e analysis.Estimate) analysis.ArmResult {
	return analysis.ArmResult{Point: "size=1", Arm: "x", Metric: metric, Statistic: "median", Estimate: e}
}

func TestTheIntervalCoversTheTruthAsOftenAsItSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, sd float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = random.NormFloat64() * sd
		}
		return out
	}
	const runs = 4000
	covered := 0
	for range runs {
		// Different spreads and numbers of blocks: where Student's pooled test would be wrong.
		got := Runs(run("a", nil, arm("latency", estimate(draw(5, 0.01), 0.95))), run("b", nil, arm("latency", estimate(draw(12, 0.05), 0.95))))
		ratio := got.Rows[0].Ratio
		if *ratio.Low <= 1 && 1 <= *ratio.High {
			covered++
		}
	}
	if share := float64(covered) / runs; share < 0.935 || share > 0.965 {
		t.Errorf("a 95 %% interval covered %.1f %%", 100*share)
	}
}

func TestRuns(t *testing.T) {
	low := 0.5
	one := estimate([]float64{0, 0.01, -0.01}, 0.95)
	lopsided := one
	lopsided.Low = &low
	for name, test := range map[string]struct {
		a, b  Run
		check func(*testing.T, Comparison)
	}{
		"machines that differ get no ratio, and the keys are named": {
			run("a", map[string]any{"cpuModel": "x", "smt": true}, arm("latency", one)),
			run("b", map[string]any{"cpuModel": "y"}, arm("latency", one)),
			func(t *testing.T, c Comparison) {
				want := []Difference{{"cpuModel", "x", "y"}, {"smt", "true", "(absent)"}}
				if diff := cmp.Diff(want, c.Environment); diff != "" || c.Rows[0].Ratio != nil {
					t.Errorf("%s, ratio %v", diff, c.Rows[0].Ratio)
				}
			},
		},
		"parameters that differ are named": {
			run("a", nil, arm("latency", one)), withRows(run("b", nil, arm("latency", one)), "20"),
			func(t *testing.T, c Comparison) {
				if diff := cmp.Diff([]Difference{{"rows", "10", "20"}}, c.Parameters); diff != "" {
					t.Error(diff)
				}
			},
		},
		"a figure that only one run has is named": {
			run("a", nil, arm("latency", one), arm("memory", one)), run("b", nil, arm("latency", one), arm("throughput", one)),
			func(t *testing.T, c Comparison) {
				if len(c.Rows) != 1 || len(c.OnlyA) != 1 || c.OnlyA[0] != "memory median of x at size=1" || len(c.OnlyB) != 1 {
					t.Errorf("%+v", c)
				}
			},
		},
		"an interval that is not Student's gives a ratio without one": {
			run("a", nil, arm("latency", one)), run("b", nil, arm("latency", lopsided)),
			func(t *testing.T, c Comparison) {
				if r := c.Rows[0].Ratio; r == nil || r.Low != nil {
					t.Errorf("ratio %+v", r)
				}
			},
		},
		"a value that is not positive has no ratio": {
			run("a", nil, arm("latency", analysis.Estimate{Value: 0, Blocks: 5})), run("b", nil, arm("latency", one)),
			func(t *testing.T, c Comparison) {
				if c.Rows[0].Ratio != nil {
					t.Errorf("ratio %+v", c.Rows[0].Ratio)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, Runs(test.a, test.b)) })
	}
}
