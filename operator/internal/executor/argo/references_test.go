package argo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// texts visits every string that a value can hold, those of empty lists, maps and pointers too, so that a field that is added
// to the API is covered from its first day.
func texts(path string, value reflect.Value, visit func(path string, get func() string, set func(string))) {
	switch value.Kind() {
	case reflect.String:
		visit(path, value.String, value.SetString)
	case reflect.Pointer:
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		texts(path, value.Elem(), visit)
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[resource.Quantity]() {
			return // Parsed; its text is canonical.
		}
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() {
				texts(path+"."+field.Name, value.Field(i), visit)
			}
		}
	case reflect.Slice:
		if value.Len() == 0 {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		}
		for i := range value.Len() {
			texts(fmt.Sprintf("%s[%d]", path, i), value.Index(i), visit)
		}
	case reflect.Map:
		if value.Type().Key().Kind() != reflect.String || value.Type().Elem().Kind() != reflect.String {
			return
		}
		if value.IsNil() {
			value.Set(reflect.MakeMap(value.Type()))
		}
		visit(path+".key", func() string { return "" }, func(text string) {
			value.SetMapIndex(reflect.ValueOf(text).Convert(value.Type().Key()), reflect.ValueOf("x").Convert(value.Type().Elem()))
		})
		keys := append(value.MapKeys(), reflect.ValueOf("added").Convert(value.Type().Key()))
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			set := func(text string) { value.SetMapIndex(key, reflect.ValueOf(text).Convert(value.Type().Elem())) }
			visit(path+"."+key.String(), func() string { return "" }, set)
		}
	}
}

// traps are texts that Argo would replace or evaluate, whole and in halves for two fields.
func traps(random *rand.Rand) (string, string) {
	inner := []string{"workflow.name", "=1+1", `=sprig.repeat(100000000, "x")`, "inputs.parameters.block", "pod.name", "=toJson(workflow)",
		" node.name "}
	text := "{{" + inner[random.IntN(len(inner))] + "}}"
	if random.IntN(2) == 0 {
		text = "a" + text + "b"
	}
	cut := random.IntN(len(text))
	return text, text[cut:]
}

// anyBraces matches every text that Argo could treat as a reference.
var anyBraces = regexp.MustCompile(`\{\{[^}]*\}?\}?`)

// referencesOf are the references in a Workflow as Argo gets it, which replaces them in its JSON.
func referencesOf(t *testing.T, built *Workflow) []string {
	t.Helper()
	raw, err := json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	out := anyBraces.FindAllString(string(raw), -1)
	slices.Sort(out)
	return out
}

func newTrapped(t *testing.T) *experiment.Experiment {
	return testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "a",
			Effect: corev1.TaintEffectNoSchedule}}
		for i := range spec.Arms {
			spec.Arms[i].Image = fmt.Sprintf("registry/scan:%d", i)
		}
		// Fields in which a trap could make Freeze fail are removed, because the test is about Build.
		spec.Search, spec.Environment = nil, &assayv1alpha1.Environment{}
		template.Roles = nil
	})
}

func TestBuild_UserTextIsNeverTemplated(t *testing.T) {
	lanes := []design.Lane{{Node: "node-a", Token: 1}}
	exp := newTrapped(t)
	wave, err := design.BuildWave(exp, 0, 0, 2, lanes)
	if err != nil {
		t.Fatal(err)
	}
	want := referencesOf(t, build(t, exp, wave, lanes))

	visited := 0
	texts("", reflect.ValueOf(newTrapped(t)).Elem(), func(string, func() string, func(string)) { visited++ })
	if visited < 150 {
		t.Fatalf("%d strings found in an experiment, want more", visited)
	}
	refusals := 0
	for seed := range uint64(3 * visited) {
		random := rand.New(rand.NewPCG(seed, 7))
		trapped := newTrapped(t)
		whole, rest := traps(random)
		half := strings.TrimSuffix(whole, rest)
		// The whole trap in one field, or its halves in two.
		target, other := int(seed)%visited, -1
		text := whole
		if seed >= uint64(visited) {
			other, text = random.IntN(visited), half
		}
		var places []string
		i := 0
		texts("", reflect.ValueOf(trapped).Elem(), func(path string, _ func() string, set func(string)) {
			switch i {
			case target:
				set(text)
				places = append(places, path)
			case other:
				set(rest)
				places = append(places, path)
			}
			i++
		})
		built, err := func() (out *Workflow, err error) {
			wave, err := design.BuildWave(trapped, 0, 0, 2, lanes)
			if err != nil {
				return nil, err
			}
			return Build(testConfig(t), trapped, wave, lanes, nil, 2*time.Hour)
		}()
		if err != nil {
			refusals++
			continue
		}
		if got := referencesOf(t, built); !slices.Equal(got, want) {
			t.Errorf("seed %d: %q in %s: the workflow has the references %q, want %q", seed, whole, strings.Join(places, " and "), got, want)
		}
	}
	if refusals == 0 {
		t.Error("no trap was rejected, so that the test has no power")
	}
}

func TestBuild_TextWithBracesIsRejected(t *testing.T) {
	lanes := []design.Lane{{Node: "node-a"}}
	cases := map[string]struct {
		edit  func(*experiment.Experiment, *record.Wave)
		field string
	}{
		"the effect of a toleration": {
			func(e *experiment.Experiment, _ *record.Wave) {
				e.Plan.Placement.Tolerations = []corev1.Toleration{{Key: "a", Effect: "{{=1}}"}}
			}, "spec.templates[block].tolerations[0].effect",
		},
		"the operator of a toleration": {
			func(e *experiment.Experiment, _ *record.Wave) {
				e.Plan.Placement.Tolerations = []corev1.Toleration{{Key: "a", Operator: "{{=1}}"}}
			}, "spec.templates[block].tolerations[0].operator",
		},
		"an opening brace alone": {
			func(e *experiment.Experiment, _ *record.Wave) {
				e.Plan.Placement.Tolerations = []corev1.Toleration{{Key: "a{", TolerationSeconds: ptr.To[int64](1)}}
			}, "spec.templates[block].tolerations[0].key",
		},
		"the image of the template": {
			func(e *experiment.Experiment, _ *record.Wave) { e.Plan.Workload.Image = "{{workflow.name}}" }, "spec.templates[block].container.image",
		},
		"the order, in a plan from the ledger": {
			func(e *experiment.Experiment, _ *record.Wave) { e.Plan.Design.Order = "{{=1}}" },
			"metadata.annotations.workflows.argoproj.io/description",
		},
		"a known reference where it does not belong": {
			func(e *experiment.Experiment, _ *record.Wave) { e.Run.Namespace = blockReference }, "metadata.annotations.assay.dev/report",
		},
		"the id of a block": {
			func(_ *experiment.Experiment, w *record.Wave) { w.Blocks[0].ID = "w000-{{=1}}" }, "spec.templates[wave].dag.tasks",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp := testExperiment(t, nil)
			wave, err := design.BuildWave(exp, 0, 0, 2, lanes)
			if err != nil {
				t.Fatal(err)
			}
			tc.edit(exp, wave)
			if _, err = Build(testConfig(t), exp, wave, lanes, nil, 2*time.Hour); err == nil || !strings.Contains(err.Error(), tc.field) {
				t.Errorf("error %v, want one that names %s", err, tc.field)
			}
		})
	}
}
