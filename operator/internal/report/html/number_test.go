package html

import (
	"testing"

	"assay.dev/assay/operator/internal/quantity"
)

func TestAxis_NumbersRetainDigits(t *testing.T) {
	for name, tc := range map[string]struct {
		unit  string
		value float64
		want  string
	}{
		"a share that ends in the digit of its unit": {"1", 0.51, "0.51"},
		"a ratio":               {quantity.Times, 1.5, "1.5x"},
		"a time":                {"s", 0.0021, "2.1 ms"},
		"a unit of the title's": {"queries/s", 1500, "1500"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := numberOf(tc.unit)(tc.value); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
