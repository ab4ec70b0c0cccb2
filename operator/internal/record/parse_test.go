package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/test/records"
)

const workloadSchemas = "../../../runner/schema"

func parseKind(kind string, raw []byte) (any, error) {
	switch kind {
	case "attempt":
		return parse[Attempt](kind, raw, strict)
	case "wave":
		return ParseWave(raw)
	default:
		return parse[Result](kind, raw, strict)
	}
}

func TestSchemas_EmbeddedCopiesEqualTheRunners(t *testing.T) {
	for _, name := range []string{"attempt", "result", "wave"} {
		want, err := os.ReadFile(filepath.Join(workloadSchemas, name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := schemaFiles.ReadFile("schema/" + name + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("schema/%s.schema.json differs from runner/schema: run go generate ./internal/record", name)
		}
	}
}

func TestParse_ValidFixturesRoundTrip(t *testing.T) {
	for name, raw := range records.All(t, "valid") {
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, "-")
			parsed, err := parseKind(kind, raw)
			if err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(parsed)
			if err != nil {
				t.Fatal(err)
			}
			// Go's types must not lose or add a field.
			var want, got any
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(again, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("round trip (-fixture +go):\n%s", diff)
			}
			if _, err := parseKind(kind, again); err != nil {
				t.Errorf("Go's encoding is invalid: %v", err)
			}
		})
	}
}

func TestParse_InvalidFixturesAreRejected(t *testing.T) {
	for name, raw := range records.All(t, "invalid") {
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, "-")
			_, err := parseKind(kind, raw)
			if err == nil {
				t.Fatal("was accepted")
			}
			if !strings.Contains(err.Error(), kind) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error does not name the record in one line: %v", err)
			}
		})
	}
}

func TestParse_ErrorsBeyondTheSchemaAreRejected(t *testing.T) {
	valid := string(records.Valid(t, "attempt-succeeded"))
	cases := map[string]struct {
		edit func(string) string
		says string
	}{
		"a field in the wrong case":     {func(s string) string { return strings.Replace(s, `"slot"`, `"Slot"`, 1) }, "slot"},
		"a duplicate field":             {func(s string) string { return strings.Replace(s, `"slot": 4`, `"slot": 4, "slot": 5`, 1) }, "duplicate field"},
		"an impossible date":            {func(s string) string { return strings.Replace(s, "2026-11-21T", "2026-13-41T", 1) }, "startedAt"},
		"a truncated object":            {func(s string) string { return s[:len(s)/2] }, "truncated"},
		"data after the object":         {func(s string) string { return s + "{}" }, "truncated or not JSON"},
		"a number out of Go's range":    {func(s string) string { return strings.Replace(s, "0.214", "1e999", 1) }, "cannot be decoded"},
		"an empty object":               {func(string) string { return "" }, "truncated"},
		"a slot that is not an integer": {func(s string) string { return strings.Replace(s, `"slot": 4`, `"slot": 4.5`, 1) }, "slot"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			edited := c.edit(valid)
			if edited == valid {
				t.Fatal("the edit has no effect")
			}
			_, err := parseKind("attempt", []byte(edited))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that contains %q", err, c.says)
			}
		})
	}
}

func BenchmarkParseAttempt(b *testing.B) {
	raw, err := os.ReadFile(filepath.Join(workloadSchemas, "fixtures", "valid", "attempt-succeeded.json"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseKind("attempt", raw); err != nil {
			b.Fatal(err)
		}
	}
}

// The validator converts numbers to fractions, and an exponent of a few digits makes one larger than any memory.
func TestParse_HugeExponentsAreRejectedOrZero(t *testing.T) {
	for _, raw := range records.All(t, "valid") {
		for _, number := range []string{"1e-99999999", "5.6e-099999995", "-1e-400", "1e99999999", "-1e400", "1e400"} {
			for _, kind := range kinds {
				text := regexp.MustCompile(`: -?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`).ReplaceAllLiteral(raw, []byte(": "+number))
				_, err := parseKind(kind, text)
				if err == nil && strings.Contains(number, "e9") {
					t.Errorf("%s is read like a number of one %s", number, kind)
				}
			}
		}
	}
	_, err := parseKind("result", []byte(`{"schema": 1e99999999}`))
	if err == nil || !strings.Contains(err.Error(), "invalid number 1e99999999: allowed are those that 64 bits hold") {
		t.Errorf("error %v, want one that names the number", err)
	}
}
