package integration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

const servedTemplate = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkTemplate
metadata: {name: served}
spec:
  image: lab/kv:1
  roles:
  - {name: server, command: [/kv, serve, "--port=$(port.server)"], cpus: 1, readiness: {port: true}}
  - {name: client, command: [/kv, bench], result: true}
  files: [/kv, /usr/share/kv]
  metrics: [{name: latency, unit: s, direction: LowerIsBetter}]
`

// create sends a handwritten object to the API server as a dry run.
func create(t *testing.T, namespace, text string) (*unstructured.Unstructured, error) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace(namespace)
	return object, admin.Create(t.Context(), object, client.DryRunAll)
}

func TestAPIServer_RejectsRolesThat(t *testing.T) {
	t.Parallel()
	w := newNamespace(t, nil)
	cases := map[string]struct{ from, to, want string }{
		"have no one with the result":      {", result: true", "", "the last role has result: true, and no other"},
		"have the result first":            {"cpus: 1,", "cpus: 1, result: true,", "the last role has result: true, and no other"},
		"have one name twice":              {"name: client", "name: server", "no two roles have the same name"},
		"stand beside a command":           {"  files:", "  command: [/kv]\n  files:", "give the command of a workload that is one process, or the roles"},
		"are ready by two signs":           {"{port: true}", "{port: true, line: up}", "exactly one of port: true, line and file"},
		"are ready by none":                {"{port: true}", "{port: false}", "exactly one of port: true, line and file"},
		"wait after the last one":          {"result: true", "result: true, readiness: {port: true}", "nothing waits until it is ready"},
		"have a name that is no name":      {"name: server", "name: Server", "spec.roles[0].name"},
		"have a readiness file without /":  {"{port: true}", "{file: ready}", "readiness.file"},
		"have fewer than no CPUs":          {"cpus: 1", "cpus: -1", "greater than or equal to 0"},
		"come with files outside of /":     {"files: [/kv,", "files: [kv,", "spec.files[0]"},
		"come with files that leave again": {"files: [/kv,", `files: ["/kv/{{x}}",`, "spec.files[0]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(servedTemplate, tc.from, tc.to, 1)
			if text == servedTemplate {
				t.Fatalf("%q is not in the template", tc.from)
			}
			if _, err := create(t, w.namespace, text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("are not there, nor a command", func(t *testing.T) {
		text := strings.Replace(servedTemplate, "  roles:", "  parameters: []\n  x-roles:", 1)
		if _, err := create(t, w.namespace, text); err == nil || !strings.Contains(err.Error(), "give the command") {
			t.Errorf("error %v, want that there is neither", err)
		}
	})
}

func TestAPIServer_ValidatesImageOfArm(t *testing.T) {
	t.Parallel()
	w := newNamespace(t, nil)
	run := w.run.DeepCopy()
	run.Spec.Arms[1].Image = "lab/{{workflow.name}}:1"
	if err := admin.Create(t.Context(), run, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "spec.arms[1].image") {
		t.Errorf("error %v, want one about spec.arms[1].image", err)
	}
}

func TestDefaults_OfRolesAgree(t *testing.T) {
	t.Parallel()
	w := newNamespace(t, nil)
	created, err := create(t, w.namespace, servedTemplate)
	if err != nil {
		t.Fatal(err)
	}
	var got, want assayv1alpha1.BenchmarkTemplate
	raw, err := yaml.Marshal(created.Object)
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &got)
	}
	if err == nil {
		err = yaml.UnmarshalStrict([]byte(servedTemplate), &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	experiment.DefaultTemplate(&want.Spec)
	want.ObjectMeta, got.ObjectMeta = metav1.ObjectMeta{}, metav1.ObjectMeta{}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("defaults differ (-experiment.DefaultTemplate +API server):\n%s", diff)
	}
}
