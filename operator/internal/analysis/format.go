package analysis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Times is the unit to show a ratio in: "1.5x". Its unit proper is 1, as that of a share, which is shown as "0.5".
const Times = "x"

// Shown is the unit to show an estimate in.
func (e *Estimate) Shown() string {
	if e.Ratio {
		return Times
	}
	return e.Unit
}

// FormatNumber is a number as messages and reports show it: four significant digits, with the unit as people write it.
func FormatNumber(value float64, unit string) string { return formatNumber(value, unit) }

// Describe is an estimate as messages and reports show it, e.g. "13.2x [12.9, 13.5]".
func Describe(estimate *Estimate) string { return describe(estimate) }

// DescribeShare is what was achieved of the limit that the result came closest to, with that limit's name: a share of something unnamed
// says nothing. It is empty where no limit was measured.
func DescribeShare(result *ArmResult) string {
	if result.ShareOfCeiling == nil {
		return ""
	}
	return strconv.FormatFloat(100**result.ShareOfCeiling, 'f', 1, 64) + " % of " + result.Ceiling
}

func formatNumber(value float64, unit string) string {
	switch unit {
	case Times:
		return digits(value) + Times
	case "1", "":
		return digits(value)
	case "s":
		scaled, prefix := seconds(value)
		return digits(value*scaled) + " " + prefix
	default:
		scaled, prefix := metricPrefix(value)
		return digits(value*scaled) + " " + prefix + strings.Replace(unit, "By", "B", 1)
	}
}

func describe(estimate *Estimate) string {
	if estimate == nil {
		return "no estimate"
	}
	text := formatNumber(estimate.Value, estimate.Shown())
	if estimate.Low == nil || estimate.High == nil {
		return text
	}
	scaled := 1.0
	switch estimate.Unit {
	case "1", "":
	case "s":
		scaled, _ = seconds(estimate.Value)
	default:
		scaled, _ = metricPrefix(estimate.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", text, digits(*estimate.Low*scaled), digits(*estimate.High*scaled))
}

// seconds picks the unit of time a value reads well in, and the factor to it.
func seconds(value float64) (float64, string) {
	switch magnitude := math.Abs(value); {
	case magnitude == 0 || magnitude >= 1:
		return 1, "s"
	case magnitude >= 1e-3:
		return 1e3, "ms"
	case magnitude >= 1e-6:
		return 1e6, "µs"
	default:
		return 1e9, "ns"
	}
}

func metricPrefix(value float64) (float64, string) {
	switch magnitude := math.Abs(value); {
	case magnitude >= 1e12:
		return 1e-12, "T"
	case magnitude >= 1e9:
		return 1e-9, "G"
	case magnitude >= 1e6:
		return 1e-6, "M"
	case magnitude >= 1e4:
		return 1e-3, "k"
	default:
		return 1, ""
	}
}

// digits writes four significant digits without an exponent where that reads well.
func digits(value float64) string {
	magnitude := math.Abs(value)
	if magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e7) {
		return strconv.FormatFloat(value, 'e', 3, 64)
	}
	decimals := 3
	if magnitude >= 1 {
		decimals = max(0, 3-int(math.Log10(magnitude)))
	} else if magnitude > 0 {
		decimals = 3 - int(math.Floor(math.Log10(magnitude)))
	}
	return strconv.FormatFloat(value, 'f', min(decimals, 7), 64)
}
