package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// pipeline is the example's Workflow with another manifest.
func pipeline(t *testing.T, name string, edit func(spec map[string]any)) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "workflows", "examples", "gate-in-a-pipeline", "pipeline.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	metadata := object["metadata"].(map[string]any)
	metadata["name"] = name
	delete(metadata, "generateName")
	edit(object["spec"].(map[string]any))
	if raw, err = yaml.Marshal(object); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type pipelineStatus struct {
	Status struct {
		Phase, Message string
		Nodes          map[string]struct {
			DisplayName, Phase, Message string
			Inputs, Outputs             struct {
				Parameters []struct{ Name, Value string }
			}
		}
	}
}

// manifestParameter replaces a text in the manifest that the pipeline gives to the gate.
func manifestParameter(old, replacement string) func(map[string]any) {
	return func(spec map[string]any) {
		parameter := spec["arguments"].(map[string]any)["parameters"].([]any)[0].(map[string]any)
		parameter["value"] = strings.Replace(parameter["value"].(string), old, replacement, 1)
	}
}

// asArtifact gives the manifest as a file instead of a parameter.
func asArtifact(edit func(map[string]any)) func(map[string]any) {
	return func(spec map[string]any) {
		edit(spec)
		text := spec["arguments"].(map[string]any)["parameters"].([]any)[0].(map[string]any)["value"]
		tasks := spec["templates"].([]any)[0].(map[string]any)["dag"].(map[string]any)["tasks"].([]any)
		tasks[1].(map[string]any)["arguments"] = map[string]any{"artifacts": []any{map[string]any{"name": "manifest",
			"raw": map[string]any{"data": text}}}}
	}
}

// Any Argo pipeline creates a run, waits for it and goes on only if the verdict is Go; if not it says why.
func TestGate_PipelineContinuesOnlyAfterGo(t *testing.T) {
	long(t)
	command(t, "kubectl", "apply", "-n", namespace, "-f", "workflows/templates/benchmark-gate.yaml")
	t.Cleanup(func() {
		_, _ = try("kubectl", "delete", "-n", namespace, "-f", "workflows/templates/benchmark-gate.yaml", "--ignore-not-found")
	})
	cases := map[string]struct {
		edit      func(map[string]any)
		run       string
		phase     string
		says      []string
		goesOn    string
		noVerdict bool
	}{
		"gate-go": {edit: manifestParameter("name: release", "name: gate-go"), run: "gate-go", phase: "Succeeded", goesOn: "Go: "},
		"gate-nogo": {
			edit: asArtifact(manifestParameter(`bound: "1.5"`, `bound: "100000"`)), run: "release",
			phase: "Failed", says: []string{"exit code 4", "the verdict is NoGo: gate fast-enough of proposed"},
		},
		// An invalid manifest reaches only the program that reads manifests.
		"gate-garbage": {
			edit: func(spec map[string]any) {
				spec["arguments"].(map[string]any)["parameters"].([]any)[0].(map[string]any)["value"] = "$(exit 0); `exit 0`; \"; exit 0 #"
			},
			phase: "Failed", says: []string{"exit code 2", "run.yaml"}, noVerdict: true,
		},
	}
	for name, tc := range cases {
		t.Cleanup(func() {
			_, _ = try("kubectl", "delete", "workflow", name, "-n", namespace, "--ignore-not-found")
			for _, run := range runsNamed(t, tc.run) {
				remove(t, run)
			}
		})
		command(t, "kubectl", "create", "-n", namespace, "-f", pipeline(t, name, tc.edit))
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var ended pipelineStatus
			eventually(t, 6*time.Minute, "pipeline "+name+" has ended", func() (bool, string) {
				ended = parse[pipelineStatus](t, command(t, "kubectl", "get", "workflow", name, "-n", namespace, "-o", "json"))
				return ended.Status.Phase == "Succeeded" || ended.Status.Phase == "Failed" || ended.Status.Phase == "Error",
					ended.Status.Phase + " " + ended.Status.Message
			})
			if ended.Status.Phase != tc.phase {
				t.Fatalf("the pipeline is %s (%s), want %s: %+v", ended.Status.Phase, ended.Status.Message, tc.phase, ended.Status.Nodes)
			}
			answer, released := "", ""
			for _, node := range ended.Status.Nodes {
				switch node.DisplayName {
				case "gate":
					for _, text := range tc.says {
						if !strings.Contains(node.Message, text) {
							t.Errorf("the gate says %q, want %q", node.Message, text)
						}
					}
					for _, output := range node.Outputs.Parameters {
						answer = output.Value
					}
				case "release":
					if node.Phase == "Succeeded" {
						released = node.Inputs.Parameters[0].Value
					}
				}
			}
			if !strings.HasPrefix(released, tc.goesOn) || (released != "") != (tc.goesOn != "") {
				t.Errorf("the step after the gate saw %q, want %q", released, tc.goesOn)
			}
			if found := parse[map[string]any](t, answer); !tc.noVerdict && (found["verdict"] == nil || found["passed"] != (tc.goesOn != "")) {
				t.Errorf("the gate's answer is %s", answer)
			}
		})
	}
}

// runsNamed are the runs whose name begins with a prefix; none for an empty one.
func runsNamed(t *testing.T, prefix string) []string {
	t.Helper()
	var out []string
	for _, name := range strings.Fields(command(t, "kubectl", "get", "benchmarkruns", "-n", namespace, "-o",
		"jsonpath={.items[*].metadata.name}")) {
		if prefix != "" && strings.HasPrefix(name, prefix+"-") {
			out = append(out, name)
		}
	}
	return out
}
