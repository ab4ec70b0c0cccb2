package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func tree(t *testing.T) Tree {
	t.Helper()
	read, err := ReadTree(root)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestCommands_MissingTargetsAreFound(t *testing.T) {
	whole := tree(t)
	for sentence, tc := range map[string]struct {
		script string
		want   []string
	}{
		"targets and a variable of make":        {"make images push REGISTRY=registry.example.com", nil},
		"a target that make does not have":      {"true\nmake pushes", []string{"2: make has no target pushes"}},
		"a variable that make does not have":    {"make images TARGETS=x", []string{"1: make has no variable TARGETS"}},
		"make in another command's output":      {"echo $(make nothing)", []string{"1: make has no target nothing"}},
		"make as another user":                  {"sudo --preserve-env=PATH make nothing", []string{"1: make has no target nothing"}},
		"a command with its flags":              {"bin/assay run --local run.yaml -n team --out=out", nil},
		"a command of a command":                {"assay history rebuild --help", nil},
		"a command that assay does not have":    {"assay judge run", []string{"1: assay has no command judge"}},
		"a flag of another command":             {"assay version --local", []string{"1: assay version has no flag --local"}},
		"the same as a plugin of kubectl":       {"kubectl assay version --local", []string{"1: assay version has no flag --local"}},
		"a short flag of another command":       {"assay version -f x", []string{"1: assay version has no flag -f"}},
		"a command that is known later":         {`assay "$command" --nothing`, nil},
		"another program's flag":                {"helm version --nothing", nil},
		"a value of the chart":                  {"helm install assay charts/assay --set global.imageRegistry=$registry", nil},
		"an item of a value":                    {"helm upgrade assay x --set 'global.imagePullSecrets[0].name=pull'", nil},
		"a value that the chart does not have":  {"helm install assay x --set images.nothing=1", []string{"1: the chart has no value images.nothing"}},
		"an item of a value that is no list":    {"helm upgrade assay x --set 'global[0].name=pull'", []string{"1: the chart has no value global[0].name"}},
		"the second of two values":              {"helm template x --set=grafana.mode=none,grafana.moods=1", []string{"1: the chart has no value grafana.moods"}},
		"a command of the cluster tool":         {"bin/cluster images add --name x --file /a=b", nil},
		"one that the cluster tool has not":     {"bin/cluster start", []string{"1: cluster has no command start"}},
		"a flag that the cluster tool has not":  {"cluster up --size 3", []string{"1: cluster has no flag --size"}},
		"a file of the tree":                    {"cat workflows/studies/pir-batch-scan/run.yaml", nil},
		"a file that the tree does not have":    {"hack/nothing.sh x", []string{"1: the tree has no hack/nothing.sh"}},
		"a program that is not built":           {"bin/nothing", []string{"1: make builds no bin/nothing"}},
		"a program of another checkout":         {"assay bisect run.yaml --program bin/nothing", nil},
		"a script that ends with the shell":     {"trap 'bin/cluster down >&2' EXIT", nil},
		"a mistake in such a script":            {"trap 'bin/cluster dawn >&2' EXIT", []string{"1: cluster has no command dawn"}},
		"such a script that is known later":     {`trap "bin/cluster $command" EXIT; trap - EXIT; trap`, nil},
		"a file whose name is known later":      {`cat "hack/$name.sh" hack/*.nothing`, nil},
		"text outside shell blocks":             {"if ls; then", []string{"1:8: `then` must be followed by a statement list"}},
		"two, in a loop":                        {"for x in 1 2; do\nmake one two\ndone", []string{"2: make has no target one", "2: make has no target two"}},
		"a target that is only a word of a mk":  {"make unless", []string{"1: make has no target unless"}},
		"a variable's name is no target":        {"make KERNELS", []string{"1: make has no target KERNELS"}},
		"everything behind -- is an argument":   {"assay version -- --local", nil},
		"a chart elsewhere is not in this tree": {"helm install assay oci://ghcr.io/acme/charts/assay --wait", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := whole.Problems(tc.script); !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Also of blocks that nothing executes.
func TestCommands_OfDocumentationExist(t *testing.T) {
	whole := tree(t)
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, page := range pages {
		blocks, err := ReadPage(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			seen++
			for _, problem := range whole.Problems(block.Commands) {
				t.Errorf("%s, line %s of the block at line %d", page, problem, block.Line)
			}
		}
	}
	if seen < 100 {
		t.Errorf("the documentation has %d blocks of commands", seen)
	}
}

// inProse is a command in a sentence.
var inProse = regexp.MustCompile("`(?:VERSION=\\S+ |CLUSTER=\\S+ )?((?:make|bin/assay|assay|bin/cluster) [^`…]*)`")

func TestCommands_InSentencesExist(t *testing.T) {
	whole := tree(t)
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, page := range pages {
		// Pages about the past.
		if page == "CHANGELOG.md" || strings.HasPrefix(page, "docs/decisions/") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(raw), "\n") {
			for _, match := range inProse.FindAllStringSubmatch(line, -1) {
				seen++
				for _, problem := range whole.Problems(match[1]) {
					t.Errorf("%s:%d: `%s`: %s", page, i+1, match[1], problem)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("the documentation has %d commands in sentences", seen)
	}
}

func TestCommands_StepsOfWorkflowsExist(t *testing.T) {
	whole := tree(t)
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.y*ml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("workflows %v: %v", files, err)
	}
	for _, file := range append(files, filepath.Join(root, "action.yml")) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := Steps(raw)
		if err != nil || len(steps) == 0 {
			t.Fatalf("%s: steps %v: %v", file, steps, err)
		}
		for line, script := range steps {
			for _, problem := range whole.Problems(script) {
				t.Errorf("%s, line %s of the step at line %d", filepath.Base(file), problem, line)
			}
		}
	}
}

func TestCommands_OfScriptsExist(t *testing.T) {
	whole := tree(t)
	scripts, err := filepath.Glob(filepath.Join(root, "hack", "*.sh"))
	if err != nil || len(scripts) < 10 {
		t.Fatalf("scripts %v: %v", scripts, err)
	}
	for _, script := range append(scripts, filepath.Join(root, ".ci", "run")) {
		raw, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range whole.Problems(string(raw)) {
			t.Errorf("%s:%s", filepath.Base(script), problem)
		}
	}
}

func TestCommands_StepsOfAWorkflowAreParsed(t *testing.T) {
	workflow := "jobs:\n  check:\n    steps:\n    - run: make ${{ inputs.target }}\n    - name: two\n      run: |\n        a\n        b\n"
	got, err := Steps([]byte(workflow))
	want := map[int]string{4: "make $EXPRESSION", 6: "a\nb\n"}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v: %v, want %v", err, got, want)
	}
	if got, err := Steps([]byte("a: [")); err == nil {
		t.Errorf("invalid YAML has the steps %v", got)
	}
}
