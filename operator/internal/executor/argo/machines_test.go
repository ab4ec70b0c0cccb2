package argo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/internal/design"
)

func TestMachines_AreReadFromLabels(t *testing.T) {
	builder := fake.NewClientBuilder()
	for name, machine := range map[string]string{"a": "m1", "b": "m1", "c": "m2", "d": ""} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if machine != "" {
			node.Labels = map[string]string{MachineLabel: machine}
		}
		builder = builder.WithObjects(node)
	}
	client := builder.Build()
	for reason, tc := range map[string]struct {
		nodes []string
		want  Machines
	}{
		"two on one machine, and others": {[]string{"a", "b", "c", "d"}, Machines{"a": "m1", "b": "m1"}},
		"one of its machine":             {[]string{"a", "c"}, Machines{}},
		"a node that is gone":            {[]string{"a", "gone"}, Machines{}},
	} {
		var lanes []design.Lane
		for _, node := range tc.nodes {
			lanes = append(lanes, design.Lane{Node: node})
		}
		got, err := readMachines(t.Context(), client, lanes)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", reason, err, diff)
		}
	}
}

// Blocks on one machine never overlap: each waits for the one before it on any node of the machine. Other lanes run beside them.
func TestBuild_NodesOfOneMachineAreOneChain(t *testing.T) {
	exp := testExperiment(t, nil)
	lanes := []design.Lane{{Node: "a"}, {Node: "b"}, {Node: "c"}}
	wave, err := design.BuildWave(exp, 0, 0, 6, lanes)
	if err != nil {
		t.Fatal(err)
	}
	built, err := Build(testConfig(t), exp, wave, lanes, Machines{"a": "m", "b": "m"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var got [][2]string
	for _, task := range built.Spec.Templates[0].DAG.Tasks {
		before, _, _ := strings.Cut(task.Depends, ".")
		got = append(got, [2]string{task.Name, before})
	}
	want := [][2]string{
		{"block-0-a", ""}, {"block-1-b", "block-0-a"}, {"block-2-c", ""}, {"block-3-a", "block-1-b"}, {"block-4-b", "block-3-a"},
		{"block-5-c", "block-2-c"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("each block and the one before it (-want +got):\n%s", diff)
	}
	if text := built.Annotations[descriptionAnnotation]; !strings.Contains(text, "2 of the nodes share a machine") {
		t.Errorf("the description does not say that nodes share a machine: %s", text)
	}
}
