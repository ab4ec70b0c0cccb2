package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every format that a template can name is described, and has an example that names it.
func TestEveryFormatIsDescribedAndHasAnExample(t *testing.T) {
	reference := textOf(t, "docs/reference/adapters.md")
	script := textOf(t, "hack/adapters.sh")
	examples, err := filepath.Glob(filepath.Join(root, "workflows/examples/*/run.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range outputFormats(t) {
		if format == "AssayResult" || format == "None" {
			continue // The program's own result needs no adapter, and nothing needs none.
		}
		if rows := strings.Count(reference, "\n| `"+format+"`"); rows < 2 {
			t.Errorf("docs/reference/adapters.md has %d rows of %s: say who writes it, and which fields it has", rows, format)
		}
		found := ""
		for _, path := range examples {
			if text := textOf(t, strings.TrimPrefix(path, root+"/")); strings.Contains(text, "output: {format: "+format+"}") ||
				strings.Contains(text, "output: {format: "+format+",") {
				found = filepath.Base(filepath.Dir(path))
			}
		}
		if found == "" {
			t.Errorf("no run.yaml in workflows/examples has output: {format: %s}", format)
		} else if !strings.Contains(script, "\nprepare_"+found+"()") {
			t.Errorf("hack/adapters.sh does not prepare the example %s", found)
		}
	}
}

// outputFormats are those of the wave's schema, which the operator's tests hold against the API.
func outputFormats(t *testing.T) []string {
	t.Helper()
	var schema any
	if err := json.Unmarshal([]byte(textOf(t, "workloads/schema/wave.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(any)
	walk = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				walk(item)
			}
		case map[string]any:
			if format, ok := value["format"].(map[string]any); ok {
				if enum, ok := format["enum"].([]any); ok {
					for _, name := range enum {
						out = append(out, name.(string))
					}
				}
			}
			for _, item := range value {
				walk(item)
			}
		}
	}
	walk(schema)
	if len(out) < 3 {
		t.Fatalf("workloads/schema/wave.schema.json has the formats %v: where is output.format?", out)
	}
	return out
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
