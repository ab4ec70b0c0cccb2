package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number parses a finite number. Infinities and NaN are errors, because no field has a meaning for them.
func Number(text string) (float64, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, fmt.Errorf("invalid value %q: allowed are finite numbers", text)
	}
	return number, nil
}

// Share parses a share such as "5%". ok is false for other texts.
func Share(text string) (share float64, ok bool) {
	digits, ok := strings.CutSuffix(text, "%")
	percent, err := Number(digits)
	return percent / 100, ok && err == nil
}
