package metrics

import (
	"testing"
	"time"

	"assay.dev/assay/operator/test/cputime"
)

// The position of a point is untrusted text, which need not be a number; an enormous one must neither take long nor fill the memory.
func TestNumber_LongTextIsReadQuickly(t *testing.T) {
	for text, want := range map[string]float64{
		"8": 8, "0.5": 0.5, "1e-3": 1e-3, "64Ki": 64 << 10, "2k": 2000, "fast": 0, "": 0, "1.1111111111111111111e20000000": 0, "1e-20000000": 0,
	} {
		used := cputime.Start()
		if got, _ := number(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
		if took := used(); took > time.Second {
			t.Errorf("reading %q took %s", text, took)
		}
	}
}
