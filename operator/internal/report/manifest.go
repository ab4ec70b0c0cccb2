package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/experiment"
)

// Manifest renders the run and its template as YAML for assay and kubectl.
func Manifest(exp *experiment.Experiment) ([]byte, error) {
	documents := []map[string]any{object(exp, "BenchmarkRun", exp.Run.Name, exp.Spec)}
	if exp.Plan.Template != "" {
		documents = append(documents, object(exp, "BenchmarkTemplate", exp.Plan.Template, exp.Template))
	}
	var out bytes.Buffer
	for i, document := range documents {
		raw, err := manifestYAML(document)
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", RunName(exp), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(raw)
	}
	return out.Bytes(), nil
}

// manifestYAML renders a document as YAML. With characters that are not shown it is JSON, which is YAML too, because YAML allows some of
// them nowhere and others only unescaped.
func manifestYAML(document any) ([]byte, error) {
	raw, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, err
	}
	text := string(raw)
	hidden := func(r rune) bool { return r != '\n' && !strconv.IsGraphic(r) }
	if !strings.ContainsFunc(text, hidden) {
		return yaml.JSONToYAML(raw)
	}
	var out strings.Builder
	for _, r := range text {
		if !hidden(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return []byte(out.String() + "\n"), nil
}

func object(exp *experiment.Experiment, kind, name string, spec json.RawMessage) map[string]any {
	return map[string]any{
		"apiVersion": exp.API, "kind": kind, "metadata": map[string]string{"name": name}, "spec": spec,
	}
}
