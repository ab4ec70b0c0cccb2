// Package quantity formats numbers with their units for people: times, rates, bytes, ratios, shares and intervals. All messages, reports,
// statuses and terminals use it, for consistent output.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Times is the unit to show a ratio in: "1.5x". Its unit proper is 1, as that of a share, which is shown as "0.5".
const Times = "x"

// Format writes four significant digits, with the unit as people write it.
func Format(value float64, unit string) string {
	scale, name := readable(value, unit)
	return Digits(value*scale) + name
}

// Short is Format without trailing zeros: "1.5x", "10 ms".
func Short(value float64, unit string) string {
	scale, name := readable(value, unit)
	digits := Digits(value * scale)
	if strings.Contains(digits, ".") && !strings.Contains(digits, "e") {
		digits = strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
	}
	return digits + name
}

// Interval writes a value with the ends of its interval in the value's unit, e.g. "13.2x [12.9, 13.5]"; without the ends where one is nil.
func Interval(value float64, low, high *float64, unit string) string {
	text := Format(value, unit)
	if low == nil || high == nil {
		return text
	}
	scale, _ := readable(value, unit)
	return fmt.Sprintf("%s [%s, %s]", text, Digits(*low*scale), Digits(*high*scale))
}

// readable returns the factor to a readable unit of a value, and that unit as it follows the number.
func readable(value float64, unit string) (scale float64, name string) {
	switch unit {
	case Times:
		return 1, Times
	case "1", "":
		return 1, ""
	case "s":
		scale, name = seconds(value)
		return scale, " " + name
	default:
		scale, name = metricPrefix(value)
		return scale, " " + name + Unit(unit)
	}
}

// Unit formats the unit of bytes as B.
func Unit(unit string) string { return strings.Replace(unit, "By", "B", 1) }

// seconds selects a readable unit of time for a value, and the factor to it.
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

// Digits writes four significant digits without an exponent where that reads well.
func Digits(value float64) string {
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
	return Decimals(value, min(decimals, 7))
}

// Rough writes a positive number in two digits, or as a whole number where it has more; down rounds towards zero.
func Rough(value float64, down bool) string {
	if value <= 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return Plain(value, 2)
	}
	decimals := max(0, 1-int(math.Floor(math.Log10(value)+1e-12)))
	scale := math.Pow(10, float64(decimals))
	scaled := math.Round(value * scale)
	if down {
		scaled = math.Floor(value*scale + 1e-9)
	}
	return Decimals(scaled/scale, decimals)
}

// Decimals formats a number with the given number of decimals, or with all of its digits for -1.
func Decimals(value float64, decimals int) string {
	return strconv.FormatFloat(value, 'f', decimals, 64)
}

// WithEnds formats a value and the ends of its interval with the given number of decimals.
func WithEnds(value, low, high float64, decimals int) string {
	return Decimals(value, decimals) + " [" + Decimals(low, decimals) + ", " + Decimals(high, decimals) + "]"
}

// Plain formats a number with the given number of significant digits, for columns of numbers and for probabilities.
func Plain(value float64, digits int) string { return strconv.FormatFloat(value, 'g', digits, 64) }

// Full formats a number with all of its digits, for programs.
func Full(value float64) string { return Plain(value, -1) }

// Signed formats a number with its sign and the given number of decimals.
func Signed(value float64, decimals int) string { return fmt.Sprintf("%+.*f", decimals, value) }

// Percent formats a share in per cent with the given number of significant digits.
func Percent(share float64, digits int) string { return Plain(100*share, digits) + " %" }

// PercentTo formats a share in per cent with the given number of decimals.
func PercentTo(share float64, decimals int) string { return Decimals(100*share, decimals) + " %" }

// InPercent formats a share in per cent, in full and without the digits of binary fractions.
func InPercent(share float64) string { return Full(math.Round(share*1e8) / 1e6) }

// Duration formats a duration, rounded to a multiple of a unit. A negative one, the difference of two clocks or of one that was set back,
// is 0s.
func Duration(of, to time.Duration) string { return max(of, 0).Round(to).String() }

// Seconds formats a duration, rounded to the second.
func Seconds(of time.Duration) string { return Duration(of, time.Second) }

// Bytes writes a size as computers count it, rounded down.
func Bytes(size int64) string {
	if size < 1<<20 {
		return fmt.Sprintf("%d KiB", max(1, size>>10))
	}
	return fmt.Sprintf("%d MiB", size>>20)
}

// Count writes a number of things with their noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
