package policy

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

const file = `
nodeLabel: assay.dev/bench=yes
default: {maxNodes: 2, maxCpus: 8, maxMemory: 16Gi, maxWallClock: 4h, maxRuns: 1, maxWaiting: 2, maxTrials: 5000, exclusive: [CPUs, None]}
namespaces:
  perf: {maxNodes: 10, exclusive: [Node, CPUs, None]}
`

func TestPolicy_LimitsOfNamespacesApply(t *testing.T) {
	policy, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	modest := func(edit func(*assayv1alpha1.BenchmarkRunSpec)) *assayv1alpha1.BenchmarkRunSpec {
		out := &assayv1alpha1.BenchmarkRunSpec{Placement: assayv1alpha1.Placement{CPUs: 4, MaxNodes: 1, Exclusive: assayv1alpha1.ExclusiveCPUs}}
		out.Budget.WallClock = metav1.Duration{Duration: time.Hour}
		edit(out)
		return out
	}
	cases := map[string]struct {
		policy    *Policy
		namespace string
		edit      func(*assayv1alpha1.BenchmarkRunSpec)
		says      []string
	}{
		"a modest run":                       {policy, "team", func(*assayv1alpha1.BenchmarkRunSpec) {}, nil},
		"a whole node":                       {policy, "team", func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.Exclusive = "Node" }, []string{"spec.placement.exclusive is Node", "namespace team", "CPUs, None"}},
		"a whole node where that is allowed": {policy, "perf", func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.Exclusive = "Node" }, nil},
		"a hundred nodes":                    {policy, "team", func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.MaxNodes = 100 }, []string{"spec.placement.maxNodes is 100", "at most 2"}},
		"default limit for an omitted field": {policy, "perf", func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.CPUs = 64 }, []string{"spec.placement.cpus is 64", "at most 8"}},
		"a node's memory":                    {policy, "perf", func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.Memory = resource.MustParse("4T") }, []string{"spec.placement.memory is 4T", "at most 16Gi"}},
		"ten years":                          {policy, "team", func(s *assayv1alpha1.BenchmarkRunSpec) { s.Budget.WallClock.Duration = 87600 * time.Hour }, []string{"spec.budget.wallClock is 87600h0m0s", "at most 4h0m0s"}},
		"ten thousand trials":                {policy, "team", func(s *assayv1alpha1.BenchmarkRunSpec) { s.Budget.Trials = 10000 }, []string{"spec.budget.trials is 10000", "at most 5000"}},
		"no policy means no limit":           {nil, "team", func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.MaxNodes = 100 }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.policy.Refuses(tc.namespace, modest(tc.edit))
			for _, text := range tc.says {
				if !strings.Contains(got, text) {
					t.Errorf("%q does not contain %q", got, text)
				}
			}
			if (got == "") != (tc.says == nil) {
				t.Errorf("got %q", got)
			}
		})
	}
	for labels, open := range map[string]bool{"assay.dev/bench=yes": true, "assay.dev/bench=no": false, "other=yes": false} {
		key, value, _ := strings.Cut(labels, "=")
		if got := policy.Opens(map[string]string{key: value}); got != open {
			t.Errorf("a node with %s is open: %v", labels, got)
		}
	}
	for underWay, want := range map[int]bool{0: false, 1: true, 2: true} {
		if most, full := policy.Full("team", underWay); full != want || most != 1 {
			t.Errorf("with %d runs under way of %d it is full: %v", underWay, most, full)
		}
	}
}

func TestPolicy_WaitingRunsAreLimited(t *testing.T) {
	policy, err := Parse([]byte(file + "  crowd: {maxWaiting: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		policy    *Policy
		namespace string
		waiting   int
		refused   bool
	}{
		{policy, "team", 0, false}, {policy, "team", 1, false}, {policy, "team", 2, true}, {policy, "team", 300, true},
		{policy, "crowd", 0, true}, {nil, "team", 300, false},
	} {
		got := tc.policy.RefusesToWait(tc.namespace, tc.waiting)
		if (got != "") != tc.refused || tc.refused && !strings.Contains(got, tc.namespace) {
			t.Errorf("%s with %d that wait: %q, want it refused: %v", tc.namespace, tc.waiting, got, tc.refused)
		}
	}
}

// The demo, the studies and the end-to-end tests run with the defaults of the chart.
func TestPolicy_ChartDefaultsAllowTheRunsOfThisTree(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	raw, err := os.ReadFile(filepath.Join(root, "charts", "assay", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ Policy json.RawMessage }
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	policy, err := Parse(values.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if left := policy.Unlimited("default"); len(left) > 0 {
		t.Errorf("the defaults of the chart do not limit %v", left)
	}
	runs := 0
	err = filepath.WalkDir(filepath.Join(root, "workflows"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, document := range strings.Split(string(raw), "\n---\n") {
			var run assayv1alpha1.BenchmarkRun
			if yaml.Unmarshal([]byte(document), &run) != nil || run.Kind != "BenchmarkRun" {
				continue
			}
			runs++
			if refused := policy.Refuses("default", &run.Spec); refused != "" {
				t.Errorf("%s: %s", path, refused)
			}
		}
		return err
	})
	if err != nil || runs < 50 {
		t.Errorf("%d runs are checked (%v)", runs, err)
	}
}

func TestPolicy_UnlimitedFieldsAreListed(t *testing.T) {
	some, err := Parse([]byte(`{default: {maxRuns: 1, maxStored: 1Gi}, namespaces: {perf: {maxWallClock: 4h, maxMemory: 1Gi}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var none *Policy
	for _, tc := range []struct {
		policy    *Policy
		namespace string
		want      string
	}{
		{none, "team", "maxWallClock maxRuns maxWaiting maxTrials maxMemory maxStored"},
		{some, "team", "maxWallClock maxWaiting maxTrials maxMemory"}, {some, "perf", "maxWaiting maxTrials"},
	} {
		if got := strings.Join(tc.policy.Unlimited(tc.namespace), " "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.namespace, got, tc.want)
		}
	}
}

func TestPolicy_HistoryRetentionOfNamespaces(t *testing.T) {
	policy, err := Parse([]byte(`
default: {history: {full: 8760h, every: 168h, thinned: 43800h}}
namespaces:
  all: {history: {}}
  short: {history: {full: 24h, every: 24h}}
  limited: {maxRuns: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	hours := func(full, every, thinned time.Duration) History {
		of := func(n time.Duration) metav1.Duration { return metav1.Duration{Duration: n * time.Hour} }
		return History{of(full), of(every), of(thinned)}
	}
	for name, want := range map[string]History{
		"any":     hours(8760, 168, 43800),
		"limited": hours(8760, 168, 43800),
		"all":     {}, // The retention of a namespace replaces the default as a whole.
		"short":   hours(24, 24, 0),
	} {
		if got := policy.Of(name).History; got == nil || *got != want {
			t.Errorf("namespace %s: %+v, want %+v", name, got, want)
		}
	}
	var none *Policy
	if got := none.Of("any").History; got != nil {
		t.Errorf("without a policy: %+v", got)
	}
}

func TestParse_InvalidPolicyIsRejected(t *testing.T) {
	for text, says := range map[string]string{
		"maxNode: 2":                       "unknown field",
		"default: {maxNodes: -1}":          "default.maxNodes -1",
		"default: {maxMemory: -1Gi}":       "default.maxMemory -1Gi",
		"namespaces: {a: {maxRuns: -2}}":   "namespaces.a.maxRuns -2",
		"default: {maxWaiting: -1}":        "default.maxWaiting -1",
		"default: {maxTrials: -1}":         "default.maxTrials -1",
		"default: {maxWallClock: 0s}":      "default.maxWallClock",
		"default: {exclusive: [Machines]}": "allowed are Node, CPUs and None",
		"default: {history: {fully: 1h}}":  "unknown field",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q", text, err, says)
		}
	}
}
