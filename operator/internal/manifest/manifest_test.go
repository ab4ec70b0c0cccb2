package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/format"
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

func TestRead_SeveralDocumentsAndEmptyOnes(t *testing.T) {
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

// A folder's name may contain pattern characters: a glob for "runs[1]" would match "runs1" instead.
func TestRead_FolderNameWithPatternCharacters(t *testing.T) {
	within := t.TempDir()
	for name, documents := range map[string]string{
		"runs[1]": runDocument + "---\n" + templateDocument, "runs1": runDocument, "a[": runDocument, "*": "",
	} {
		folder := filepath.Join(within, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string]string{"b.yaml": documents, "a.yaml": documents, "a.yml": "no YAML: {"} {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string][2]int{"runs[1]": {2, 2}, "runs1": {2, 0}, "a[": {2, 0}, "*": {0, 0}} {
		set, err := Read(filepath.Join(within, name))
		if err != nil || len(set.Runs) != want[0] || len(set.Templates) != want[1] {
			t.Errorf("%s: %v, want %d runs and %d templates", name, err, want[0], want[1])
		} else if len(set.runOrigins) > 0 && filepath.Base(set.runOrigins[0].file) != "a.yaml" {
			t.Errorf("%s: %s is read first", name, set.runOrigins[0].file)
		}
	}
}

// words lists names as messages do.
func words[T ~string](names []T) string {
	var out []string
	for _, name := range names {
		out = append(out, string(name))
	}
	return strings.Join(out, ", ")
}

// Every mistake is reported with file, line and column, the allowed values and a likely correction.
func TestRead_InvalidFilesAreRejected(t *testing.T) {
	run := func(old, replacement string) string { return strings.Replace(fullRun, old, replacement, 1) }
	template := func(old, replacement string) string { return strings.Replace(fullTemplate, old, replacement, 1) }
	formats := append(append([]string{format.AssayResult}, format.Tools()[1:]...), format.None)
	cases := map[string]struct{ document, says string }{
		"a field that does not exist":                 {run("arms:", "arm:"), ":14:3: spec.arm: unknown field: did you mean arms? Allowed are arms, budget,"},
		"a field that is misspelt in a list":          {run("baseline", "basline"), ":15:15: spec.arms[0].basline: unknown field: did you mean baseline? Allowed are baseline, builds, image, name, parameters"},
		"a field of the metadata that does not exist": {run("name: r", "name: r, lables: {}"), ":4:21: metadata.lables: unknown field"},
		"a field in the status that does not exist":   {fullRun + "status: {phrase: Running}\n", ":20:10: status.phrase: unknown field"},
		"another API version":                         {run("v1alpha1", "v1"), `:2:13: apiVersion: invalid apiVersion "assay.dev/v1": allowed is assay.dev/v1alpha1`},
		"another kind":                                {run("BenchmarkRun", "BenchmarkRn"), `:3:7: kind: invalid kind "BenchmarkRn": did you mean BenchmarkRun? Allowed are BenchmarkRun, BenchmarkTemplate`},
		"something that is no YAML":                   {"{", ":1:1: invalid YAML: did not find"},
		"a document that is not a mapping":            {"- 1\n- 2\n", ":1:1: invalid document: not a mapping"},
		"a second document, counted in the file":      {fullRun + "---\nkind: Pod\n", `:21:1: apiVersion: invalid apiVersion ""`},
		"an operator that is misspelt":                {run("RatioAtLeast", "RatioAtLest"), `:19:30: spec.gates[0].op: invalid value "RatioAtLest": did you mean RatioAtLeast? Allowed are ` + words(experiment.Ops())},
		"a format that is misspelt":                   {template("Hyperfine", "Hyperfin"), `spec.output.format: invalid value "Hyperfin": did you mean Hyperfine? Allowed are ` + words(formats)},
		"half a word":                                 {template("LowerIsBetter", "lower"), `spec.metrics[0].direction: invalid value "lower": did you mean LowerIsBetter? Allowed are HigherIsBetter, LowerIsBetter`},
		"a word that resembles none":                  {template("LowerIsBetter", "best"), "allowed are HigherIsBetter, LowerIsBetter\n"},
		"a field that is missing":                     {run("op: RatioAtLeast, ", ""), ":19:5: spec.gates[0].op: is missing: allowed are RatioAtLeast, "},
		"text where a number belongs":                 {run("min: 4", `min: "4"`), ":17:26: spec.design.blocks.min: invalid type: found a string, allowed is an integer"},
		"a list where a mapping belongs":              {run("{blocks: {min: 4}}", "[]"), "spec.design: invalid type: found a list, allowed is a mapping"},
		"a number out of bounds":                      {run("min: 4", "min: -4"), ":17:26: spec.design.blocks.min: -4: should be greater than or equal to 2"},
		"a text that fits no pattern":                 {run("name: a,", "name: A_,"), `spec.arms[0].name: "A_": should match '^[a-z0-9]`},
		"a name that is here twice":                   {run("name: b", "name: a"), `:16:5: spec.arms[1]: duplicate {"name":"a"}: remove one, or rename it`},
		"a rule over several fields":                  {run("baseline: true", "baseline: false"), ":5:1: spec: exactly one arm must have baseline: true"},
		"a rule over the object":                      {run("name: r", "name: "+strings.Repeat("r", 53)), "a run's name has at most 52 characters"},
		"a name that no object can have":              {run("name: r", "name: r_r"), `:4:18: metadata.name: "r_r": a lowercase RFC 1123 subdomain`},
		"labels that are a list":                      {run("name: r", "name: r, labels: [a]"), "metadata.labels: invalid type: found a list, allowed is a mapping"},
		"a key that is written twice":                 {run("arms:", "parity: Run\n  parity: Run\n  arms:"), ":15:3: spec.parity: duplicate key: line 14 has it too; keep one"},
		"a parameter without a value":                 {run("n: n", "n:"), `spec.parameters.n: has no value: write one, or ""`},
		"a duration without a unit":                   {run("design:", "budget: {wallClock: 60}\n  design:"), "spec.budget.wallClock: "},
		"a document that contains itself":             {run("parameters:", "sweep: &a {include: [*a]}\n  parameters:"), "anchor a contains itself"},
		"a document that grows without end": {run("parameters:", "sweep:\n    a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n    b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n    c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"+
			"    d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n    e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n    f: [*e, *e, *e]\n  parameters:"), "aliases expand the document"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := write(t, tc.document)
			_, err := Read(path)
			if err == nil || !strings.Contains(err.Error()+"\n", tc.says) || !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("got %v\nwant %q and the file's name", err, tc.says)
			}
		})
	}
}

// Files are untrusted. A file of one megabyte with ten thousand levels took gigabytes, because every value had a path.
func TestRead_DeepNestingTakesBoundedMemory(t *testing.T) {
	const deep = 9000
	key := strings.Repeat("k", 100)
	chain := "x: &a0 1\n"
	for i := range deep {
		chain += fmt.Sprintf("x: &a%d [*a%d]\n", i+1, i)
	}
	for name, tc := range map[string]struct{ document, says string }{
		"mappings in mappings": {fullRun + "other: " + strings.Repeat("{"+key+": ", deep) + "1" + strings.Repeat("}", deep) + "\n",
			"more than 64 deep"},
		"lists in lists":     {fullRun + "other: " + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "\n", "more than 64 deep"},
		"anchors in anchors": {fullRun + chain + fmt.Sprintf("other: *a%d\n", deep), "more than 64 deep"},
		"below a long name": {fullRun + "? " + strings.Repeat(key, 5000) + "\n: [" + strings.Repeat("1,", 100_000) + "1]\n",
			"a key has 500000 bytes"},
	} {
		path := write(t, tc.document)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(path)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %.200v, want %q", name, err, tc.says)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
			t.Errorf("%s: %d bytes of it took %d MiB", name, len(tc.document), took>>20)
		}
	}
}

const fullRun = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: r}
spec:
  templateRef: {name: t}
  parameters:
    n: n
    rows: 5
    hex: 0x10
    octal: 010
    power: 1e3
    date: 2026-01-02
  arms:
  - {name: a, baseline: true}
  - {name: b}
  design: {blocks: {min: 4}}
  gates:
  - {name: g, metric: m, op: RatioAtLeast, bound: 0.90}
`

const fullTemplate = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkTemplate
metadata: {name: t}
spec:
  image: i
  command: [/c, 1]
  output: {format: Hyperfine}
  parity: None
  parameters: [{name: share, type: Number, default: 0.50, minimum: 0.25, maximum: 8}]
  metrics: [{name: m, unit: s, direction: LowerIsBetter}]
`

// An unquoted number stays a number where the schema has one, and literal text where it has a string.
func TestRead_UnquotedTextIsLiteral(t *testing.T) {
	document := strings.Replace(fullRun, "  arms:",
		"  sweep: {axes: [{name: size, values: [1, 8, 0.10, 1_000, yes, null, .inf, 0o7]}]}\n  arms:", 1)
	set, err := Read(write(t, document+"---"+fullTemplate))
	if err != nil {
		t.Fatal(err)
	}
	run := set.Runs[0].Spec
	want := assayv1alpha1.ParameterValues{"n": "n", "rows": "5", "hex": "0x10", "octal": "010", "power": "1e3", "date": "2026-01-02"}
	if diff := cmp.Diff(want, run.Parameters); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1", "8", "0.10", "1_000", "yes", "null", ".inf", "0o7"}, run.Sweep.Axes[0].Values); diff != "" {
		t.Error(diff)
	}
	if run.Gates[0].Bound != "0.90" || run.Design.Blocks.Min != 4 {
		t.Errorf("bound %q, min %d", run.Gates[0].Bound, run.Design.Blocks.Min)
	}
	parameter := set.Templates[0].Spec.Parameters[0]
	if *parameter.Default != "0.50" || parameter.Minimum.String() != "250m" || parameter.Maximum.Value() != 8 ||
		set.Templates[0].Spec.Command[1] != "1" {
		t.Errorf("parameter %+v, command %q", parameter, set.Templates[0].Spec.Command)
	}
}

// Scalars of other types are converted as by kubectl.
func TestRead_ScalarsAreConvertedAsByKubectl(t *testing.T) {
	document := strings.NewReplacer("baseline: true", "baseline: yes", "min: 4", "min: 4, max: 1e1", "  gates:",
		"  budget: {wallClock: ~}\n  gates:", "blocks:", "seed: 9007199254740993, stop: ~, blocks:").Replace(fullRun)
	set, err := Read(write(t, document))
	if err != nil {
		t.Fatal(err)
	}
	spec := set.Runs[0].Spec
	if !spec.Arms[0].Baseline || spec.Design.Blocks.Max != 10 || spec.Design.Seed != 9007199254740993 {
		t.Errorf("arms %+v, design %+v", spec.Arms, spec.Design)
	}
}

func TestRead_AnchorsAndMerges(t *testing.T) {
	document := strings.NewReplacer("{name: a, baseline: true}", "&a {name: a, baseline: true, parameters: {x: 1}}", "{name: b}",
		"{<<: *a, name: b, baseline: false}").Replace(fullRun)
	set, err := Read(write(t, document))
	if err != nil {
		t.Fatal(err)
	}
	if arm := set.Runs[0].Spec.Arms[1]; arm.Name != "b" || arm.Baseline || arm.Parameters["x"] != "1" {
		t.Errorf("arm %+v", arm)
	}
}

func TestTemplate_MissingTemplateIsNamed(t *testing.T) {
	set, err := Read(write(t, runDocument))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Template(&set.Runs[0]); err == nil || !strings.Contains(err.Error(), `no BenchmarkTemplate "t"`) {
		t.Errorf("got %v", err)
	}
}

// Every shipped study must freeze, so that this test and not a user finds an invalid one.
func TestRead_StudiesFreezeWithShippedTemplates(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	studies, err := filepath.Glob(filepath.Join(root, "workflows", "*", "*", "*.yaml"))
	if err != nil || len(studies) == 0 {
		t.Fatalf("no studies found: %v", err)
	}
	for _, study := range studies {
		if filepath.Base(study) == "pipeline.yaml" {
			continue // Argo's, with a manifest inside: see TestRead_ManifestOfPipelineFreezes.
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
				frozen, err := experiment.Freeze(record.Run{Name: set.Runs[i].Name, UID: "u"}, set.Runs[i].Spec, *template)
				if err != nil {
					t.Error(err)
					continue
				}
				// The analysis must be able to parse every frozen experiment.
				raw, err := json.Marshal(frozen)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := experiment.Parse(raw); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Readers copy the first run of the README, so it must be valid.
func TestRead_RunOfReadmeFreezes(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```yaml\n")
	document, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
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
