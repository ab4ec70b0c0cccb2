package workflow

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
)

// argoDisplayName is what Argo 4 demands: a node whose display name does not match fails.
var argoDisplayName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-.]{0,61}[a-zA-Z0-9]$`)

func argument(t *testing.T, task Task, name string) string {
	t.Helper()
	for _, parameter := range task.Arguments.Parameters {
		if parameter.Name == name {
			return *parameter.Value
		}
	}
	t.Fatalf("task %s has no argument %s", task.Name, name)
	return ""
}

func TestDisplayNamesReadAsTheExperiment(t *testing.T) {
	value := func(values ...string) func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec) {
		return func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Sweep.Axes, spec.Gates, spec.Predictions = spec.Sweep.Axes[:1], nil, nil
			spec.Sweep.Axes[0].Values = values
			for i := range template.Parameters {
				if template.Parameters[i].Name == spec.Sweep.Axes[0].Name {
					template.Parameters[i].Type, template.Parameters[i].Minimum, template.Parameters[i].Maximum = assayv1alpha1.StringParameter, nil, nil
				}
			}
		}
	}
	arms := func(names ...string) func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec) {
		return func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Sweep, spec.Gates, spec.Predictions, spec.Arms = nil, nil, nil, spec.Arms[:len(names)]
			for i, name := range names {
				spec.Arms[i].Name = name
			}
			spec.Parameters = assayv1alpha1.ParameterValues{"batchSize": "1", "pendingDelta": "0"}
		}
	}
	for name, tc := range map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)
		node string
		want string
	}{
		"several points and arms":          {nil, "node-a", "b0000.4-points.ABBA.3-arms.on-node-a"},
		"one point is told":                {value("8"), "node-a", "b0000.batchSize-8.ABBA.3-arms.on-node-a"},
		"a value that people made up":      {value("{{workflow.name}} é/../x"), "node-a", "b0000.batchSize-workfl.ABBA.3-arms.on-node-a"},
		"two arms are told":                {arms("old", "new"), "node-a", "b0000.ABBA.old-new.on-node-a"},
		"unless their names are long":      {arms(strings.Repeat("a", 63), "new"), "node-a", "b0000.ABBA.2-arms.on-node-a"},
		"a node with a domain":             {arms("old", "new"), "ip-10-0-0-1.eu-central-1.compute.internal", "b0000.ABBA.old-new.on-ip-10-0-0-1-eu-central-1-compute-internal"},
		"a node with a name without end":   {nil, strings.Repeat("n", 253), "b0000.4-points.ABBA.3-arms.on-" + strings.Repeat("n", 33)},
		"a node that ends where it is cut": {nil, strings.Repeat("n", 32) + ".zone", "b0000.4-points.ABBA.3-arms.on-" + strings.Repeat("n", 32)},
	} {
		t.Run(name, func(t *testing.T) {
			exp := testExperiment(t, tc.edit)
			lanes := []design.Lane{{Node: tc.node}}
			wave, err := design.BuildWave(exp, 0, 0, 1, lanes)
			if err != nil {
				t.Fatal(err)
			}
			got := argument(t, build(t, exp, wave, lanes).Spec.Templates[0].DAG.Tasks[0], "display")
			if got != tc.want || !argoDisplayName.MatchString(got) {
				t.Errorf("display name %q (%d characters), want %q", got, len(got), tc.want)
			}
		})
	}
}

func TestInputsOfABlockTellItsPlan(t *testing.T) {
	exp := testExperiment(t, nil)
	lanes := []design.Lane{{Node: "node-a"}}
	wave, err := design.BuildWave(exp, 0, 0, 1, lanes)
	if err != nil {
		t.Fatal(err)
	}
	task := build(t, exp, wave, lanes).Spec.Templates[0].DAG.Tasks[0]
	if points := argument(t, task, "points"); !strings.HasPrefix(points, "4: batchSize=1,pendingDelta=") {
		t.Errorf("points %q", points)
	}
	var sequence []string
	for _, cell := range wave.Blocks[0].Order {
		if wave.Cells[cell].Point == 0 {
			sequence = append(sequence, wave.Arms[wave.Cells[cell].Arm].Name)
		}
	}
	if got, want := argument(t, task, "sequence"), strings.Join(sequence, " ")+" at "+wave.Points[0].Key; got != want {
		t.Errorf("sequence %q, want %q", got, want)
	}
	if got, want := argument(t, task, "trials"),
		fmt.Sprintf("%d and %d warm-ups", len(wave.Blocks[0].Order), len(wave.Blocks[0].Warmup)); got != want {
		t.Errorf("trials %q, want %q", got, want)
	}
	inputs := map[string]bool{}
	for _, input := range blockInputs() {
		inputs[input.Name] = true
	}
	for _, parameter := range task.Arguments.Parameters {
		if !inputs[parameter.Name] {
			t.Errorf("the block takes no input %s", parameter.Name)
		}
	}
}

// A workflow of a thousand blocks is one object: etcd takes 1.5 MiB, and Argo keeps every input once more in the status.
func TestWhatIsToldOfABlockStaysSmall(t *testing.T) {
	exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Sweep.Axes[0].Values = nil
		for i := range 32 {
			spec.Sweep.Axes[0].Values = append(spec.Sweep.Axes[0].Values, fmt.Sprint(i+1))
		}
		spec.Gates, spec.Predictions, spec.Budget.Trials = nil, nil, 10000
	})
	lanes := []design.Lane{{Node: strings.Repeat("n", 253)}}
	wave, err := design.BuildWave(exp, 0, 0, 2, lanes)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, parameter := range blockArguments(exp, wave, wave.Blocks[0], lanes[0]) {
		size += len(parameter.Name) + len(*parameter.Value)
	}
	if size > 1000 {
		t.Errorf("a block tells %d bytes", size)
	}
}

func TestTextsAreMadePlain(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"Argo's braces become others":   {"{{workflow.name}}", "((workflow.name))"},
		"also those of expressions":     {"{{=1+1}}", "((=1+1))"},
		"white space becomes one space": {"a\n\t b", "a b"},
		"a long text is cut":            {strings.Repeat("é", 200), strings.Repeat("é", 158) + " …"},
	} {
		if got := plain(tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestAnnotationsThatAssayPutOnAWorkflowAreItsOwn(t *testing.T) {
	exp := testExperiment(t, nil)
	built, err := BuildAnalysis(testConfig(t), exp, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := built.Annotations[ReportAnnotation],
		"/runs/"+exp.Run.Namespace+"/"+exp.Run.Name+"/"+exp.Run.UID+"/analysis/002/report.html"; got != want {
		t.Errorf("report %q, want %q", got, want)
	}
	all := map[string]string{AgainAnnotation: "why", "workflows.argoproj.io/pod-name-format": "v2"}
	for name, text := range built.Annotations {
		all[name] = text
	}
	own := OwnAnnotations(all)
	if len(own) != len(built.Annotations)+1 || own[AgainAnnotation] != "why" || own[titleAnnotation] == "" {
		t.Errorf("own annotations %v of %v", own, all)
	}
	if OwnAnnotations(nil) != nil {
		t.Error("a workflow without annotations has none")
	}
}
