package report

import (
	"bytes"
	"encoding/json"
	"fmt"

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
		raw, err := yaml.Marshal(document)
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

func object(exp *experiment.Experiment, kind, name string, spec json.RawMessage) map[string]any {
	return map[string]any{
		"apiVersion": exp.API, "kind": kind, "metadata": map[string]string{"name": name}, "spec": spec,
	}
}
