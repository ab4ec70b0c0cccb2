package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every format that a template can name is described, and has an example that names it.
func TestFormats_AreDescribedWithAnExample(t *testing.T) {
	reference := textOf(t, "docs/reference/adapters.md")
	script := textOf(t, "hack/adapters.sh")
	examples, err := filepath.Glob(filepath.Join(root, "workflows/examples/*/run.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	formats := outputFormats(t)
	if len(formats) == 0 {
		t.Fatal("runner/schema/wave.schema.json has no formats: where is output.format?")
	}
	// A list of YAML: the API's first format, and those on the lines after it.
	crd := textOf(t, "operator/config/crd/assay.dev_benchmarktemplates.yaml")
	if got := enumFrom(crd, "AssayResult"); !slices.Equal(got, formats) {
		t.Errorf("the API has the formats %v, and runner/schema/wave.schema.json has %v: they must be the same", got, formats)
	}
	for _, format := range formats {
		if format == "AssayResult" || format == "None" {
			continue // The program's own result needs no adapter, and nothing needs none.
		}
		if rows := strings.Count(reference, "\n| `"+format+"`"); rows < 2 {
			t.Errorf("docs/reference/adapters.md has %d rows of %s: say who writes it, and which fields it has", rows, format)
		}
		example := ""
		for _, path := range examples {
			if text := textOf(t, strings.TrimPrefix(path, root+"/")); strings.Contains(text, "output: {format: "+format+"}") ||
				strings.Contains(text, "output: {format: "+format+",") {
				example = filepath.Base(filepath.Dir(path))
			}
		}
		if example == "" {
			t.Errorf("no run.yaml in workflows/examples has output: {format: %s}", format)
		} else if !strings.Contains(script, "\nprepare_"+example+"()") {
			t.Errorf("hack/adapters.sh does not prepare the example %s", example)
		}
	}
}

// enumFrom returns the items of the list of YAML that begins with the first.
func enumFrom(text, first string) []string {
	lines := strings.Split(text, "\n")
	begin := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "- "+first })
	var out []string
	for _, line := range lines[max(begin, 0):] {
		item, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		out = append(out, item)
	}
	return out
}

// object is the schema of an object.
type object[T any] struct {
	Properties T `json:"properties"`
}

// outputFormats are those of the wave's schema.
func outputFormats(t *testing.T) []string {
	t.Helper()
	var schema object[struct {
		Workload object[struct {
			Output object[struct {
				Format struct {
					Enum []string `json:"enum"`
				} `json:"format"`
			}] `json:"output"`
		}] `json:"workload"`
	}]
	if err := json.Unmarshal([]byte(textOf(t, "runner/schema/wave.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	return schema.Properties.Workload.Properties.Output.Properties.Format.Enum
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
