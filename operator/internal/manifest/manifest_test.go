package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

const runDocument = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: r}
spec: {templateRef: {name: t}, arms: [{name: a}]}
`

const templateDocument = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkTemplate
metadata: {name: t}
spec: {image: i, command: [/c], metrics: [{name: m, unit: s, direction: LowerIsBetter}]}
`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadTakesSeveralDocumentsAndSkipsEmptyOnes(t *testing.T) {
	set, err := Read(write(t, "# only a comment\n---\n"+runDocument+"---\n"+templateDocument+"---\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Runs) != 1 || len(set.Templates) != 1 {
		t.Fatalf("got %d runs and %d templates", len(set.Runs), len(set.Templates))
	}
	template, err := set.Template(&set.Runs[0])
	if err != nil || template.Image != "i" {
		t.Errorf("template of the run: %v, %v", template, err)
	}
}

func TestReadRefuses(t *testing.T) {
	cases := map[string]struct{ document, says string }{
		"a field that does not exist":      {strings.Replace(runDocument, "arms:", "arm:", 1), `unknown field "spec.arm"`},
		"another API version":              {strings.Replace(runDocument, "v1alpha1", "v1", 1), "only assay.dev/v1alpha1 can be read"},
		"another kind":                     {strings.Replace(runDocument, "BenchmarkRun", "Pod", 1), `kind is "Pod"`},
		"a value that is no string":        {strings.Replace(runDocument, "arms: [{name: a}]", "arms: [{name: a}], parameters: {rows: 5}", 1), "cannot unmarshal number"},
		"something that is no YAML":        {"{", "document 1"},
		"a document that is not a mapping": {"- 1\n- 2\n", "document 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := write(t, tc.document)
			_, err := Read(path)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q and the file's name", err, tc.says)
			}
		})
	}
}

func TestATemplateThatWasNotReadIsNamed(t *testing.T) {
	set, err := Read(write(t, runDocument))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Template(&set.Runs[0]); err == nil || !strings.Contains(err.Error(), `no BenchmarkTemplate "t"`) {
		t.Errorf("got %v", err)
	}
}

// Everything shipped must be accepted: a study that cannot even be frozen is found here, not by a user.
func TestEveryStudyFreezesWithTheShippedTemplates(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	studies, err := filepath.Glob(filepath.Join(root, "workflows", "*", "*", "*.yaml"))
	if err != nil || len(studies) == 0 {
		t.Fatalf("no studies found: %v", err)
	}
	for _, study := range studies {
		if filepath.Base(study) == "pipeline.yaml" {
			continue // Argo's, with a manifest inside: see TestTheManifestInThePipelineFreezes.
		}
		t.Run(filepath.Base(filepath.Dir(study))+"/"+filepath.Base(study), func(t *testing.T) {
			set, err := Read(study, filepath.Join(root, "charts", "assay", "files", "benchmarktemplates"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range set.Runs {
				template, err := set.Template(&set.Runs[i])
				if err != nil {
					t.Fatal(err)
				}
				if _, err := experiment.Freeze(record.Run{Name: set.Runs[i].Name, UID: "u"}, set.Runs[i].Spec, *template); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A reader copies the first run from the README: it must be accepted as it stands there.
func TestTheReadmesRunFreezes(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```yaml\n")
	document, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("README.md has no yaml block")
	}
	set, err := Read(write(t, document), filepath.Join(root, "charts", "assay", "files", "benchmarktemplates"))
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
}
