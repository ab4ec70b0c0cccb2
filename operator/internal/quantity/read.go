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

// Share reads a share that a person wrote, such as "5%".
func Share(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	percent, err := Number(digits)
	if err != nil || !ok {
		return 0, fmt.Errorf("invalid value %q: allowed are shares; write it as 5%%", text)
	}
	return percent / 100, nil
}
