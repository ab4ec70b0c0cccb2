package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/root"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
)

// kubeconfig is the file with which commands reach the suite's API server.
var kubeconfig string

// assay runs a command of the program in the world's namespace, and returns its output, with the error if there is one, and its exit code.
func (w *world) assay(args ...string) (output string, code int) {
	w.t.Helper()
	command := root.New()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append(args, "--kubeconfig", kubeconfig, "-n", w.namespace))
	err := root.Execute(w.ctx, command)
	if err != nil {
		out.WriteString(err.Error())
	}
	return out.String(), cli.ExitCode(err)
}

// exits runs a command that must end with an exit code and a text in its output.
func (w *world) exits(code int, says string, args ...string) {
	w.t.Helper()
	if out, got := w.assay(args...); got != code || !strings.Contains(out, says) {
		w.t.Errorf("assay %s ends with %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, says, out)
	}
}

// printed returns the output of a command that must succeed.
func (w *world) printed(args ...string) string {
	w.t.Helper()
	out, code := w.assay(args...)
	if code != cli.ExitDone {
		w.t.Fatalf("assay %s ends with %d:\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// parse decodes JSON that a command printed.
func parse[T any](t *testing.T, out string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		t.Fatalf("%v in %.400s", err, out)
	}
	return value
}

// manifest writes the template and a changed run to a file.
func (w *world) manifest(edit func(*assayv1alpha1.BenchmarkRun)) string {
	w.t.Helper()
	run, template := w.run.DeepCopy(), w.template.DeepCopy()
	edit(run)
	run.SetGroupVersionKind(assayv1alpha1.GroupVersion.WithKind("BenchmarkRun"))
	template.SetGroupVersionKind(assayv1alpha1.GroupVersion.WithKind("BenchmarkTemplate"))
	var documents []string
	for _, object := range []client.Object{template, run} {
		raw, err := yaml.Marshal(object)
		w.must(err)
		documents = append(documents, string(raw))
	}
	file := filepath.Join(w.t.TempDir(), "run.yaml")
	w.must(os.WriteFile(file, []byte(strings.Join(documents, "---\n")), 0o600))
	return file
}

// readSecret makes the Secret with the read-only credentials of the store. The suite's store is a folder, which needs none.
func (w *world) readSecret() {
	w.t.Helper()
	w.must(admin.Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "assay-ledger-read"},
		StringData: map[string]string{"accessKey": "reader", "secretKey": "not-a-real-secret"},
	}))
}

// A user drives one run from the plan to the report with assay alone.
func TestCommands_DriveRunFromPlanToReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.readSecret()
	file := w.manifest(func(*assayv1alpha1.BenchmarkRun) {})

	plan := parse[map[string]any](t, w.printed("plan", file, "-o", "json"))
	if plan["points"] != 4.0 || plan["minBlocks"] != 4.0 {
		t.Errorf("the plan is %v", plan)
	}
	w.exits(cli.ExitUsage, "spec.gates[1].metric", "run", "-f", w.manifest(func(run *assayv1alpha1.BenchmarkRun) {
		run.Name, run.Spec.Gates[1].Metric = "wrong", "speed"
	}))
	if out := w.printed("run", file, "-o", "name"); out != "benchmarkrun.assay.dev/scan\n" {
		t.Errorf("assay run prints %q", out)
	}
	w.exits(cli.ExitError, "exists, and a run cannot be restarted", "run", file)
	w.untilStarted()
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning)

	w.exits(cli.ExitError, "wait for it with --wait", "gate", "scan", "--wait", "0")
	w.exits(cli.ExitError, "no analysis yet", "results", "scan")
	w.exits(cli.ExitError, "did you mean scan?", "get", "scam")
	w.exits(cli.ExitDone, "REMAINING", "get", "-o", "wide")
	if got := parse[assayv1alpha1.BenchmarkRun](t, w.printed("get", "scan", "-o", "json")); got.Name != "scan" || got.Kind != "BenchmarkRun" {
		t.Errorf("assay get -o json prints %s %q", got.Kind, got.Name)
	}

	watched := make(chan string)
	go func() {
		out, _ := w.assay("watch", "scan", "-o", "json")
		watched <- out
	}()
	w.finish()
	lines := strings.Split(strings.TrimSpace(<-watched), "\n")
	if last := parse[assayv1alpha1.BenchmarkRun](t, lines[len(lines)-1]); last.Kind != "BenchmarkRun" ||
		last.Status.Verdict != assayv1alpha1.VerdictGo {
		t.Errorf("the last of %d lines of assay watch is %s", len(lines), lines[len(lines)-1])
	}

	w.exits(cli.ExitDone, "VERDICT  Go", "gate", "scan")
	w.exits(cli.ExitDone, "VERDICT  Go", "get", "scan")
	w.exits(cli.ExitDone, "has ended already: Go", "cancel", "scan")
	if answer := parse[map[string]any](t, w.printed("gate", "scan", "-o", "json")); answer["passed"] != true || answer["verdict"] != "Go" {
		t.Errorf("assay gate -o json prints %v", answer)
	}
	folder := t.TempDir()
	for name, has := range map[string]string{
		"report.html": "<!doctype html>", "report.md": "fused-m4r", "table.csv": "batchSize,", "analysis.json": `"verdict":"Go"`,
		"attempts.parquet": "PAR1", "results.bench": "/arm=fused-m4r-", "attempts.jsonl": `"assay.dev/attempt/v1alpha1"`, "table.txt": "verdict: Go",
	} {
		path := filepath.Join(folder, name)
		w.printed("results", "scan", "-o", path)
		raw, err := os.ReadFile(path)
		if err != nil || !strings.Contains(strings.ToLower(string(raw)), strings.ToLower(has)) {
			t.Errorf("%s does not hold %q (%v): %.200s", name, has, err, raw)
		}
	}
	for _, form := range []string{"html", "md", "csv", "json", "parquet"} {
		if out := w.printed("report", "scan", "--format", form); len(out) < 100 {
			t.Errorf("assay report --format %s prints %q", form, out)
		}
	}
	w.exits(cli.ExitDone, "B/A", "compare", "scan", "scan")
}

// Cancelled during its first wave, a run has no verdict to pass a gate with.
func TestCommands_CancelledRunDoesNotPassGate(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.readSecret()
	w.runBlocks(0, 1)
	w.exits(cli.ExitDone, "is being cancelled", "cancel", "scan")
	w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
	w.analyze()
	w.argoSays(executor.Name("scan", 0), "Failed", "stopped with strategy 'Stop'")
	w.exits(cli.ExitInconclusive, "verdict", "gate", "scan", "--wait", "1m")
}
