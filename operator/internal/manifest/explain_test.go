package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

const smallRun = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: r}
spec:
  templateRef: {name: t}
  arms: [{name: a, baseline: true}, {name: b}]
  gates:
  - {name: g, metric: m, op: RatioAtMost, bound: 0.90}
`

const inlineRun = `
apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: r}
spec:
  template:
    image: i
    command: [/c, $(rows)]
    metrics: [{name: m, unit: s, direction: LowerIsBetter}]
  arms: [{name: a}]
`

// Freeze reports fields, and Explain adds the lines of the files.
func TestExplain_ProblemsHaveFileAndLine(t *testing.T) {
	for name, tc := range map[string]struct{ run, template, says string }{
		"a gate on a metric that does not exist": {
			strings.Replace(smallRun, "metric: m", "metric: p", 1), fullTemplate,
			`run.yaml:9:23: spec.gates[0].metric: the template has no metric "p"`,
		},
		"a parameter of another template": {
			strings.Replace(smallRun, "  arms:", "  parameters:\n    rows: 8\n  arms:", 1), fullTemplate,
			`run.yaml:8:11: spec.parameters.rows: the template has no parameter "rows"`,
		},
		"a missing field is shown at its parent": {
			smallRun, strings.Replace(fullTemplate, "[{name: share", "[{name: rows}, {name: share", 1),
			`run.yaml:5:1: spec.parameters: parameter "rows" has no default and no value`,
		},
		"a field of the template is in the template's file": {
			smallRun, strings.Replace(fullTemplate, "maximum: 8", "maximum: 0.1", 1),
			`template.yaml:10:16: spec.parameters[0]: minimum 250m of parameter "share" exceeds its maximum 100m`,
		},
		"a field of a template inside the run is there": {
			inlineRun, "", `run.yaml:8:19: spec.template.command[1]: $(rows): the template has no parameter "rows": there are none`,
		},
		"a template that is not there": {
			strings.Replace(smallRun, "name: t}", "name: u}", 1), fullTemplate, `run.yaml:6:23: spec.templateRef.name: no BenchmarkTemplate "u"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			paths := []string{filepath.Join(folder, "run.yaml")}
			if tc.template != "" {
				paths = append(paths, filepath.Join(folder, "template.yaml"))
			}
			for i, document := range []string{tc.run, tc.template}[:len(paths)] {
				if err := os.WriteFile(paths[i], []byte(document), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			set, err := Read(paths...)
			if err != nil {
				t.Fatal(err)
			}
			run := &set.Runs[0]
			template, err := set.Template(run)
			if err == nil {
				_, err = experiment.Freeze(record.Run{Name: "r", UID: "u"}, run.Spec, *template)
				err = set.Explain(run, err)
			}
			if err == nil || !strings.Contains(err.Error(), filepath.Join(folder, tc.says)) {
				t.Errorf("got %v\nwant %s", err, tc.says)
			}
		})
	}
}

func TestExplain_OtherErrorIsUnchanged(t *testing.T) {
	other := errors.New("no space left on device")
	if err := (&Set{}).Explain(&assayv1alpha1.BenchmarkRun{}, other); !errors.Is(err, other) || err.Error() != other.Error() {
		t.Errorf("got %v", err)
	}
}

func TestExplain_ProblemOfShippedTemplateNamesItsFile(t *testing.T) {
	set := &Set{}
	if err := set.AddShipped(); err != nil {
		t.Fatal(err)
	}
	run := &assayv1alpha1.BenchmarkRun{}
	run.Spec.TemplateRef = &assayv1alpha1.TemplateReference{Name: "pir-scan"}
	err := set.Explain(run, &experiment.Invalid{Problems: []experiment.Problem{{Field: "template.command[0]", Message: "is wrong"}}})
	if err == nil || !regexp.MustCompile(`^[a-z-]+\.yaml \(shipped\):\d+:\d+: spec\.command\[0\]: is wrong$`).MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

// refused returns the problems that Freeze reports for a document, with and without places. The document is read without schema checks, so
// that every problem of Freeze is located, even for input that the schema rejects.
func refused(root *yaml.Node) (problems []experiment.Problem, placed []Problem) {
	reader := reading{within: map[*yaml.Node]bool{}}
	raw, err := json.Marshal(reader.value(root, definitions["BenchmarkRun"]().read, ""))
	var run assayv1alpha1.BenchmarkRun
	if err != nil || len(reader.problems) > 0 || json.Unmarshal(raw, &run) != nil || run.Spec.Template == nil {
		return nil, nil
	}
	set := &Set{Runs: []assayv1alpha1.BenchmarkRun{run}, runOrigins: []origin{{file: "run.yaml", root: root}}}
	_, err = experiment.Freeze(record.Run{Name: "r", UID: "u"}, run.Spec, *run.Spec.Template)
	if invalid, ok := errors.AsType[*experiment.Invalid](err); ok {
		for _, problem := range invalid.Problems {
			problems, placed = append(problems, problem), append(placed, set.place(&set.Runs[0], problem))
		}
	}
	return problems, placed
}

// lines records the lines of every value and key of a document, by path.
func lines(node *yaml.Node, path string, key *yaml.Node, into map[string][]int) {
	into[path] = append(into[path], node.Line)
	if key != nil {
		into[path] = append(into[path], key.Line)
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			lines(node.Content[i+1], join(path, node.Content[i].Value), node.Content[i], into)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			lines(item, fmt.Sprintf("%s[%d]", path, i), nil, into)
		}
	}
}

// nearestLines returns the lines of a field, or of its nearest existing parent.
func nearestLines(written map[string][]int, field string) []int {
	for {
		if at, ok := written[field]; ok {
			return at
		}
		field = field[:max(strings.LastIndexByte(field, '.'), strings.LastIndexByte(field, '['), 0)]
	}
}

// inSchema reports whether the kind has a field of that path.
func inSchema(schema *structural.Structural, field string) bool {
	for _, step := range split(field) {
		if schema.AdditionalProperties != nil {
			return true // The keys are arbitrary and may contain dots.
		}
		if schema = below(schema, step); schema == nil {
			return false
		}
	}
	return true
}

// others are replacement values for a scalar; each is invalid for some field.
var others = []string{
	"", "x", "0", "-1", "1", "3", "1000000", "1.5", "500%", "$(nope)", "$(port.nope)", "$(port.server)", "../x", "ASSAY_X", "process.x", "a\nb",
	"None", "PerArm", "AtMost", "Completes", "completes", "K6", "CSV", "None", "GoBench", "p99", "0s", "-1s", "Exists", "assay.dev/leased", "Integer",
}

// changes calls visit for every single change of a document, while it is applied.
func changes(node *yaml.Node, visit func()) {
	content := node.Content
	switch node.Kind {
	case yaml.ScalarNode:
		was := *node
		for _, other := range others {
			node.Value = other
			if other == "" || strings.ContainsAny(other, "\n") {
				node.Style = yaml.DoubleQuotedStyle
			}
			visit()
			*node = was
		}
	case yaml.SequenceNode:
		if len(content) > 0 {
			twice := append(slices.Clone(content), content[len(content)-1])
			for _, changed := range [][]*yaml.Node{nil, content[:1], content[1:], twice} {
				node.Content = changed
				visit()
			}
		}
		node.Content = content
	case yaml.MappingNode:
		for i := 0; i+1 < len(content); i += 2 {
			node.Content = slices.Delete(slices.Clone(content), i, i+2)
			visit()
			// A mapping of strings has arbitrary keys.
			was := content[i].Value
			node.Content, content[i].Value = content, "not.there"
			visit()
			content[i].Value = was
		}
		node.Content = content
	}
	for i, child := range content {
		if node.Kind != yaml.MappingNode || i%2 == 1 {
			changes(child, visit)
		}
	}
}

// bases are runs that together use every part of the API, and runs whose problems need more than one change.
func bases(t *testing.T) map[string]*yaml.Node {
	t.Helper()
	out := map[string]*yaml.Node{}
	for _, name := range []string{"everything.yaml", "roles.yaml", "wrong.yaml"} {
		file := filepath.Join("testdata", name)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Read without schema checks, because some are invalid by the schema.
		documents := yaml.NewDecoder(bytes.NewReader(raw))
		for i := 0; ; i++ {
			var document yaml.Node
			if err := documents.Decode(&document); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			out[fmt.Sprintf("%s#%d", name, i)] = document.Content[0]
		}
	}
	// Generated, because they are too large for files.
	var builds []string
	for i := range 40 {
		builds = append(builds, fmt.Sprintf("{name: b%d, image: lab/x:%d}", i, i))
	}
	for what, text := range map[string]string{
		"large":  strings.Replace(inlineRun, "$(rows)", strings.Repeat("x", 5<<20), 1),
		"images": strings.Replace(inlineRun, "{name: a}", "{name: a, builds: ["+strings.Join(builds, ", ")+"]}", 1),
	} {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		out["wrong.yaml, "+what] = document.Content[0]
	}
	return out
}

// sites are the message formats of package experiment as patterns that match their texts, by position.
func sites(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	files := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join("..", "experiment", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	verb := regexp.MustCompile(`%[-+#0-9.]*[a-z]`)
	out := map[string]*regexp.Regexp{}
	for _, path := range paths {
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			if selector, ok := call.Fun.(*ast.SelectorExpr); !ok || selector.Sel.Name != "add" {
				return true
			}
			format := literals(call.Args[1])
			if verb.ReplaceAllString(format, "") == "" {
				return true // The whole message is computed elsewhere.
			}
			var pattern strings.Builder
			for i, part := range verb.Split(strings.ReplaceAll(format, "%%", "\x00"), -1) {
				if i > 0 {
					pattern.WriteString("(?s:.*)")
				}
				pattern.WriteString(regexp.QuoteMeta(strings.ReplaceAll(part, "\x00", "%")))
			}
			at := files.Position(call.Pos())
			out[fmt.Sprintf("%s: %s", filepath.Base(at.Filename), format)] = regexp.MustCompile("^" + pattern.String() + "$")
			return true
		})
	}
	return out
}

// literals returns the concatenated constant texts of an expression.
func literals(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(of.Value)
		return text
	case *ast.BinaryExpr:
		return literals(of.X) + literals(of.Y)
	}
	return ""
}

// Every field that Freeze reports must exist in the schema and be shown at its line or at its parent's. Each valid run is changed in every
// place, one at a time, until every message of Freeze has occurred.
func TestExplain_EveryProblemOfFreezeHasLine(t *testing.T) {
	unseen := sites(t)
	if len(unseen) < 80 {
		t.Fatalf("only %d refusals are found in the source", len(unseen))
	}
	wrong := 0
	schema := definitions["BenchmarkRun"]().schema
	for name, base := range bases(t) {
		check := func() {
			problems, placed := refused(base)
			written := map[string][]int{}
			if len(placed) > 0 {
				lines(base, "", nil, written)
			}
			for i, problem := range placed {
				want := nearestLines(written, problem.Field)
				if known := inSchema(schema, problem.Field); !known || !slices.Contains(want, problem.Line) {
					if wrong++; wrong <= 20 {
						t.Errorf("%s: %v\nnamed %s; the line is one of %d, in the schema: %v", name, problem, problems[i].Field, want, known)
					}
				}
				for site, pattern := range unseen {
					if pattern.MatchString(problems[i].Message) {
						delete(unseen, site)
					}
				}
			}
		}
		check()
		if !strings.HasPrefix(name, "wrong.yaml") {
			changes(base, check)
		}
	}
	for site := range unseen {
		t.Errorf("no change of any example is refused with %q: add one to testdata/", site)
	}
}
