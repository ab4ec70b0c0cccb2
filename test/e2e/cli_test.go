package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// manifestOf writes a run as a person would.
func manifestOf(t *testing.T, run *assayv1alpha1.BenchmarkRun) string {
	t.Helper()
	run.APIVersion, run.Kind = assayv1alpha1.GroupVersion.String(), "BenchmarkRun"
	raw, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.yaml") // JSON is YAML.
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// exits runs a command that has to end with a code and say something.
func exits(t *testing.T, code int, says string, args ...string) {
	t.Helper()
	out, err := try(args[0], args[1:]...)
	got := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != code || !strings.Contains(out, says) {
		t.Errorf("%s ends with %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, says, out)
	}
}

// parse reads JSON that a command printed.
func parse[T any](t *testing.T, out string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		t.Fatalf("%v in %.400s", err, out)
	}
	return value
}

// A person drives one run from the plan to the report with assay alone, and tries everything on the way.
func TestEveryCommandOnARealRun(t *testing.T) {
	const name = "cli"
	remove(t, name)
	t.Cleanup(func() { remove(t, name) })
	run := smallScan(name, 3)
	run.Spec.Design.GateConfidence = "0.95"
	file := manifestOf(t, run)

	plan := parse[map[string]any](t, command(t, "bin/assay", "plan", file, "-o", "json"))
	if plan["points"] != 2.0 || plan["minBlocks"] != 3.0 {
		t.Errorf("the plan is %v", plan)
	}
	exits(t, 2, "spec.gates[0].metric", "bin/assay", "run", "-n", namespace, "-f",
		manifestOf(t, with(smallScan("cli-wrong", 3), func(r *assayv1alpha1.BenchmarkRun) { r.Spec.Gates[0].Metric = "speed" })))
	if out := command(t, "bin/assay", "run", file, "-n", namespace, "-o", "name"); out != "benchmarkrun.assay.dev/cli\n" {
		t.Errorf("assay run prints %q", out)
	}
	exits(t, 1, "exists, and a run cannot be restarted", "bin/assay", "run", file, "-n", namespace)
	t.Run("while it runs", func(t *testing.T) { whileItRuns(t, name) })

	followed := strings.Split(strings.TrimSpace(command(t, "bin/assay", "watch", name, "-n", namespace, "-o", "json")), "\n")
	last := parse[assayv1alpha1.BenchmarkRun](t, followed[len(followed)-1])
	if last.Kind != "BenchmarkRun" || last.Status.Verdict != assayv1alpha1.VerdictGo {
		t.Errorf("the last of %d lines of assay watch is %s", len(followed), followed[len(followed)-1])
	}
	t.Run("when it has ended", func(t *testing.T) { whenItHasEnded(t, name) })
	t.Run("the installation", func(t *testing.T) {
		exits(t, 0, "BenchmarkRun", "bin/assay", "doctor", "-n", namespace)
		if found := parse[[]map[string]any](t, command(t, "bin/assay", "doctor", "-n", namespace, "-o", "json")); len(found) < 5 {
			t.Errorf("doctor found %v", found)
		}
		machines := parse[struct{ Machines []any }](t, command(t, "bin/assay", "preflight", "-n", namespace, "-o", "json")).Machines
		if len(machines) == 0 {
			t.Error("preflight found no machine")
		}
		exits(t, 0, "exclusiveCPUs", "bin/assay", "preflight", "-f", file, "-n", namespace)
		exits(t, 0, "assay version", "bin/assay", "version")
	})
}

func whileItRuns(t *testing.T, name string) {
	eventually(t, 3*time.Minute, "a block's runner has begun", func() (bool, string) {
		for _, pod := range podsOf(t, name) {
			if pod.Status.Phase == corev1.PodRunning && pod.Labels["assay.dev/part"] == "block" {
				return true, ""
			}
		}
		return false, conditions(getRun(t, name))
	})
	exits(t, 1, "wait for it with --wait", "bin/assay", "gate", name, "-n", namespace, "--wait", "0")
	exits(t, 1, "no analysis yet", "bin/assay", "results", name, "-n", namespace)
	exits(t, 1, "did you mean cli?", "bin/assay", "get", "clj", "-n", namespace)
	exits(t, 0, "REMAINING", "bin/assay", "get", "-n", namespace, "-o", "wide")
	if got := parse[assayv1alpha1.BenchmarkRun](t, command(t, "bin/assay", "get", name, "-n", namespace, "-o", "json")); got.Name != name ||
		got.Kind != "BenchmarkRun" {
		t.Errorf("assay get -o json prints %s %q", got.Kind, got.Name)
	}
	// The plugin, and the words that kubectl completes for it.
	path := "PATH=" + filepath.Join(absolute(t, root), "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	exits(t, 0, "benchmarkrun.assay.dev/cli", "env", path, "kubectl", "assay", "get", name, "-n", namespace, "-o", "name")
	exits(t, 0, "cli\t", "bin/assay", "__complete", "watch", "-n", namespace, "cl")
	eventually(t, time.Minute, "the pods said something", func() (bool, string) {
		out, err := try("bin/assay", "logs", name, "-n", namespace, "-o", "json")
		if err != nil || out == "" {
			return false, out
		}
		line := parse[map[string]string](t, strings.SplitN(out, "\n", 2)[0])
		return line["pod"] != "" && line["container"] != "", out
	})
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func whenItHasEnded(t *testing.T, name string) {
	exits(t, 0, "VERDICT  Go", "bin/assay", "gate", name, "-n", namespace)
	exits(t, 0, "VERDICT  Go", "bin/assay", "get", name, "-n", namespace)
	exits(t, 0, "has ended already: Go", "bin/assay", "cancel", name, "-n", namespace)
	answer := parse[map[string]any](t, command(t, "bin/assay", "gate", name, "-n", namespace, "-o", "json"))
	if answer["passed"] != true || answer["verdict"] != "Go" {
		t.Errorf("assay gate -o json prints %v", answer)
	}

	folder := t.TempDir()
	for file, has := range map[string]string{
		"report.html": "<!doctype html>", "report.md": "fused-m4r", "table.csv": "batchSize,arm", "analysis.json": `"verdict": "Go"`,
		"attempts.parquet": "PAR1", "results.bench": "/arm=fused-m4r-1 ", "attempts.jsonl": `"assay.dev/attempt/v1alpha1"`, "table.txt": "verdict: Go",
	} {
		path := filepath.Join(folder, file)
		command(t, "bin/assay", "results", name, "-n", namespace, "-o", path)
		raw, err := os.ReadFile(path)
		if err != nil || !strings.Contains(strings.ToLower(string(raw)), strings.ToLower(has)) {
			t.Errorf("%s does not hold %q (%v): %.200s", file, has, err, raw)
		}
	}
	for _, form := range []string{"html", "md", "csv", "json", "parquet"} {
		if out := command(t, "bin/assay", "report", name, "-n", namespace, "--format", form); len(out) < 100 {
			t.Errorf("assay report --format %s prints %q", form, out)
		}
	}
	exits(t, 0, "B/A", "bin/assay", "compare", name, name, "-n", namespace)
	theDAGReadsAsTheExperiment(t, name)
}

// theDAGReadsAsTheExperiment checks the first wave as Argo's UI shows it.
func theDAGReadsAsTheExperiment(t *testing.T, name string) {
	type parameter struct{ Name, Value string }
	workflow := parse[struct {
		Metadata struct{ Annotations map[string]string }
		Status   struct {
			Nodes map[string]struct {
				Type, DisplayName, TemplateName string
				Inputs                          struct{ Parameters []parameter }
			}
		}
	}](t, command(t, "kubectl", "get", "workflow", name+"-w000", "-n", namespace, "-o", "json"))
	if title := workflow.Metadata.Annotations["workflows.argoproj.io/title"]; title != "cli, wave 0: screen" {
		t.Errorf("the workflow's title is %q", title)
	}
	// The links of the UI are an address followed by this path.
	if report := workflow.Metadata.Annotations["assay.dev/report"]; !strings.Contains(getRun(t, name).Status.Report,
		strings.TrimSuffix(report, ".html")) || report == "" {
		t.Errorf("the workflow's report is %q, and the run's %q", report, getRun(t, name).Status.Report)
	}
	blocks := 0
	for id, node := range workflow.Status.Nodes {
		if node.TemplateName != "block" || node.Type != "Retry" {
			continue
		}
		blocks++
		if !regexp.MustCompile(`^block-[0-2]$`).MatchString(node.DisplayName) {
			t.Errorf("node %s is called %q", id, node.DisplayName)
		}
		inputs := map[string]string{}
		for _, p := range node.Inputs.Parameters {
			inputs[p.Name] = p.Value
		}
		if inputs["points"] != "2: batchSize=1; batchSize=8" || inputs["arms"] != "loop, fused-m4r" ||
			!strings.HasSuffix(inputs["sequence"], " at batchSize=1") {
			t.Errorf("node %s has the inputs %v", id, inputs)
		}
	}
	if blocks != 3 {
		t.Errorf("the graph has %d blocks, want 3: %v", blocks, workflow.Status.Nodes)
	}
}

// Cancelled on the way, a run has no verdict to pass a gate with.
func TestARunThatIsCancelledDoesNotPassTheGate(t *testing.T) {
	const name = "cli-cancelled"
	apply(t, smallScan(name, 25))
	untilTrials(t, name, 1)
	exits(t, 0, "is being cancelled", "bin/assay", "cancel", name, "-n", namespace)
	exits(t, 3, "verdict", "bin/assay", "gate", name, "-n", namespace, "--wait", "3m")
}
