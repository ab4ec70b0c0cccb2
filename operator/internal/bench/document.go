package bench

import "sigs.k8s.io/yaml"

const heading = `# What assay bench asked. Run it again with assay run --local; to run it on a cluster name the image that holds the programs
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
