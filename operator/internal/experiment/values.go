package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/suggest"
)

// checkValue returns the fault of a value, or an empty text.
func checkValue(parameter assayv1alpha1.Parameter, value string) string {
	if strings.ContainsRune(value, 0) {
		return fmt.Sprintf("parameter %q has a NUL character, which no process argument can hold: remove it", parameter.Name)
	}
	if len(parameter.Enum) > 0 && !slices.Contains(parameter.Enum, value) {
		return fmt.Sprintf("parameter %q has invalid value %q: %s", parameter.Name, value,
			shortened(suggest.Allowed(value, parameter.Enum), maxProblem/2))
	}
	switch parameter.Type {
	case assayv1alpha1.IntegerParameter:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Sprintf("parameter %q has invalid value %q: allowed are integers; write digits only, such as 8", parameter.Name, value)
		}
	case assayv1alpha1.NumberParameter:
		if _, err := quantity.Number(value); err != nil {
			return fmt.Sprintf("parameter %q has invalid value %q: allowed are numbers; write it as 0.5 or 12", parameter.Name, value)
		}
	case assayv1alpha1.BooleanParameter:
		if value != "true" && value != "false" {
			return fmt.Sprintf("parameter %q has invalid value %q: allowed are true and false", parameter.Name, value)
		}
		return ""
	default:
		return ""
	}
	return checkBounds(parameter, value)
}

// checkingOnce caches checkValue, because many cells have the same value and a check may take long.
func checkingOnce() func(parameter assayv1alpha1.Parameter, value string) string {
	known := map[[2]string]string{}
	return func(parameter assayv1alpha1.Parameter, value string) string {
		key := [2]string{parameter.Name, value}
		message, ok := known[key]
		if !ok {
			message = checkValue(parameter, value)
			known[key] = message
		}
		return message
	}
}

func checkBounds(parameter assayv1alpha1.Parameter, value string) string {
	number, err := quantity.Exact(value)
	if err != nil {
		// A float such as 1e-30 parses as a number and not as a quantity; it has no bounds to meet unless they are given.
		if parameter.Minimum == nil && parameter.Maximum == nil {
			return ""
		}
		return fmt.Sprintf("parameter %q has invalid value %q: it cannot be compared with its bounds; write it without an exponent",
			parameter.Name, value)
	}
	if parameter.Minimum != nil && number.Cmp(*parameter.Minimum) < 0 {
		return fmt.Sprintf("parameter %q has value %s, below its minimum %s", parameter.Name, value, parameter.Minimum)
	}
	if parameter.Maximum != nil && number.Cmp(*parameter.Maximum) > 0 {
		return fmt.Sprintf("parameter %q has value %s, above its maximum %s", parameter.Name, value, parameter.Maximum)
	}
	return ""
}

// decimals are the decimal suffixes of a bound, as powers of ten of the metric's base unit; binaries are the powers of two.
var (
	decimals = map[string]int{"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12}
	binaries = map[string]float64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
)

// durations are the suffixes of a bound on a metric in seconds.
var durations = map[string]int{"ns": -9, "us": -6, "ms": -3, "s": 0}

// parseBound turns a gate's bound into a number of the metric's unit. A ratio has unit "".
func parseBound(bound, unit string) (float64, error) {
	digits := strings.TrimRight(bound, "numkMGTKis")
	suffix := bound[len(digits):]
	number, err := quantity.Number(digits)
	if err != nil || strings.ContainsAny(digits, "eExX_") {
		return 0, fmt.Errorf("invalid bound %q: allowed are numbers, and durations where the unit is s; write it as 1.5, 2ms or 23k", bound)
	}
	if unit == "" && suffix != "" {
		return 0, fmt.Errorf("bound %q of a ratio has the unit %q, and a ratio has none: write a plain number such as %s", bound, suffix, digits)
	}
	// Append the exponent to the text instead of multiplying, so that 17.5ms equals 0.0175 exactly.
	if exponent, ok := durations[suffix]; ok {
		if unit != "s" {
			return 0, fmt.Errorf("bound %q is a duration and the metric's unit is %q: write a number of that unit", bound, unit)
		}
		return quantity.Number(fmt.Sprintf("%se%d", digits, exponent))
	}
	exponent, decimal := decimals[suffix]
	scale, binary := binaries[suffix]
	if !decimal && !binary {
		return 0, fmt.Errorf("bound %q has suffix %q: allowed are n, u, m, k, M, G, T, Ki, Mi, Gi, Ti and, for seconds, ns, us, ms, s", bound,
			suffix)
	}
	if binary {
		if number *= scale; math.IsInf(number, 0) {
			err = fmt.Errorf("invalid bound %q: allowed are those that 64 bits hold, up to 1.8e308", bound)
		}
		return number, err
	}
	return quantity.Number(fmt.Sprintf("%se%d", digits, exponent))
}

// ScaleOf returns the size of a scaled unit in the metric's unit; "" is the unit itself.
func ScaleOf(suffix string) (float64, bool) {
	if exponent, ok := decimals[suffix]; ok {
		return math.Pow10(exponent), true
	}
	scale, ok := binaries[suffix]
	return scale, ok
}
