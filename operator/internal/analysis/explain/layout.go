package explain

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// layoutSpread is the assumed standard deviation of a program's speed over code layouts, for runs that do not measure it. It is the value
// of the layout rows of the calibration. Published programs vary by far more.
const layoutSpread = 0.01

// Layout describes how far layout effects are excluded: the smallest effect that a layout cannot explain, or that the intervals
// include layout effects.
func Layout(d *estimate.Data) string {
	if d.Exp.Baseline() < 0 {
		return ""
	}
	var one, several []string
	null := false
	for arm := range d.Exp.Arms {
		name := d.Exp.Arms[arm].Name
		builds := 0
		for point := range d.Exp.Points {
			_, n := d.Partitions([]selection.Cell{{Point: point, Arm: arm}})
			builds = max(builds, n)
		}
		switch {
		case experiment.RoleOf(d.Exp.Arms[arm]).RepeatsBaseline():
			null = true
		case builds > 1:
			several = append(several, fmt.Sprintf("%s (%d)", name, builds))
		default:
			one = append(one, name)
		}
	}
	if len(one) == 0 {
		return fmt.Sprintf("Every arm is several builds, %s, so the intervals of ratios include layout effects.", strings.Join(several, ", "))
	}
	// Each of two builds deviates by layoutSpread from the mean of its source.
	size := math.Expm1(distuv.UnitNormal.Quantile((1+d.GateConfidence)/2) * math.Sqrt(float64(min(2, len(one)))) * layoutSpread)
	who := "Every arm is one build"
	if len(several) > 0 {
		who = fmt.Sprintf("%s is one build (several are %s)", strings.Join(one, ", "), strings.Join(several, ", "))
	}
	note := fmt.Sprintf("%s, so an effect below about %s may be a layout effect, if layouts are %s %% apart as in the "+
		"calibration (the rows layout of docs/methodology/calibration.md); "+
		"link order and environment alone have moved programs by far more (Mytkowicz et al. 2009, Curtsinger and Berger 2013). arms[].builds "+
		"excludes it", who, quantity.PercentTo(size, 1), quantity.InPercent(layoutSpread))
	if null {
		note += "; the null arm runs the baseline's build, so it shows effects of place and time, and not of another layout"
	}
	return note + "."
}
