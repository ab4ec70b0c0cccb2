package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/test/clitest"
)

func TestGet_EveryForm(t *testing.T) {
	cluster := fakeCluster(t, interceptor.Funcs{},
		clitest.Run("default", "one", clitest.Complete(assayv1alpha1.VerdictGo)),
		clitest.Run("default", "two", func(run *assayv1alpha1.BenchmarkRun) {
			run.Labels = map[string]string{"team": "storage"}
			run.Status.Phase = assayv1alpha1.PhasePending
			run.Status.Conditions = []metav1.Condition{{Type: assayv1alpha1.ConditionProgressing, Status: "False", Reason: "NoNodeMatches",
				Message: "no node has 64 CPUs"}}
		}), clitest.Run("team-a", "three"))
	for name, tc := range map[string]struct {
		names      []string
		namespace  string
		selector   string
		form       string
		has, lacks []string
	}{
		"a table of the namespace":               {namespace: "default", form: "table", has: []string{"NAMESPACE", "one", "Go", "two", "Pending"}, lacks: []string{"three", "WAVE"}},
		"of all namespaces":                      {form: "table", has: []string{"one", "three", "team-a"}},
		"a selection":                            {namespace: "default", selector: "team=storage", form: "table", has: []string{"two"}, lacks: []string{"one"}},
		"wide shows the reason that a run waits": {namespace: "default", form: "wide", has: []string{"REASON", "NoNodeMatches: no node has 64 CPUs"}},
		"names for xargs":                        {namespace: "default", form: "name", has: []string{"benchmarkrun.assay.dev/one\nbenchmarkrun.assay.dev/two\n"}, lacks: []string{"NAME"}},
		"JSON of the list":                       {namespace: "default", form: "json", has: []string{`"kind": "BenchmarkRunList"`, `"kind": "BenchmarkRun"`}},
		"YAML of one":                            {names: []string{"one"}, namespace: "default", form: "yaml", has: []string{"kind: BenchmarkRun\n", "verdict: Go"}, lacks: []string{"BenchmarkRunList"}},
		"one, for people":                        {names: []string{"one"}, namespace: "default", form: "table", has: []string{"VERDICT  Go"}},
		"two by name":                            {names: []string{"one", "two"}, namespace: "default", form: "table", has: []string{"NAMESPACE", "one", "two"}},
		"none":                                   {namespace: "empty", form: "table", has: []string{"no BenchmarkRuns in this namespace; assay get -A lists the runs of all namespaces"}},
		"none as JSON is an empty list":          {namespace: "empty", form: "json", has: []string{`"items": []`}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := *cluster
			cluster.Namespace = tc.namespace
			selector, err := labels.Parse(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := get(context.Background(), &cluster, tc.names, selector, tc.form, &out); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.has {
				if !strings.Contains(out.String(), want) {
					t.Errorf("lacks %q:\n%s", want, out.String())
				}
			}
			for _, other := range tc.lacks {
				if strings.Contains(out.String(), other) {
					t.Errorf("has %q:\n%s", other, out.String())
				}
			}
		})
	}
}

// manifestFile writes the run of testdata with changes.
func manifestFile(t *testing.T, edit func(*assayv1alpha1.BenchmarkRun)) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "root", "testdata", "adaptive.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var run assayv1alpha1.BenchmarkRun
	if err := yaml.Unmarshal(raw, &run); err != nil {
		t.Fatal(err)
	}
	edit(&run)
	if raw, err = yaml.Marshal(run); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun_CreatesRuns(t *testing.T) {
	long := strings.Repeat("a", 52)
	for name, tc := range map[string]struct {
		edit      func(*assayv1alpha1.BenchmarkRun)
		what      Creation
		namespace string
		there     []client.Object
		want      string
		prefix    string
		says      string
		code      int
	}{
		"as the file says":               {want: "default/adaptive"},
		"under another name":             {what: Creation{Name: "nightly"}, want: "default/nightly"},
		"in the namespace of the file":   {edit: func(r *assayv1alpha1.BenchmarkRun) { r.Namespace = "team-a" }, want: "team-a/adaptive"},
		"any number of times":            {what: Creation{Generate: true}, prefix: "adaptive-"},
		"under a prefix that is long":    {what: Creation{Name: long, Generate: true}, prefix: strings.Repeat("a", 46) + "-"},
		"under one that is cut at a dot": {what: Creation{Name: long[:45] + ".bcdefg", Generate: true}, prefix: long[:45] + "-"},
		"but not in two places":          {edit: func(r *assayv1alpha1.BenchmarkRun) { r.Namespace = "team-a" }, namespace: "team-b", says: `metadata.namespace "team-a" contradicts --namespace "team-b"`, code: cli.ExitUsage},
		"but not over another":           {there: []client.Object{clitest.Run("default", "adaptive")}, says: "exists, and a run cannot be restarted", code: cli.ExitError},
		"but not without a name":         {edit: func(r *assayv1alpha1.BenchmarkRun) { r.Name = "" }, says: "metadata.name is missing", code: cli.ExitUsage},
		"but not with an unknown metric": {edit: func(r *assayv1alpha1.BenchmarkRun) { r.Spec.Gates[0].Metric = "speed" }, says: "spec.gates[0].metric", code: cli.ExitUsage},
		"but not without its template": {
			edit: func(r *assayv1alpha1.BenchmarkRun) {
				r.Spec.Template, r.Spec.TemplateRef = nil, &assayv1alpha1.TemplateReference{Name: "pir"}
			},
			says: `spec.templateRef.name: no BenchmarkTemplate "pir" in namespace "default"`, code: cli.ExitUsage,
		},
	} {
		t.Run(name, func(t *testing.T) {
			edit := tc.edit
			if edit == nil {
				edit = func(*assayv1alpha1.BenchmarkRun) {}
			}
			tc.what.File = manifestFile(t, edit)
			cluster := fakeCluster(t, interceptor.Funcs{}, tc.there...)
			if tc.namespace != "" {
				cluster.Namespace = tc.namespace
			}
			run, err := tc.what.Create(context.Background(), cluster, tc.namespace)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || cli.ExitCode(err) != tc.code {
					t.Fatalf("error %v with code %d, want one that says %q with code %d", err, cli.ExitCode(err), tc.says, tc.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := run.Namespace + "/" + run.Name; tc.want != "" && got != tc.want {
				t.Errorf("created %s, want %s", got, tc.want)
			}
			if tc.prefix != "" && (!strings.HasPrefix(run.Name, tc.prefix) || len(run.Name) > NameLength || len(run.Name) == len(tc.prefix)) {
				t.Errorf("created %q, want the prefix %q and at most %d characters", run.Name, tc.prefix, NameLength)
			}
			if _, err := cli.GetRun(context.Background(), cluster, run.Name); err != nil {
				t.Error(err)
			}
		})
	}
}

// Who may create runs and read nothing else is not kept from it.
func TestRun_CreatedWithoutRightToReadTemplates(t *testing.T) {
	calls := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
		options ...client.GetOption) error {
		if _, ok := object.(*assayv1alpha1.BenchmarkTemplate); ok {
			return apierrors.NewForbidden(schema.GroupResource{Group: "assay.dev", Resource: "benchmarktemplates"}, key.Name, errors.New("no"))
		}
		return c.Get(ctx, key, object, options...)
	}}
	what := Creation{File: manifestFile(t, func(r *assayv1alpha1.BenchmarkRun) {
		r.Spec.Template, r.Spec.TemplateRef = nil, &assayv1alpha1.TemplateReference{Name: "pir"}
	})}
	if _, err := what.Create(context.Background(), fakeCluster(t, calls), ""); err != nil {
		t.Error(err)
	}
}

func TestRun_SharedTemplateIsNotChanged(t *testing.T) {
	template := func(command string) *assayv1alpha1.BenchmarkTemplate {
		return &assayv1alpha1.BenchmarkTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pir"},
			Spec:       assayv1alpha1.BenchmarkTemplateSpec{Image: "x", Command: []string{command}},
		}
	}
	cluster := fakeCluster(t, interceptor.Funcs{}, template("/old"))
	if err := ensureTemplate(context.Background(), cluster, template("/old")); err != nil {
		t.Errorf("equal templates conflict: %v", err)
	}
	if err := ensureTemplate(context.Background(), cluster, template("/new")); err == nil ||
		!strings.Contains(err.Error(), "exists and differs") {
		t.Errorf("error %v", err)
	}
}

func TestWatch_PrintsChangesUntilEnd(t *testing.T) {
	for form, want := range map[string][]string{
		"text": {"Pending", "12/24 trials", "VERDICT  NoGo"},
		"json": {`"kind":"BenchmarkRun"`, `"done":12`, `"verdict":"NoGo"`},
	} {
		t.Run(form, func(t *testing.T) {
			cluster := fakeCluster(t, interceptor.Funcs{}, clitest.Run("default", "x"))
			seen := make(chan string, 16)
			out := writer(func(p []byte) { seen <- string(p) })
			done := make(chan error, 1)
			go func() { done <- watchToTheEnd(t.Context(), cluster, "x", form, out) }()
			text := <-seen
			update(t, cluster, "x", func(run *assayv1alpha1.BenchmarkRun) {
				run.Status.Phase, run.Status.Trials = assayv1alpha1.PhaseRunning, assayv1alpha1.TrialCounts{Planned: 24, Done: 12}
			})
			text += <-seen
			update(t, cluster, "x", clitest.Complete(assayv1alpha1.VerdictNoGo))
			if err := <-done; err != nil {
				t.Errorf("NoGo is an answer: %v", err)
			}
			for len(seen) > 0 {
				text += <-seen
			}
			for _, part := range want {
				if !strings.Contains(text, part) {
					t.Errorf("lacks %q:\n%s", part, text)
				}
			}
		})
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(bytes.Clone(p)); return len(p), nil }

func update(t *testing.T, cluster *cli.Cluster, name string, edit func(*assayv1alpha1.BenchmarkRun)) {
	t.Helper()
	run, err := cli.GetRun(t.Context(), cluster, name)
	if err != nil {
		t.Fatal(err)
	}
	edit(run)
	if err := cluster.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

func TestCancel_IsIdempotent(t *testing.T) {
	cluster := fakeCluster(t, interceptor.Funcs{}, clitest.Run("default", "running"), clitest.Run("default", "over",
		clitest.Complete(assayv1alpha1.VerdictGo)))
	for name, want := range map[string]cancelled{
		"running": {Namespace: "default", Name: "running"},
		"over":    {Namespace: "default", Name: "over", Verdict: assayv1alpha1.VerdictGo, Ended: true},
	} {
		var out bytes.Buffer
		if err := cancelRun(t.Context(), cluster, name, "json", &out); err != nil {
			t.Fatal(err)
		}
		var got cancelled
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != want {
			t.Errorf("%s: %s (%v)", name, out.String(), err)
		}
		run, err := cli.GetRun(t.Context(), cluster, name)
		if err != nil || (run.Spec.Cancel != nil && *run.Spec.Cancel) == want.Ended {
			t.Errorf("%s: spec.cancel is %v (%v)", name, run.Spec.Cancel, err)
		}
	}
}
