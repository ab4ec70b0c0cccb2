package report

import (
	"encoding/csv"
	"slices"
	"testing"
)

// A spreadsheet computes a cell that begins like these.
func TestCSV_NoCellIsAFormula(t *testing.T) {
	for cell, want := range map[string]string{
		"=HYPERLINK(\"http://x\")": "'=HYPERLINK(\"http://x\")", "+1+1": "'+1+1", "@SUM(A1)": "'@SUM(A1)", "-2+3": "'-2+3",
		"\t=1": "'\t=1", "%0": "'%0", "|x": "'|x",
		"-2.5": "-2.5", "+3": "+3", "1e-9": "1e-9", "": "", "fused": "fused", "a=b": "a=b",
	} {
		var out sheet
		out.row([]string{cell, "1"})
		got, err := csv.NewReader(&out).Read()
		if err != nil || !slices.Equal(got, []string{want, "1"}) {
			t.Errorf("%q is %q (%v), want %q", cell, got, err, want)
		}
	}
}
