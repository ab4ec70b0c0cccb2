package bench

import "sigs.k8s.io/yaml"

const heading = `# Run of assay bench. Repeat it with assay run --local; for a cluster, name the image with the programs
# and the inputs in template.image, and their paths in it in template.command and in the arms.
`

// Document is the question's run as a file.
func (q *Question) Document() ([]byte, error) {
	run, err := q.BenchmarkRun()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": run.APIVersion, "kind": run.Kind, "metadata": map[string]string{"name": run.Name}, "spec": run.Spec,
	})
	return append([]byte(heading), text...), err
}
