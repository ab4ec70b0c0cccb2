package judge_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestFewBlocks_DecisionsAreInconclusive(t *testing.T) {
	t.Parallel()
	faster := func(spec *fixture.RunSpec) { spec.Gates[0].Bound = "1" }
	cases := map[string]struct {
		scenario fixture.Scenario
		edit     func(*fixture.RunSpec)
		outcome  any
		message  string
	}{
		"5 % faster is Go":                {fixture.Scenario{Trial: 0.002}, faster, fixture.Go, "holds over"},
		"in the same order always":        {fixture.Scenario{Trial: 0.002}, func(spec *fixture.RunSpec) { spec.Design.Order = "Sequential" }, fixture.Inconclusive, "spec.design.order: Sequential"},
		"with a rare slowdown declared":   {fixture.Scenario{Trial: 0.002}, func(spec *fixture.RunSpec) { spec.Design.RareSlowdown = "20%" }, fixture.Inconclusive, "spans the bound"},
		"a small rare slowdown leaves it": {fixture.Scenario{Trial: 0.002}, func(spec *fixture.RunSpec) { spec.Design.RareSlowdown = "2%" }, fixture.Go, "holds over"},
		"with a correlation declared":     {fixture.Scenario{Trial: 0.02}, func(spec *fixture.RunSpec) { spec.Design.BlockCorrelation = "0.85" }, fixture.Inconclusive, "spans the bound"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			world := fixture.NewWorld(c.scenario, math.Log(0.95), 1, 1)
			exp, err := fixture.PairExperiment(c.edit)
			if err != nil {
				t.Fatal(err)
			}
			wave, err := fixture.Wave(exp, 0, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			found := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: world.Run(exp, wave)}, 0)
			if gate := found.Gates[0]; fmt.Sprint(gate.Outcome) != fmt.Sprint(c.outcome) || !strings.Contains(gate.Message, c.message) {
				t.Errorf("%s: %s; want %v and %q", gate.Outcome, gate.Message, c.outcome, c.message)
			}
		})
	}
}
