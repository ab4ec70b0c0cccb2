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

// A person drives one run with assay, through the cluster's pods, Argo and the store. The other commands, and more of these, have their
// tests on an API server without pods: operator/test/integration.
func TestCLI_CommandsOnARealRun(t *testing.T) {
	const name = "cli"
	remove(t, name)
	t.Cleanup(func() { remove(t, name) })
	file := manifestOf(t, with(smallScan(name, 3), func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Design.GateConfidence = "0.95" }))
	command(t, "bin/assay", "run", file, "-n", namespace)
	checkBlockPod(t, runningBlock(t, name))
	whileItRuns(t, name)
	watches(t, name, "loop", "fused-m4r")
	run := untilComplete(t, name, time.Minute)
	if run.Status.Verdict != assayv1alpha1.VerdictGo {
		t.Errorf("verdict %s, want Go: %s", run.Status.Verdict, conditions(run))
	}
	checkResults(t, run)
	theDAGReadsAsTheExperiment(t, name)
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
	t.Helper()
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
