package experiment

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestFreeze_GateOnWorseDirectionIsRejected(t *testing.T) {
	for _, c := range []struct {
		metric, bound string
		op, meant     assayv1alpha1.GateOperator // Meant is empty where the op is right.
	}{
		{"latency", "1.1", assayv1alpha1.RatioAtMost, ""}, {"latency", "0.9", assayv1alpha1.RatioAtMost, ""}, {"latency", "2ms", assayv1alpha1.AtMost, ""},
		{"latency", "1.1", assayv1alpha1.RatioAtLeast, assayv1alpha1.RatioAtMost}, {"latency", "0.9", assayv1alpha1.RatioAtLeast, assayv1alpha1.RatioAtMost},
		{"latency", "2ms", assayv1alpha1.AtLeast, assayv1alpha1.AtMost},
		{"throughput", "1.1", assayv1alpha1.RatioAtLeast, ""}, {"throughput", "0.9", assayv1alpha1.RatioAtLeast, ""}, {"throughput", "2k", assayv1alpha1.AtLeast, ""},
		{"throughput", "1.1", assayv1alpha1.RatioAtMost, assayv1alpha1.RatioAtLeast}, {"throughput", "0.9", assayv1alpha1.RatioAtMost, assayv1alpha1.RatioAtLeast},
		{"throughput", "2k", assayv1alpha1.AtMost, assayv1alpha1.AtLeast},
	} {
		for _, allowed := range []bool{false, true} {
			spec := testSpec()
			spec.Gates = []assayv1alpha1.Gate{{Name: "g", Metric: c.metric, Op: c.op, Bound: c.bound, AllowWorse: allowed}}
			_, err := freezeAndCheck(t, spec, testTemplate())
			if refused := c.meant != "" && !allowed; (err != nil) != refused {
				t.Errorf("%s %s %s, allowWorse %v: %v", c.metric, c.op, c.bound, allowed, err)
			} else if refused && (!strings.Contains(err.Error(), "spec.gates[0].op: ") ||
				!strings.Contains(err.Error(), fmt.Sprintf("use %s, or set allowWorse: true", c.meant))) {
				t.Errorf("%s %s: %v", c.metric, c.op, err)
			}
		}
	}
}

func TestFreeze_CompletesGates(t *testing.T) {
	for name, c := range map[string]struct {
		gate assayv1alpha1.Gate
		says string
	}{
		"all trials":                   {assayv1alpha1.Gate{Name: "completes"}, ""},
		"a share":                      {assayv1alpha1.Gate{Name: "done", Bound: "0.95", Candidate: "fused"}, ""},
		"a percentage of the baseline": {assayv1alpha1.Gate{Name: "done", Bound: "95%", Candidate: "loop"}, ""},
		"none at all":                  {assayv1alpha1.Gate{Name: "done", Bound: "0"}, `spec.gates[0].bound: invalid bound "0": allowed are shares of the trials`},
		"more than all":                {assayv1alpha1.Gate{Name: "done", Bound: "101%"}, "spec.gates[0].bound"},
		"a duration":                   {assayv1alpha1.Gate{Name: "done", Bound: "5ms"}, "spec.gates[0].bound"},
		"no arm":                       {assayv1alpha1.Gate{Name: "done", Candidate: "other"}, `spec.gates[0].candidate: invalid candidate "other": allowed are loop, fused`},
		"a direction":                  {assayv1alpha1.Gate{Name: "done", AllowWorse: true}, "spec.gates[0].allowWorse"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			c.gate.Op = assayv1alpha1.Completes
			spec.Gates = []assayv1alpha1.Gate{c.gate}
			if _, err := freezeAndCheck(t, spec, testTemplate()); (err == nil) != (c.says == "") || err != nil &&
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
	spec := testSpec()
	spec.Gates = []assayv1alpha1.Gate{{Name: "completes", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1"}}
	if _, err := freezeAndCheck(t, spec, testTemplate()); err == nil ||
		!strings.Contains(err.Error(), "is the name of the gate that every run has") {
		t.Errorf("another gate named completes: %v", err)
	}
}

func TestCompletions_UncoveredCellsHaveImplicitGate(t *testing.T) {
	spec := testSpec()
	spec.Gates = []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9", Candidate: "fused",
		At: values{"batchSize": "8"}}}
	frozen, err := freezeAndCheck(t, spec, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]int]string{}
	for _, c := range frozen.Completions() {
		for _, point := range c.Points {
			if at := [2]int{point, c.Arm}; seen[at] != "" {
				t.Errorf("%v is looked at by %s and %s", at, seen[at], c.Gate.Name)
			} else {
				seen[at] = c.Gate.Name
			}
		}
	}
	for point := range frozen.Points {
		for arm := range frozen.Arms {
			want := CompletesGate
			if frozen.Arms[arm].Name == "fused" && frozen.Points[point].Parameters["batchSize"] == "8" {
				want = "done"
			}
			if got := seen[[2]int{point, arm}]; got != want {
				t.Errorf("%s at %s: %q, want %q", frozen.Arms[arm].Name, frozen.Points[point].Key, got, want)
			}
		}
	}
}

func TestEarlyStopping_SampleCounts(t *testing.T) {
	for _, c := range []struct {
		share         float64
		overruns, min int
	}{
		// MLPerf LoadGen: single stream, 99th percentile.
		{0.99, 0, 459}, {0.99, 1, 662}, {0.95, 0, 90}, {0.90, 0, 44}, {0.5, 0, 7}, {0.5, 1, 11}, {0.9999, 1, 66_381},
	} {
		if got := EarlyStopping(c.share, 0.99, c.overruns); got != c.min {
			t.Errorf("p%g with %d overruns: %d, want %d", 100*c.share, c.overruns, got, c.min)
		}
	}
	for statistic, want := range map[Statistic]int{
		StatisticP50: 11, StatisticP90: 100, StatisticP95: 200, StatisticP99: 1000, StatisticP999: 10_000, StatisticP9999: 100_000,
		StatisticMedian: 0,
	} {
		if got := MinSamples(statistic); got != want {
			t.Errorf("%s needs %d samples, want %d", statistic, got, want)
		}
	}
}

// The product of samples and trials must not overflow.
func TestFreeze_HugeSampleCountDoesNotOverflow(t *testing.T) {
	for iterations, enough := range map[string]bool{
		"10": true, "9": false, "4611686018427387904": true, "9223372036854775807": true, "0": false, "-9223372036854775807": false,
	} {
		spec := testSpec()
		spec.Parameters = values{"iterations": iterations}
		spec.Gates = []assayv1alpha1.Gate{
			{Name: "g", Metric: "latency", Statistic: assayv1alpha1.StatisticP95, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}}
		_, err := Freeze(testRun, spec, testTemplate())
		if (err == nil) != enough || !enough && !strings.Contains(err.Error(), "p95 of latency needs at least 200 samples") {
			t.Errorf("with %s iterations: %v", iterations, err)
		}
	}
}

func TestParseBound_ScaledBoundEqualsDecimal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		digits := strconv.Itoa(random.IntN(1e6)) + "." + strconv.Itoa(random.IntN(1e4))
		for suffix, exponent := range map[string]string{"ms": "e-3", "us": "e-6", "ns": "e-9", "s": "", "m": "e-3", "k": "e3", "G": "e9"} {
			want, err := strconv.ParseFloat(digits+exponent, 64)
			if got, err2 := parseBound(digits+suffix, "s"); err != nil || err2 != nil || got != want {
				t.Fatalf("%s%s is %v, want %v (%v, %v)", digits, suffix, got, want, err, err2)
			}
		}
	}
}
