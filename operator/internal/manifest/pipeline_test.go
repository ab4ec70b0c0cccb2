package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// The example pipeline contains a manifest as text inside a Workflow.
func TestRead_ManifestOfPipelineFreezes(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	raw, err := os.ReadFile(filepath.Join(root, "workflows", "examples", "gate-in-a-pipeline", "pipeline.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var pipeline struct {
		Spec struct {
			Arguments struct {
				Parameters []struct{ Name, Value string }
			}
		}
	}
	if err := yaml.Unmarshal(raw, &pipeline); err != nil {
		t.Fatal(err)
	}
	for _, parameter := range pipeline.Spec.Arguments.Parameters {
		if parameter.Name != "run" {
			continue
		}
		set, err := Read(write(t, parameter.Value), filepath.Join(root, "charts", "assay", "files", "benchmarktemplates"))
		if err != nil {
			t.Fatal(err)
		}
		template, err := set.Template(&set.Runs[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := experiment.Freeze(record.Run{Name: set.Runs[0].Name, UID: "u"}, set.Runs[0].Spec, *template); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("the pipeline has no parameter run")
}
