package argo

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/record"
)

// argoDisplayName matches the display names that Argo 4 allows. A node with another one fails.
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

func TestDisplayName_BlockNumberAndNode(t *testing.T) {
	exp := testExperiment(t, nil)
	for name, tc := range map[string]struct {
		nodes []string
		// task is the index of the tested block.
		task int
		want string
	}{
		"blocks have numbers":                   {[]string{"node-a"}, 0, "block-0"},
		"without zeros before them":             {[]string{"node-a"}, 11, "block-11"},
		"with several nodes each is named":      {[]string{"node-a", "node-b"}, 1, "block-1.node-b"},
		"a node with a domain has its host":     {[]string{"node-a", "ip-10-0-0-1.eu-central-1.compute.internal"}, 1, "block-1.ip-10-0-0-1"},
		"a node with a name without end is cut": {[]string{"node-a", strings.Repeat("n", 253)}, 1, "block-1.nnnnnnnnnnnn"},
		"a node that ends where it is cut":      {[]string{"node-a", strings.Repeat("n", 11) + "-zone"}, 1, "block-1.nnnnnnnnnnn"},
	} {
		t.Run(name, func(t *testing.T) {
			var lanes []design.Lane
			for _, node := range tc.nodes {
				lanes = append(lanes, design.Lane{Node: node})
			}
			wave, err := design.BuildWave(exp, 0, 0, 12, lanes)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			tasks := build(t, exp, wave, lanes).Spec.Templates[0].DAG.Tasks
			for _, task := range tasks {
				got := argument(t, task, "display")
				if !argoDisplayName.MatchString(got) || len(got) > longestDisplay || seen[got] {
					t.Errorf("display name %q: Argo rejects, shortens or already has it", got)
				}
				seen[got] = true
			}
			if got := argument(t, tasks[tc.task], "display"); got != tc.want {
				t.Errorf("display name %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWaveDescription_ListsOrCountsValues(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		want   string
	}{
		"plain values are listed":  {[]string{"1", "8"}, "Points: 2 of batchSize 1, 8."},
		"many are counted":         {strings.Split("1 2 3 4 5 6 7 8 9", " "), "Points: 9 of batchSize with 9 values."},
		"anything else is counted": {[]string{"{{workflow.name}}", "[a](http://b)"}, "Points: 2 of batchSize with 2 values."},
	} {
		t.Run(name, func(t *testing.T) {
			exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Sweep.Axes, spec.Gates, spec.Predictions = spec.Sweep.Axes[:1], nil, nil
				spec.Sweep.Axes[0].Values = tc.values
				for i := range template.Parameters {
					if template.Parameters[i].Name == spec.Sweep.Axes[0].Name {
						template.Parameters[i].Type, template.Parameters[i].Minimum, template.Parameters[i].Maximum = assayv1alpha1.StringParameter, nil, nil
					}
				}
			})
			lanes := []design.Lane{{Node: "node-a"}}
			wave, err := design.BuildWave(exp, 0, 0, 1, lanes)
			if err != nil {
				t.Fatal(err)
			}
			if got := build(t, exp, wave, lanes).Annotations[descriptionAnnotation]; !strings.HasSuffix(got, tc.want) {
				t.Errorf("description %q, want it to end in %q", got, tc.want)
			}
		})
	}
}

func TestBlockArguments_DescribeThePlan(t *testing.T) {
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

// A Workflow of a thousand blocks is one object of at most 1.5 MiB, etcd's limit, and Argo repeats every input in its status.
func TestBlockArguments_SizeIsBounded(t *testing.T) {
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
	for _, parameter := range blockArguments(exp, wave, wave.Blocks[0], lanes[0], 2) {
		size += len(parameter.Name) + len(*parameter.Value)
	}
	if size > 1000 {
		t.Errorf("the inputs of a block have %d bytes", size)
	}
}

// Authors choose the number of blocks and of points, thousands per block, and the length of their names.
func TestBlockArguments_LongPointNamesDoNotAllocateMore(t *testing.T) {
	exp := testExperiment(t, nil)
	allocated := func(key string) (bytes uint64, text string) {
		wave := &record.Wave{}
		var block record.Block
		for i := range 1000 {
			wave.Points, wave.Cells = append(wave.Points, record.Point{Key: key}), append(wave.Cells, record.Cell{Point: i})
			block.Order = append(block.Order, i)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text = describePoints(exp, wave, block)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, text
	}
	few, short := allocated("a=1")
	many, long := allocated("a=" + strings.Repeat("1", 1000))
	if many > few+64<<10 {
		t.Errorf("%d KiB for points with long names, and %d KiB for others", many>>10, few>>10)
	}
	for _, text := range []string{short, long} {
		if runes := len([]rune(text)); !strings.HasPrefix(text, "1000: a=1") || !strings.HasSuffix(text, " …") || runes != longestText {
			t.Errorf("points %q", text)
		}
	}
}

func TestPlain(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"braces become parentheses":     {"{{workflow.name}}", "((workflow.name))"},
		"braces of expressions":         {"{{=1+1}}", "((=1+1))"},
		"white space becomes one space": {"a\n\t b", "a b"},
		"a long text is shortened":      {strings.Repeat("é", 200), strings.Repeat("é", 158) + " …"},
	} {
		if got := plain(tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestOwnAnnotations_ExcludeThoseOfOthers(t *testing.T) {
	exp := testExperiment(t, nil)
	built, err := BuildAnalysis(testConfig(t), exp, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := built.Annotations[ReportAnnotation],
		"/runs/"+exp.Run.Namespace+"/"+exp.Run.Name+"/"+exp.Run.UID+"/analysis/002/report.html"; got != want {
		t.Errorf("report %q, want %q", got, want)
	}
	all := map[string]string{ReplanAnnotation: "why", "workflows.argoproj.io/pod-name-format": "v2"}
	for name, text := range built.Annotations {
		all[name] = text
	}
	own := OwnAnnotations(all)
	if len(own) != len(built.Annotations)+1 || own[ReplanAnnotation] != "why" || own[titleAnnotation] == "" {
		t.Errorf("own annotations %v of %v", own, all)
	}
	if OwnAnnotations(nil) != nil {
		t.Error("a Workflow without annotations has own annotations")
	}
}
