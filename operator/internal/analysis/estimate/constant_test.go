package estimate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// A constant count depends on neither the previous block nor the node, in spite of the rounding of its sums.
func TestConstantFigure_IsDecided(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(41, 43))
	figures := 120
	if testing.Short() {
		figures = 30
	}
	for range figures {
		blocks, nodes := 6+random.IntN(34), 1+random.IntN(4)
		old, ratio := math.Exp(20*random.Float64()-10), math.Exp(0.3*random.NormFloat64())
		statistics := []assayv1alpha1.Statistic{assayv1alpha1.StatisticValue, assayv1alpha1.StatisticMedian, assayv1alpha1.StatisticP50}
		statistic := statistics[random.IntN(len(statistics))]
		exp, err := fixture.PairExperiment(func(spec *fixture.RunSpec) {
			spec.Design.Blocks = assayv1alpha1.Blocks{Min: int32(blocks), Max: int32(blocks)}
			of := assayv1alpha1.Gate{Name: "ratio", Metric: "time", Statistic: statistic, Op: assayv1alpha1.RatioAtMost, Bound: "1"}
			level := of
			level.Name, level.Op = "level", assayv1alpha1.AtMost
			spec.Gates = []assayv1alpha1.Gate{of, level}
		})
		if err != nil {
			t.Fatal(err)
		}
		exp.Plan.Metrics[0].Unit, exp.Plan.Gates[1].Bound = "By", ptr.To(old)
		wave, err := fixture.Wave(exp, 0, 0, blocks)
		if err != nil {
			t.Fatal(err)
		}
		l := &analyzed.Run{Exp: exp, Waves: []record.Wave{*wave}, Attempts: fixture.NewWorld(fixture.Scenario{}, 0, 1, 1).Run(exp, wave)}
		for i := range l.Attempts {
			a, result := &l.Attempts[i], *l.Attempts[i].Result
			value := map[string]float64{"old": old, "new": old * ratio}[a.Arm]
			metric := record.Metric{Unit: "By", Value: &value}
			if statistic != assayv1alpha1.StatisticValue {
				metric = record.Metric{Unit: "By", Samples: []float64{value, value, value}}
			}
			result.Metrics = map[string]*record.Metric{"time": &metric}
			a.Result, a.Environment.Soft = &result, map[string]any{"nodeName": fmt.Sprint("node-", fixture.BlockNumber(t, a)%nodes)}
		}
		got, want := l.Analyze(), fixture.NoGo
		if ratio <= 1 {
			want = fixture.Go
		}
		at := fmt.Sprintf("%g and %g times as much in %d blocks of %d nodes, %s", old, ratio, blocks, nodes, statistic)
		for _, gate := range got.Gates[:2] {
			if s := gate.Series; gate.Outcome != want || s != nil && (s.Dependent || s.Skewed) {
				t.Errorf("%s: %s %s: %s, series %+v", at, gate.Gate, gate.Outcome, gate.Message, gate.Series)
			}
		}
		for _, warning := range got.Warnings {
			if strings.Contains(warning, "depends on the node") {
				t.Errorf("%s: %s", at, warning)
			}
		}
	}
}
