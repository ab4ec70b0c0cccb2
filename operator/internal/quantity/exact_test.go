package quantity

import (
	"testing"
	"time"

	"assay.dev/assay/operator/test/cputime"
)

// Objects are untrusted, so that their numbers are parsed at once or rejected. The parser allocates memory in proportion to the exponent,
// and truncates exponents beyond 32 bits.
func TestExact_HugeExponentRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want float64
		ok   bool
	}{
		"a whole number":                          {"8", 8, true},
		"with a suffix":                           {"64Ki", 64 << 10, true},
		"with a suffix that looks like a power":   {"2E", 2e18, true},
		"with one of two letters":                 {"2Ei", 2 << 60, true},
		"a power":                                 {"1e-3", 1e-3, true},
		"a power with zeros before it":            {"5E+0000003", 5000, true},
		"the largest power that a float has":      {"1e308", 1e308, true},
		"no number":                               {"e", 0, false},
		"a power that takes a gigabyte":           {"1e-2000000000", 0, false},
		"nothing, to such a power":                {"0e2000000000", 0, false},
		"nothing in decimals, to such a power":    {"0.0e-2000000000", 0, false},
		"many digits, to such a power":            {"1.11111111111111111111e2000000000", 0, false},
		"a power that is another one in 32 bits":  {"1e-4294967290", 0, false},
		"a power that is another one, with zeros": {"1e-0004294967290", 0, false},
	} {
		used := cputime.Start()
		got, err := Exact(tc.text)
		if (err == nil) != tc.ok || got.AsApproximateFloat64() != tc.want {
			t.Errorf("%s: %s is %v (error %v), want %v", name, tc.text, got.AsApproximateFloat64(), err, tc.want)
		}
		if took := used(); took > time.Second {
			t.Errorf("%s: reading %s took %s", name, tc.text, took)
		}
	}
}
