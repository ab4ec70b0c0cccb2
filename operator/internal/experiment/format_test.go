package experiment

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParse_OnlyKnownFormatsAreRead(t *testing.T) {
	frozen, err := freezeAndCheck(t, testSpec(), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(frozen)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		format string
		says   []string // Of the error; none where it is read.
	}{
		"the written one":      {`1`, nil},
		"a later one":          {`7`, []string{"invalid format of the ledger: found 7, allowed 1", "use the version of Assay that wrote it"}},
		"an earlier one":       {`0`, []string{"found 0, allowed 1"}},
		"a number as text":     {`"1"`, []string{`found "1", allowed 1`}},
		"a fraction":           {`1.5`, []string{"found 1.5, allowed 1"}},
		"null":                 {`null`, []string{"found null, allowed 1"}},
		"none":                 {``, []string{"found none, allowed 1", `write "format": 1`}},
		"a word without bound": {`"` + strings.Repeat("x", 1<<20) + `"`, []string{"found", "allowed 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var f fields
			if err := json.Unmarshal(raw, &f); err != nil {
				t.Fatal(err)
			}
			if f["format"] = json.RawMessage(tc.format); tc.format == "" {
				delete(f, "format")
			}
			edited, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			checked := CheckFormat(edited)
			_, err = Parse(edited)
			if errorText(checked) != errorText(err) || len(errorText(err)) > 200 {
				t.Errorf("Parse: %.300v, and CheckFormat: %.300v", err, checked)
			}
			assertSays(t, "error", errorText(err), tc.says)
		})
	}
}

// The digest names the same experiment in every format, because status and attempts refer to it.
func TestComputeDigest_FormatIsNotPartOfIt(t *testing.T) {
	frozen, err := freezeAndCheck(t, testSpec(), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	later := *frozen
	later.Format = 2
	if got, err := later.ComputeDigest(); err != nil || got != frozen.Digest || frozen.Format != Format {
		t.Errorf("digest %s in format 2 (%v), %s in format %d", got, err, frozen.Digest, frozen.Format)
	}
}
