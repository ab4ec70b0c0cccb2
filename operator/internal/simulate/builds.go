package simulate

import (
	"fmt"

	"assay.dev/assay/operator/internal/record"
)

// BuildScenarios are machines on which layout is an accident of every build, and arms that are several.
func BuildScenarios() []Scenario {
	const cv, accident = 0.01, 0.01
	return []Scenario{
		{Name: "layout-builds", Claimed: true, Figure: LayoutFigure, Trial: cv, Layout: accident, Builds: 10, Design: Design{Blocks: 10},
			What: "every build 1 % faster or slower, as an accident of its layout, and 10 builds of each arm in 10 blocks"},
		{Name: "layout-builds-20", Claimed: true, Figure: LayoutFigure, Trial: cv, Layout: accident, Builds: 20, Design: Design{Blocks: 20},
			What: "the same with 20 builds in 20 blocks"},
		{Name: "layout-builds-5", Claimed: true, Figure: LayoutFigure, Trial: cv, Layout: accident, Builds: 5, Design: Design{Blocks: 10},
			What: "the same with 5 builds in 10 blocks"},
	}
}

// BuildName is what the i-th build of every arm is called.
func BuildName(i int) string { return fmt.Sprintf("b%d", i) }

// buildOf is a build of an arm, by its place.
type buildOf struct {
	arm   int
	build string
}

// layoutOf is what the layout of a cell's program makes of its time: its build's, or its arm's.
func (w *World) layoutOf(c record.Cell) float64 {
	if c.Build != "" {
		return w.builds[buildOf{c.Arm, c.Build}]
	}
	return w.layout[min(c.Arm, len(w.layout)-1)]
}
