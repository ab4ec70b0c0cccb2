package analysis

import "assay.dev/assay/operator/internal/quantity"

// Shown is the unit to show an estimate in.
func (e *Estimate) Shown() string {
	if e.Ratio {
		return quantity.Times
	}
	return e.Unit
}

// Describe is an estimate as messages and reports show it, e.g. "13.2x [12.9, 13.5]".
func Describe(estimate *Estimate) string {
	if estimate == nil {
		return "no estimate"
	}
	return quantity.Interval(estimate.Value, estimate.Low, estimate.High, estimate.Shown())
}

// DescribeShare is what was achieved of the limit that the result came closest to, with that limit's name: a share of something unnamed
// says nothing. It is empty where no limit was measured.
func DescribeShare(result *ArmResult) string {
	if result.ShareOfCeiling == nil {
		return ""
	}
	return quantity.PercentTo(*result.ShareOfCeiling, 1) + " of " + result.Ceiling
}

// Title is how messages call a gate at its point.
func (g *GateResult) Title() string {
	if g.Point == "" {
		return g.Gate
	}
	return g.Gate + " at " + g.Point
}

// PointName is how messages call a point.
func PointName(key string) string {
	if key == "" {
		return "the only point"
	}
	return key
}
