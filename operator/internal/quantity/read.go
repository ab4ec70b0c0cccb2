package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number reads a number that a person wrote. What is not finite means nothing in any field: it compares with nothing, or always holds.
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

// Share reads a share that a person wrote, such as "5%"; it is false for what is none.
func Share(text string) (share float64, ok bool) {
	digits, ok := strings.CutSuffix(text, "%")
	percent, err := Number(digits)
	return percent / 100, ok && err == nil
}
