package results

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/compare"
	"assay.dev/assay/operator/test/clitest"
)

// Every column says its own confidence, and all say a confidence in the same digits.
func TestComparison_ColumnsNameConfidence(t *testing.T) {
	var out bytes.Buffer
	if err := printComparison(&out, compare.Comparison{ConfidenceA: 0.995, ConfidenceB: 0.57, Confidence: 0.57}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A [99.5 %]  B [57 %]  B/A [57 %]", "the 57 % intervals do not cover drift"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestComparison_HostileTextIsEscaped(t *testing.T) {
	all := []string{clitest.Hostile}
	differs := []compare.Difference{{Key: clitest.Hostile, A: clitest.Hostile, B: clitest.Hostile}}
	for name, print := range map[string]func(io.Writer) error{
		"a comparison": func(out io.Writer) error {
			return printComparison(out, compare.Comparison{
				A: clitest.Hostile, B: clitest.Hostile, Rows: []compare.Row{{Point: clitest.Hostile, Arm: clitest.Hostile, Metric: clitest.Hostile}}, OnlyA: all, OnlyB: all,
				Environment: differs, Parameters: differs, WarningsA: all, WarningsB: all,
			})
		},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckPrintable(t, print, false) })
	}
}
