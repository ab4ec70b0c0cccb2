// Package records reads the fixtures of the formats that Go and Rust share (runner/schema/fixtures).
package records

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// folder is that of the schemas. With -trimpath the path of this file is not known, so it is relative to the package under test.
func folder(t testing.TB) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; filepath.Dir(at) != at; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "runner", "schema", "fixtures")); err == nil {
			return filepath.Join(at, "runner", "schema", "fixtures")
		}
	}
	t.Fatal("runner/schema/fixtures is in no parent folder of the package under test")
	return ""
}

// All returns the documents of a folder, valid or invalid, by the name of their file. Those of steps, which only the runner reads, are left
// out.
func All(t testing.TB, of string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder(t), of, "*.json"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d %s fixtures: %v", len(paths), of, err)
	}
	out := map[string][]byte{}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "steps-") {
			continue
		}
		if out[filepath.Base(path)], err = document(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Valid returns a document that is valid, by the name of its file without .json.
func Valid(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := document(filepath.Join(folder(t), "valid", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// document reads a fixture. It is a whole document, or the name of a valid fixture and a patch of it (RFC 6902).
func document(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var of struct {
		Base  string
		Patch json.RawMessage
	}
	if json.Unmarshal(raw, &of) != nil || of.Patch == nil {
		return raw, nil
	}
	base, err := document(filepath.Join(filepath.Dir(path), "..", "valid", of.Base+".json"))
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(of.Patch)
	if err == nil {
		raw, err = patch.ApplyIndent(base, "  ")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return raw, nil
}
