package bench

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/test/scanned"
)

func TestTheSentenceIsNotCertainOfWhatDidNotComplete(t *testing.T) {
	for name, tc := range map[string]struct {
		arm  string
		most int
		says string
	}{
		"nothing is lost":           {"fused-m4r", 0, ""},
		"the candidate crashes":     {"fused-m4r", 3, ", not certain: fused-m4r did not complete: "},
		"the baseline crashes":      {"loop", 3, ", not certain: loop did not complete: "},
		"another candidate crashes": {"fused-naive", 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			exp, found, _ := scanned.Run(t, scanned.Noisy, 10, nil, scanned.Crash(tc.arm, tc.most))
			got := Sentence(exp, found, "fused-m4r")
			if !strings.Contains(got, tc.says) || strings.Contains(got, "did not complete") != (tc.says != "") ||
				strings.Contains(got, "certain at") && tc.says != "" {
				t.Errorf("it says %q, want %q in it", got, tc.says)
			}
		})
	}
}
