package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
)

// estimate returns the analysis's estimate for blocks with these logarithms.
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

func warned(r Run, warning string) Run {
	r.Analysis.Warnings = []string{warning}
	return r
}

func arm(metric string, e analysis.Estimate) analysis.ArmResult {
	return analysis.ArmResult{Point: "size=1", Arm: "x", Metric: metric, Statistic: "median", Estimate: e}
}

// plain returns the estimate of a level: Student's interval of the values.
func plain(values []float64, confidence float64) analysis.Estimate {
	mean, sd := stat.MeanStdDev(values, nil)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(len(values) - 1)}.Quantile((1+confidence)/2) * sd / math.Sqrt(float64(len(values)))
	low, high := mean-half, mean+half
	return analysis.Estimate{Value: mean, Unit: "s", Low: &low, High: &high, Blocks: len(values)}
}

// compared compares two runs that have no reason not to be compared.
func compared(t *testing.T, a, b Run) Comparison {
	t.Helper()
	out, err := Runs(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInterval_HasItsNominalCoverage(t *testing.T) {
	const runs = 4000
	for name, c := range map[string]struct {
		estimate func(normal []float64) analysis.Estimate
		sizes    [2]int
		spreads  [2]float64
		highest  float64
	}{
		// Different spreads and numbers of blocks: where Student's pooled test would be wrong.
		"on logarithms": {func(x []float64) analysis.Estimate { return estimate(x, 0.95) }, [2]int{5, 12}, [2]float64{0.01, 0.05}, 0.965},
		"on the plain scale": {func(x []float64) analysis.Estimate {
			for i := range x {
				x[i]++
			}
			return plain(x, 0.95)
		}, [2]int{5, 12}, [2]float64{0.01, 0.05}, 0.965},
		"on the plain scale, with a large spread": {func(x []float64) analysis.Estimate {
			for i := range x {
				x[i]++
			}
			return plain(x, 0.95)
		}, [2]int{12, 12}, [2]float64{0.3, 0.3}, 0.97},
		// Each of them has a separate quantile, which is wide for few blocks.
		"of few blocks": {func(x []float64) analysis.Estimate {
			for i := range x {
				x[i]++
			}
			return plain(x, 0.95)
		}, [2]int{3, 3}, [2]float64{0.01, 0.01}, 0.999},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			draw := func(side int) []float64 {
				out := make([]float64, c.sizes[side])
				for i := range out {
					out[i] = random.NormFloat64() * c.spreads[side]
				}
				return out
			}
			covered := 0
			for range runs {
				got := compared(t, run("a", nil, arm("latency", c.estimate(draw(0)))), run("b", nil, arm("latency", c.estimate(draw(1)))))
				ratio := got.Rows[0].Ratio
				if ratio.Low == nil || ratio.High == nil {
					t.Fatalf("no interval of %+v", got.Rows[0])
				}
				if *ratio.Low <= 1 && 1 <= *ratio.High {
					covered++
				}
			}
			if share := float64(covered) / runs; share < 0.935 || share > c.highest {
				t.Errorf("a 95 %% interval covered %.1f %%", 100*share)
			}
		})
	}
}

// A foreign analysis may hold any numbers, and its comparison can still be encoded.
func TestRatio_OfAnyNumbersIsANumber(t *testing.T) {
	numbers := []float64{5e-324, 1e-300, 1e-160, 1, 1e160, 1e300, math.MaxFloat64}
	for _, first := range numbers {
		for _, second := range numbers {
			of := func(value float64) analysis.Estimate {
				low, high := value/2, min(2*value, math.MaxFloat64)
				return analysis.Estimate{Value: value, Unit: "s", Low: &low, High: &high, Blocks: 5}
			}
			ratio := compared(t, run("a", nil, arm("latency", of(first))), run("b", nil, arm("latency", of(second)))).Rows[0].Ratio
			if _, err := json.Marshal(ratio); err != nil {
				t.Errorf("%g over %g: %v", second, first, err)
			}
			if first == second && first == 1 && (ratio == nil || ratio.Low == nil) {
				t.Error("there is no interval")
			}
		}
	}
}

// The chosen unit does not change a ratio.
func TestRatio_IsIndependentOfTheScale(t *testing.T) {
	of := func(scale float64, logs ...float64) analysis.Estimate {
		e := estimate(logs, 0.95)
		low, high := *e.Low*scale, *e.High*scale
		e.Value, e.Low, e.High = e.Value*scale, &low, &high
		return e
	}
	var want *analysis.Estimate
	for _, scale := range []float64{1, 1e-9, 1e12, 1e-90, 1e90, 1e-200, 1e200} {
		ratio := compared(t, run("a", nil, arm("latency", of(scale, 0, 0.1, -0.1, 0.05))),
			run("b", nil, arm("latency", of(scale, 0.2, 0.25, 0.1, 0.3)))).Rows[0].Ratio
		if want == nil {
			want = ratio
		}
		if ratio == nil || ratio.Low == nil || math.Abs(*ratio.Low / *want.Low - 1) > 1e-9 || math.Abs(*ratio.High / *want.High - 1) > 1e-9 {
			t.Errorf("in units of %g it is %s, and %s in units of 1", scale, analysis.Describe(ratio), analysis.Describe(want))
		}
	}
}

// Each column says the confidence that its own intervals have.
func TestConfidence_IsThatOfEachRun(t *testing.T) {
	a, b := run("a", nil, arm("latency", estimate([]float64{0, 0.1, -0.1}, 0.99))), run("b", nil)
	a.Analysis.Confidence = 0.99
	for name, got := range map[string]Comparison{"first": compared(t, a, b), "second": compared(t, b, a)} {
		own, other := got.ConfidenceA, got.ConfidenceB
		if name == "second" {
			own, other = other, own
		}
		if own != 0.99 || other != 0.95 || got.Confidence != 0.95 {
			t.Errorf("as the %s: %+v", name, got)
		}
	}
}

// The author of an experiment chooses the number of cells and their parameters.
func TestParameters_CostIsLinearInDifferences(t *testing.T) {
	side := func(value string) Run {
		r := run("a", nil)
		r.Experiment.Cells, r.Experiment.Points = nil, nil
		for i := range 1500 {
			key := fmt.Sprintf("size=%d", i)
			parameters := map[string]string{"every": value}
			for j := range 40 {
				parameters[fmt.Sprintf("p%d", j)] = fmt.Sprintf("%s%d-%d", value, i, j)
			}
			r.Experiment.Points = append(r.Experiment.Points, record.Point{Key: key})
			r.Experiment.Cells = append(r.Experiment.Cells, record.Cell{Point: i, Parameters: parameters})
		}
		return r
	}
	used := cputime.Start()
	got := compared(t, side("a"), side("b"))
	if want := 1500*40 + 1; len(got.Parameters) != want {
		t.Errorf("%d differ, want %d", len(got.Parameters), want)
	}
	if took := used(); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestRatio_OtherUnitsAreRejected(t *testing.T) {
	inMs := plain([]float64{1, 2, 3}, 0.95)
	inMs.Unit = "ms"
	_, err := Runs(run("a", nil, arm("latency", plain([]float64{1, 2, 3}, 0.95))), run("b", nil, arm("latency", inMs)))
	const want = `a and b: metrics[latency].unit: found "s" in the first and "ms" in the second`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestRuns(t *testing.T) {
	low := 0.5
	one := estimate([]float64{0, 0.01, -0.01}, 0.95)
	lopsided, toZero, bare := one, one, one
	lopsided.Low, toZero.Low, bare.Low, bare.High = &low, new(float64), nil, nil
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
		"the warnings of each run are included": {
			run("a", nil, arm("latency", one)), warned(run("b", nil, arm("latency", one)), "arm x lost 10 of 20 trials"),
			func(t *testing.T, c Comparison) {
				if len(c.WarningsA) != 0 || !slices.Equal(c.WarningsB, []string{"arm x lost 10 of 20 trials"}) {
					t.Errorf("%q and %q", c.WarningsA, c.WarningsB)
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
		"an interval that is not symmetric gives one that is as far on its side": {
			run("a", nil, arm("latency", one)), run("b", nil, arm("latency", lopsided)),
			func(t *testing.T, c Comparison) {
				if r := c.Rows[0].Ratio; r == nil || r.Low == nil || math.Abs(*r.Low-0.5) > 0.01 || *r.High > 1.05 {
					t.Errorf("ratio %+v", analysis.Describe(r))
				}
			},
		},
		"an interval down to 0 gives a ratio without one": {
			run("a", nil, arm("latency", toZero)), run("b", nil, arm("latency", one)),
			func(t *testing.T, c Comparison) {
				if r := c.Rows[0].Ratio; r == nil || r.Low != nil || r.High != nil {
					t.Errorf("ratio %+v", r)
				}
			},
		},
		"an estimate without an interval gives a ratio without one": {
			run("a", nil, arm("latency", bare)), run("b", nil, arm("latency", one)),
			func(t *testing.T, c Comparison) {
				if r := c.Rows[0].Ratio; r == nil || r.Low != nil || r.High != nil {
					t.Errorf("ratio %+v", r)
				}
			},
		},
		"a value that is not positive has no ratio": {
			run("a", nil, arm("latency", analysis.Estimate{Value: 0, Unit: "s", Blocks: 5})), run("b", nil, arm("latency", one)),
			func(t *testing.T, c Comparison) {
				if c.Rows[0].Ratio != nil {
					t.Errorf("ratio %+v", c.Rows[0].Ratio)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, compared(t, test.a, test.b)) })
	}
}
