package figures

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
)

func TestPublish_UpdatesTheTable(t *testing.T) {
	old := Measured{Figure{Figure: "pir.q1", Value: 2, Unit: "x", Low: 1.5, High: 2.5, Samples: 6, Target: "≥ 1.5"}, "2026-01-01", "one"}
	other := Measured{Figure{Figure: "pir.q1.portable", Value: 0.25, Unit: "1", Low: 0.2, High: 0.3, Samples: 8}, "2026-01-01", "one"}
	again := old
	again.Value, again.When = 2.125, "2026-02-02"
	elsewhere, otherElsewhere := old, other
	elsewhere.Value, elsewhere.Where = 1.75, "two"
	otherElsewhere.Value, otherElsewhere.Where = 0.28125, "two"
	document := "before\n<!-- figures pir -->\nNot measured yet.\n<!-- /figures pir -->\nafter\n"
	for _, step := range []struct {
		name     string
		measured []Measured
		rows     []string
	}{
		{"a table without rows has a header", nil, nil},
		{"figures are appended in the order of measurement", []Measured{old, other}, []string{
			`| ` + "`pir.q1`" + ` | ≥ 1.5 | 2.000 \[1.500, 2.500\] x | 6 | 2026-01-01, one |`,
			`| ` + "`pir.q1.portable`" + ` |  | 0.2500 \[0.2000, 0.3000\] | 8 | 2026-01-01, one |`,
		}},
		{"a remeasured figure replaces its row, but not one with the same prefix", []Measured{again},
			[]string{
				`| ` + "`pir.q1`" + ` | ≥ 1.5 | 2.125 \[1.500, 2.500\] x | 6 | 2026-02-02, one |`,
				`| ` + "`pir.q1.portable`" + ` |  | 0.2500 \[0.2000, 0.3000\] | 8 | 2026-01-01, one |`,
			}},
		{"another machine has separate rows after those of the same figure", []Measured{elsewhere, otherElsewhere},
			[]string{
				`| ` + "`pir.q1`" + ` | ≥ 1.5 | 2.125 \[1.500, 2.500\] x | 6 | 2026-02-02, one |`,
				`| ` + "`pir.q1`" + ` | ≥ 1.5 | 1.750 \[1.500, 2.500\] x | 6 | 2026-01-01, two |`,
				`| ` + "`pir.q1.portable`" + ` |  | 0.2500 \[0.2000, 0.3000\] | 8 | 2026-01-01, one |`,
				`| ` + "`pir.q1.portable`" + ` |  | 0.2812 \[0.2000, 0.3000\] | 8 | 2026-01-01, two |`,
			}},
		{"only the row of the same machine changes", []Measured{old},
			[]string{
				`| ` + "`pir.q1`" + ` | ≥ 1.5 | 2.000 \[1.500, 2.500\] x | 6 | 2026-01-01, one |`,
				`| ` + "`pir.q1`" + ` | ≥ 1.5 | 1.750 \[1.500, 2.500\] x | 6 | 2026-01-01, two |`,
				`| ` + "`pir.q1.portable`" + ` |  | 0.2500 \[0.2000, 0.3000\] | 8 | 2026-01-01, one |`,
				`| ` + "`pir.q1.portable`" + ` |  | 0.2812 \[0.2000, 0.3000\] | 8 | 2026-01-01, two |`,
			}},
	} {
		got, err := Publish(document, "pir", step.measured)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		want := "before\n<!-- figures pir -->\n" + head
		for _, row := range step.rows {
			want += row + "\n"
		}
		if want += "<!-- /figures pir -->\nafter\n"; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", step.name, got, want)
		}
		document = got
	}
	for _, without := range []string{
		"", "<!-- figures pir -->\n", "<!-- /figures pir -->\n", "<!-- figures pir-scale -->\n<!-- /figures pir-scale -->\n",
	} {
		if _, err := Publish(without, "pir", nil); err == nil || !strings.Contains(err.Error(), "the document has no line") {
			t.Errorf("%q: %v", without, err)
		}
	}
}

func TestMachine_Name(t *testing.T) {
	for want, environment := range map[string]map[string]any{
		"AMD EPYC (family 25, model 17), AVX-512, GFNI": {
			"cpuModel": "AMD EPYC", "cpuFamily": 25.0, "cpuModelNumber": 17.0, "isa": "aes,avx,avx2,avx512f,gfni",
		},
		"AMD EPYC, AVX2":    {"cpuModel": "AMD EPYC", "isa": "aes,avx,avx2"},
		"Neoverse-N1, NEON": {"cpuModel": "Neoverse-N1", "isa": "aes,asimd"},
	} {
		if got := Machine(&analysis.Analysis{Environment: environment}); got != want {
			t.Errorf("%v is %q, want %q", environment, got, want)
		}
	}
}
