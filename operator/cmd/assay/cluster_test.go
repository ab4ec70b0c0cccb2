package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// fakeCluster is one with the namespace default and these objects.
func fakeCluster(t *testing.T, calls interceptor.Funcs, objects ...client.Object) *cluster {
	t.Helper()
	return &cluster{WithWatch: fakeClient(t, calls, objects...), namespace: "default"}
}

// fakeClient returns a client of an API server that holds these objects.
func fakeClient(t *testing.T, calls interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), assayv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&assayv1alpha1.BenchmarkRun{}).
		WithIndex(&assayv1alpha1.BenchmarkRun{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(objects...).WithInterceptorFuncs(calls).Build()
}

func aRun(namespace, name string, edit ...func(*assayv1alpha1.BenchmarkRun)) *assayv1alpha1.BenchmarkRun {
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-" + "x"}}
	for _, e := range edit {
		e(run)
	}
	return run
}

func complete(verdict assayv1alpha1.Verdict) func(*assayv1alpha1.BenchmarkRun) {
	return func(run *assayv1alpha1.BenchmarkRun) {
		run.Status.Phase, run.Status.Verdict = assayv1alpha1.PhaseSucceeded, verdict
		run.Status.Conditions = []metav1.Condition{{Type: assayv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Done"}}
	}
}

func TestAnUnknownRunIsToldFromOnesNearby(t *testing.T) {
	objects := []client.Object{aRun("default", "pir-scan"), aRun("default", "pir-scan-smoke"), aRun("default", "mork"),
		aRun("team-a", "elsewhere")}
	for name, tc := range map[string]struct{ asked, want string }{
		"a letter is wrong":         {"pir-scam", `no BenchmarkRun "pir-scam" in namespace "default"; did you mean pir-scan?`},
		"the end is missing":        {"pir", `did you mean pir-scan or pir-scan-smoke?`},
		"it is in another place":    {"elsewhere", `there is one with -n team-a`},
		"nothing is near":           {"something-else", `see assay get -A`},
		"two letters, two meanings": {"morc", `did you mean mork?`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := getRun(context.Background(), fakeCluster(t, interceptor.Funcs{}, objects...), tc.asked)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestAnUnknownRunIsSaidToBeUnknownAlsoToThoseWhoMayNotList(t *testing.T) {
	forbidden := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "assay.dev", Resource: "benchmarkruns"}, "", errors.New("no"))
	}}
	_, err := getRun(context.Background(), fakeCluster(t, forbidden), "x")
	if err == nil || err.Error() != `no BenchmarkRun "x" in namespace "default"` {
		t.Errorf("error %v", err)
	}
}

func TestRunsAreListedInEveryForm(t *testing.T) {
	cluster := fakeCluster(t, interceptor.Funcs{},
		aRun("default", "one", complete(assayv1alpha1.VerdictGo)),
		aRun("default", "two", func(run *assayv1alpha1.BenchmarkRun) {
			run.Labels = map[string]string{"team": "storage"}
			run.Status.Phase = assayv1alpha1.PhasePending
			run.Status.Conditions = []metav1.Condition{{Type: assayv1alpha1.ConditionProgressing, Status: "False", Reason: "NoNodeMatches",
				Message: "no node has 64 CPUs"}}
		}), aRun("team-a", "three"))
	for name, tc := range map[string]struct {
		names      []string
		namespace  string
		selector   string
		form       string
		has, lacks []string
	}{
		"a table of the namespace":       {namespace: "default", form: "table", has: []string{"NAMESPACE", "one", "Go", "two", "Pending"}, lacks: []string{"three", "NOTE"}},
		"of all namespaces":              {form: "table", has: []string{"one", "three", "team-a"}},
		"a selection":                    {namespace: "default", selector: "team=storage", form: "table", has: []string{"two"}, lacks: []string{"one"}},
		"wide says what a run waits for": {namespace: "default", form: "wide", has: []string{"NOTE", "NoNodeMatches: no node has 64 CPUs"}},
		"names for xargs":                {namespace: "default", form: "name", has: []string{"benchmarkrun.assay.dev/one\nbenchmarkrun.assay.dev/two\n"}, lacks: []string{"NAME"}},
		"JSON of the list":               {namespace: "default", form: "json", has: []string{`"kind": "BenchmarkRunList"`, `"kind": "BenchmarkRun"`}},
		"YAML of one":                    {names: []string{"one"}, namespace: "default", form: "yaml", has: []string{"kind: BenchmarkRun\n", "verdict: Go"}, lacks: []string{"BenchmarkRunList"}},
		"one, for people":                {names: []string{"one"}, namespace: "default", form: "table", has: []string{"VERDICT  Go"}},
		"two by name":                    {names: []string{"one", "two"}, namespace: "default", form: "table", has: []string{"NAMESPACE", "one", "two"}},
		"none":                           {namespace: "empty", form: "table", has: []string{"no BenchmarkRuns in this namespace; assay get -A lists those of all namespaces"}},
		"none as JSON is an empty list":  {namespace: "empty", form: "json", has: []string{`"items": []`}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := *cluster
			cluster.namespace = tc.namespace
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
	raw, err := os.ReadFile(filepath.Join("testdata", "adaptive.yaml"))
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

func TestRunsAreCreated(t *testing.T) {
	long := strings.Repeat("a", 52)
	for name, tc := range map[string]struct {
		edit      func(*assayv1alpha1.BenchmarkRun)
		what      creation
		namespace string
		there     []client.Object
		want      string
		prefix    string
		says      string
		code      int
	}{
		"as the file says":               {want: "default/adaptive"},
		"under another name":             {what: creation{name: "nightly"}, want: "default/nightly"},
		"in the namespace of the file":   {edit: func(r *assayv1alpha1.BenchmarkRun) { r.Namespace = "team-a" }, want: "team-a/adaptive"},
		"any number of times":            {what: creation{generate: true}, prefix: "adaptive-"},
		"under a prefix that is long":    {what: creation{name: long, generate: true}, prefix: strings.Repeat("a", 46) + "-"},
		"under one that is cut at a dot": {what: creation{name: long[:45] + ".bcdefg", generate: true}, prefix: long[:45] + "-"},
		"but not in two places":          {edit: func(r *assayv1alpha1.BenchmarkRun) { r.Namespace = "team-a" }, namespace: "team-b", says: `metadata.namespace is "team-a" and --namespace is "team-b"`, code: exitUsage},
		"but not over another":           {there: []client.Object{aRun("default", "adaptive")}, says: "exists already", code: exitError},
		"but not without a name":         {edit: func(r *assayv1alpha1.BenchmarkRun) { r.Name = "" }, says: "metadata.name is missing", code: exitUsage},
		"but not with an unknown metric": {edit: func(r *assayv1alpha1.BenchmarkRun) { r.Spec.Gates[0].Metric = "speed" }, says: "spec.gates[0].metric", code: exitUsage},
		"but not without its template": {
			edit: func(r *assayv1alpha1.BenchmarkRun) {
				r.Spec.Template, r.Spec.TemplateRef = nil, &assayv1alpha1.TemplateReference{Name: "pir"}
			},
			says: `spec.templateRef.name: no BenchmarkTemplate "pir" in namespace "default"`, code: exitUsage,
		},
	} {
		t.Run(name, func(t *testing.T) {
			edit := tc.edit
			if edit == nil {
				edit = func(*assayv1alpha1.BenchmarkRun) {}
			}
			tc.what.file = manifestFile(t, edit)
			cluster := fakeCluster(t, interceptor.Funcs{}, tc.there...)
			if tc.namespace != "" {
				cluster.namespace = tc.namespace
			}
			run, err := tc.what.create(context.Background(), cluster, tc.namespace)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || exitCodeOf(err) != tc.code {
					t.Fatalf("error %v with code %d, want one that says %q with code %d", err, exitCodeOf(err), tc.says, tc.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := run.Namespace + "/" + run.Name; tc.want != "" && got != tc.want {
				t.Errorf("created %s, want %s", got, tc.want)
			}
			if tc.prefix != "" && (!strings.HasPrefix(run.Name, tc.prefix) || len(run.Name) > nameLength || len(run.Name) == len(tc.prefix)) {
				t.Errorf("created %q, want the prefix %q and at most %d characters", run.Name, tc.prefix, nameLength)
			}
			if _, err := getRun(context.Background(), cluster, run.Name); err != nil {
				t.Error(err)
			}
		})
	}
}

// Who may create runs and read nothing else is not kept from it.
func TestARunIsCreatedByOneWhoMayNotReadTemplates(t *testing.T) {
	calls := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
		options ...client.GetOption) error {
		if _, ok := object.(*assayv1alpha1.BenchmarkTemplate); ok {
			return apierrors.NewForbidden(schema.GroupResource{Group: "assay.dev", Resource: "benchmarktemplates"}, key.Name, errors.New("no"))
		}
		return c.Get(ctx, key, object, options...)
	}}
	what := creation{file: manifestFile(t, func(r *assayv1alpha1.BenchmarkRun) {
		r.Spec.Template, r.Spec.TemplateRef = nil, &assayv1alpha1.TemplateReference{Name: "pir"}
	})}
	if _, err := what.create(context.Background(), fakeCluster(t, calls), ""); err != nil {
		t.Error(err)
	}
}

func TestATemplateThatOthersUseIsLeftAlone(t *testing.T) {
	template := func(command string) *assayv1alpha1.BenchmarkTemplate {
		return &assayv1alpha1.BenchmarkTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pir"},
			Spec:       assayv1alpha1.BenchmarkTemplateSpec{Image: "x", Command: []string{command}},
		}
	}
	cluster := fakeCluster(t, interceptor.Funcs{}, template("/old"))
	if err := ensureTemplate(context.Background(), cluster, template("/old")); err != nil {
		t.Errorf("the same template is no conflict: %v", err)
	}
	if err := ensureTemplate(context.Background(), cluster, template("/new")); err == nil ||
		!strings.Contains(err.Error(), "exists and differs") {
		t.Errorf("error %v", err)
	}
}

func TestWatchTellsWhatChangesUntilTheEnd(t *testing.T) {
	for form, want := range map[string][]string{
		"text": {"Pending", "12/24 trials", "VERDICT  NoGo"},
		"json": {`"kind":"BenchmarkRun"`, `"done":12`, `"verdict":"NoGo"`},
	} {
		t.Run(form, func(t *testing.T) {
			cluster := fakeCluster(t, interceptor.Funcs{}, aRun("default", "x"))
			seen := make(chan string, 16)
			out := writer(func(p []byte) { seen <- string(p) })
			done := make(chan error, 1)
			go func() { done <- watchToTheEnd(t.Context(), cluster, "x", form, out) }()
			text := <-seen
			update(t, cluster, "x", func(run *assayv1alpha1.BenchmarkRun) {
				run.Status.Phase, run.Status.Trials = assayv1alpha1.PhaseRunning, assayv1alpha1.TrialCounts{Planned: 24, Done: 12}
			})
			text += <-seen
			update(t, cluster, "x", complete(assayv1alpha1.VerdictNoGo))
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

func update(t *testing.T, cluster *cluster, name string, edit func(*assayv1alpha1.BenchmarkRun)) {
	t.Helper()
	run, err := getRun(t.Context(), cluster, name)
	if err != nil {
		t.Fatal(err)
	}
	edit(run)
	if err := cluster.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

func TestGateSavesItsAnswerWhateverItIs(t *testing.T) {
	nogo := aRun("default", "x", complete(assayv1alpha1.VerdictNoGo), func(run *assayv1alpha1.BenchmarkRun) {
		run.Status.Gates = []assayv1alpha1.GateStatus{
			{Name: "gain", Candidate: "fused", Point: "batchSize=8", Outcome: assayv1alpha1.VerdictNoGo, Severity: assayv1alpha1.Blocking, Message: "1.02x [1.01, 1.03] is below 1.5x"},
			{Name: "hint", Candidate: "fused", Outcome: assayv1alpha1.VerdictNoGo, Severity: assayv1alpha1.Advisory, Message: "advice"},
			{Name: "parity", Candidate: "fused", Outcome: assayv1alpha1.VerdictGo, Severity: assayv1alpha1.Blocking},
		}
	})
	save := filepath.Join(t.TempDir(), "answer.json")
	var out, progress bytes.Buffer
	var kept gateAnswer
	err := gate(t.Context(), fakeCluster(t, interceptor.Funcs{}, nogo), "x", &gateOptions{form: "text"}, &kept, &out, &progress)
	if err := kept.keep(save); err != nil {
		t.Fatal(err)
	}
	const reason = "the verdict is NoGo: gate gain of fused at batchSize=8: 1.02x [1.01, 1.03] is below 1.5x"
	if err == nil || err.Error() != reason || exitCodeOf(err) != exitNoGo {
		t.Fatalf("error %v with code %d", err, exitCodeOf(err))
	}
	raw, err := os.ReadFile(save)
	if err != nil {
		t.Fatal(err)
	}
	var answer gateAnswer
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Passed || answer.Reason != reason ||
		answer.Verdict != assayv1alpha1.VerdictNoGo {
		t.Errorf("saved %s (%v)", raw, err)
	}
	if !strings.Contains(out.String(), "VERDICT  NoGo") {
		t.Errorf("printed:\n%s", out.String())
	}
}

func TestGateDoesNotWaitForEver(t *testing.T) {
	cluster := fakeCluster(t, interceptor.Funcs{}, aRun("default", "x"))
	for wait, says := range map[string]string{"0": "--wait waits for it", "50ms": "did not end within --wait 50ms"} {
		options := gateOptions{form: "text"}
		if wait != "0" {
			options.wait = 50e6
		}
		err := gate(t.Context(), cluster, "x", &options, &gateAnswer{}, &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), says) || exitCodeOf(err) != exitError {
			t.Errorf("--wait %s: error %v, want one that says %q", wait, err, says)
		}
	}
}

func TestCancelAsksOnce(t *testing.T) {
	cluster := fakeCluster(t, interceptor.Funcs{}, aRun("default", "running"), aRun("default", "over", complete(assayv1alpha1.VerdictGo)))
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
		run, err := getRun(t.Context(), cluster, name)
		if err != nil || (run.Spec.Cancel != nil && *run.Spec.Cancel) == want.Ended {
			t.Errorf("%s: spec.cancel is %v (%v)", name, run.Spec.Cancel, err)
		}
	}
}

func TestNamesOfRunsAreCompleted(t *testing.T) {
	cluster := fakeCluster(t, interceptor.Funcs{}, aRun("default", "one", complete(assayv1alpha1.VerdictGo)), aRun("default", "two"),
		aRun("team-a", "three"))
	got := runCompletions(t.Context(), cluster, []string{"two"})
	if len(got) != 1 || got[0] != cobra.CompletionWithDesc("one", "Succeeded Go") {
		t.Errorf("completions %q", got)
	}
}
