package bench

import (
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

const heading = `# Run of assay bench. Repeat it with assay run --local; for a cluster, name the image with the programs
# and the inputs in template.image, and their paths in it in template.command and in the arms.
`

// Document is a run of a question as a file.
func Document(run *assayv1alpha1.BenchmarkRun) ([]byte, error) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": run.APIVersion, "kind": run.Kind, "metadata": map[string]string{"name": run.Name}, "spec": run.Spec,
	})
	return append([]byte(heading), text...), err
}
