package analyze_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

// anyScenario is a machine with a random subset of the effects that the method allows for.
func anyScenario(random *rand.Rand) fixture.Scenario {
	pick := func(of ...float64) float64 { return of[random.IntN(len(of))] }
	out := fixture.Scenario{
		Trial: pick(0, 0.001, 0.01), Shape: []fixture.Shape{fixture.Normal, fixture.Heavy, fixture.Outliers, fixture.Skewed}[random.IntN(4)],
		Candidate: pick(0, 0, 3), Block: pick(0, 0.05), Drift: pick(0, 0, 0.02), Nodes: random.IntN(5), NodeSpeed: pick(0, 0.1),
		NodeRatio: pick(0, 0, 0.02), Wander: pick(0, 0, 0.02), Persistence: 0.8,
	}
	if random.IntN(3) == 0 {
		out.Clock, out.CandidateClock, out.Seconds = pick(1e-3, 1.0/64), pick(0, 1e-3), [2]float64{5e-3, 0.2}
	}
	return out
}

// anyRun is one of it, of two arms with a gate on their ratio and one on the candidate's time.
func anyRun(t *testing.T, random *rand.Rand, unit string) *analyzed.Run {
	t.Helper()
	scenario, blocks := anyScenario(random), int32(3+random.IntN(14))
	exp, err := fixture.PairExperiment(func(spec *fixture.RunSpec) {
		spec.Design.Blocks = assayv1alpha1.Blocks{Min: blocks, Max: blocks}
		spec.Design.BlockCorrelation = []string{"", "", "0.5"}[random.IntN(3)]
		spec.Gates = append(spec.Gates, assayv1alpha1.Gate{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "1s"})
		if blocks < 6 {
			spec.Design.BlockCorrelation = ""
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	exp.Plan.Metrics[0].Unit, exp.Plan.Gates[0].AllowWorse = unit, true
	exp.Plan.Gates[0].Bound = ptr.To([]float64{0.98, 1, 1.02}[random.IntN(3)])
	wave, err := simulateOn(exp, scenario, int(blocks))
	if err != nil {
		t.Fatal(err)
	}
	effect := []float64{-0.02, 0, 0.01, 0.02, 0.1}[random.IntN(5)]
	l := &analyzed.Run{Exp: exp, Waves: []record.Wave{*wave}}
	l.Attempts = fixture.NewWorld(scenario, effect, random.Uint64(), 1).Run(exp, wave)
	for i := range l.Attempts {
		l.Attempts[i].Result.Metrics["time"].Unit = unit
	}
	exp.Plan.Gates[1].Bound = ptr.To(*l.Attempts[0].Result.Metrics["time"].Value * (0.95 + 0.1*random.Float64()))
	return l
}

// A verdict depends on the measurements alone. The names of arms and nodes, the date and the unit do not change it, and exchanging the
// baseline with the candidate inverts it.
func TestVerdict_InvariantUnderNamesUnitsAndDates(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(61, 67))
	same := func(x float64) float64 { return x }
	type change = func(exp *experiment.Experiment, wave *record.Wave, a *record.Attempt)
	for name, c := range map[string]struct {
		unit   string
		gates  int
		change change
		// estimate transforms an end of an estimate, and level one of a level.
		estimate, level func(float64) float64
	}{
		"arms are called otherwise": {"s", 2, func(exp *experiment.Experiment, wave *record.Wave, a *record.Attempt) {
			names := map[string]string{"old": "zz", "new": "aa"}
			if a != nil {
				a.Arm = names[a.Arm]
				return
			}
			for i := range exp.Arms {
				exp.Arms[i].Name, wave.Arms[i].Name = names[exp.Arms[i].Name], names[wave.Arms[i].Name]
			}
		}, same, same},
		"nodes are called otherwise": {"s", 2, func(_ *experiment.Experiment, wave *record.Wave, a *record.Attempt) {
			rename := func(lease **record.Lease) {
				if *lease != nil {
					*lease = &record.Lease{Node: fmt.Sprintf("machine-%d", 9-(*lease).Token), Token: (*lease).Token}
				}
			}
			if a != nil {
				rename(&a.Lease)
				return
			}
			for i := range wave.Blocks {
				rename(&wave.Blocks[i].Lease)
			}
		}, same, same},
		"it was another year": {"s", 2, func(_ *experiment.Experiment, _ *record.Wave, a *record.Attempt) {
			if a != nil {
				a.StartedAt = a.StartedAt.Add(-3 * 365 * 24 * time.Hour)
			}
		}, same, same},
		"a size is written in a smaller unit": {"By", 2, func(exp *experiment.Experiment, _ *record.Wave, a *record.Attempt) {
			if a != nil {
				*a.Result.Metrics["time"].Value *= 1 << 20
				return
			}
			exp.Plan.Gates[1].Bound = ptr.To(*exp.Plan.Gates[1].Bound * (1 << 20))
		}, same, func(x float64) float64 { return x * (1 << 20) }},
		"the other arm is the baseline": {"s", 1, func(exp *experiment.Experiment, wave *record.Wave, a *record.Attempt) {
			if a != nil {
				return
			}
			for i := range exp.Arms {
				exp.Arms[i].Baseline = !exp.Arms[i].Baseline
				wave.Arms[i].Baseline = !wave.Arms[i].Baseline
			}
			exp.Plan.Gates[0].Op, exp.Plan.Gates[0].Bound = experiment.RatioAtLeast, ptr.To(1 / *exp.Plan.Gates[0].Bound)
		}, func(x float64) float64 { return 1 / x }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			runs, decided := 250, 0
			if testing.Short() {
				runs = 10
			}
			for run := range runs {
				l := anyRun(t, random, c.unit)
				l.Exp.Plan.Gates = l.Exp.Plan.Gates[:c.gates]
				before, after := l.Analyze(), l.Rewrite(c.change).Analyze()
				for i, turned := range []func(float64) float64{c.estimate, c.level}[:c.gates] {
					a, b := &before.Gates[i], &after.Gates[i]
					if a.Outcome != b.Outcome || !alikeTurned(a.Estimate, b.Estimate, turned) {
						t.Fatalf("run %d of %s on %+v: %s: %s, and then %s: %s", run, a.Gate, l.Waves[0].Blocks[0].Lease, a.Outcome, a.Message, b.Outcome,
							b.Message)
					}
					if a.Outcome == fixture.Go || a.Outcome == fixture.NoGo {
						decided++
					}
				}
			}
			if decided < runs/5 {
				t.Errorf("only %d gates were decided", decided)
			}
		})
	}
}

// alikeTurned reports whether an estimate equals the transformation of another one.
func alikeTurned(a, b *analysis.Estimate, turned func(float64) float64) bool {
	if (a == nil) != (b == nil) || a != nil && (a.Low == nil) != (b.Low == nil) {
		return false
	}
	if a == nil || a.Low == nil {
		return true
	}
	low, high := turned(*a.Low), turned(*a.High)
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-6*math.Max(math.Abs(x), math.Abs(y)) }
	return near(min(low, high), *b.Low) && near(max(low, high), *b.High) && near(turned(a.Value), b.Value)
}

// simulateOn lays out blocks on the nodes of a scenario.
func simulateOn(exp *experiment.Experiment, scenario fixture.Scenario, blocks int) (*record.Wave, error) {
	return design.BuildWave(exp, 0, 0, blocks, scenario.Lanes())
}
