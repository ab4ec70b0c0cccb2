package simulate

import (
	"fmt"
	"math/rand/v2"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// BuildScenarios are machines on which layout is an accident of every build, and arms that are several.
func BuildScenarios() []Scenario {
	const cv, accident = 0.01, 0.01
	builds := func(n int, blocks int32) func(*assayv1alpha1.BenchmarkRunSpec) {
		return func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Design.Blocks.Min = blocks
			for i := range spec.Arms {
				for b := range n {
					spec.Arms[i].Builds = append(spec.Arms[i].Builds, assayv1alpha1.Build{Name: buildName(b), Program: "/builds/" + buildName(b)})
				}
			}
		}
	}
	return []Scenario{
		{Name: "layout-builds", Claimed: true, Figure: LayoutFigure, Trial: cv, Layout: accident, Builds: 10, Design: builds(10, 10), What: "every build 1 % faster or slower, as an accident of its layout, and 10 builds of each arm in 10 blocks"},
		{Name: "layout-builds-20", Claimed: true, Figure: LayoutFigure, Trial: cv, Layout: accident, Builds: 20, Design: builds(20, 20), What: "the same with 20 builds in 20 blocks"},
		{Name: "layout-builds-5", Claimed: true, Figure: LayoutFigure, Trial: cv, Layout: accident, Builds: 5, Design: builds(5, 10), What: "the same with 5 builds in 10 blocks"},
	}
}

func buildName(i int) string { return fmt.Sprintf("b%d", i) }

// buildOf is a build of an arm, by its place.
type buildOf struct {
	arm   int
	build string
}

// buildLayouts draws the accident of every build. Where an arm is one build nothing is drawn here.
func buildLayouts(scenario Scenario, random *rand.Rand) map[buildOf]float64 {
	out := map[buildOf]float64{}
	for arm := range 2 {
		for b := range scenario.Builds {
			out[buildOf{arm, buildName(b)}] = scenario.Layout * random.NormFloat64()
		}
	}
	return out
}

// layoutOf is what the layout of a cell's program makes of its time: its build's, or its arm's.
func (w *World) layoutOf(c record.Cell) float64 {
	if c.Build != "" {
		return w.builds[buildOf{c.Arm, c.Build}]
	}
	return w.layout[min(c.Arm, len(w.layout)-1)]
}
