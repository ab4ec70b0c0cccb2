package figures

import (
	"errors"
	"strings"
	"testing"
)

func TestTable_OfTheDataOfATableIsTheTable(t *testing.T) {
	measured := []Measured{
		{Figure{Figure: "pir.q1", Value: 2, Unit: "x", Low: 1.5, High: 2.5, Samples: 6, Target: "≥ 1.5"}, "2026-01-01", "one (family 6, model 2), AVX2"},
		{Figure{Figure: "pir.q1.portable", Value: 0.25, Unit: "1", Low: -0.2, High: 1e9, Samples: 8}, "2026-01-01", "one"},
	}
	document, err := Publish("before\n<!-- figures pir -->\n<!-- /figures pir -->\nafter\n", "pir", measured)
	if err != nil {
		t.Fatal(err)
	}
	data, err := Data(document, "pir")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "\n"); got != 3 {
		t.Errorf("%d lines of data, want a header and two rows:\n%s", got, data)
	}
	altered := strings.Replace(document, "2.000", "9.000", 1)
	got, err := Render(altered, func(string) ([]byte, error) { return data, nil })
	if err != nil || got != document {
		t.Errorf("rendered (%v)\n%s\nwant\n%s", err, got, document)
	}
}

func TestData_InvalidTablesAreErrors(t *testing.T) {
	for name, document := range map[string]string{
		"no table":      "",
		"another table": "<!-- figures curp -->\n<!-- /figures curp -->\n",
		"another row":   "<!-- figures pir -->\n| a | b |\n<!-- /figures pir -->\n",
	} {
		if _, err := Data(document, "pir"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Table("pir", []byte("a,b\n")); err == nil {
		t.Error("data with other columns: no error")
	}
	missing := errors.New("no data")
	document := "<!-- figures pir -->\n<!-- /figures pir -->\n"
	if got, err := Render(document, func(string) ([]byte, error) { return nil, missing }); !errors.Is(err, missing) || got != document {
		t.Errorf("without data: %q, %v", got, err)
	}
}
