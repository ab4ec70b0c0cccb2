package quantity

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// mostExponent bounds the digits of an exponent, because a number is computed in full and 1e1000000000 takes a gigabyte.
const mostExponent = 3

// mostText bounds the bytes of a number, because parsing takes more than linear time.
const mostText = 256

// Exact parses a decimal with an optional suffix such as 64Ki without rounding. It is used for untrusted text instead of
// resource.ParseQuantity, which accepts any exponent and may exhaust memory or return another number.
func Exact(text string) (resource.Quantity, error) {
	if len(text) > mostText {
		return resource.Quantity{}, fmt.Errorf("invalid value %.20q and %d characters more: allowed are numbers of up to %d", text, len(text)-20,
			mostText)
	}
	if i := strings.LastIndexAny(text, "eE"); i >= 0 {
		digits := strings.TrimLeft(strings.TrimLeft(text[i+1:], "+-"), "0")
		if len(digits) > mostExponent {
			return resource.Quantity{}, fmt.Errorf("invalid value %q: allowed are exponents of up to %d digits", text, mostExponent)
		}
	}
	return resource.ParseQuantity(text)
}
