package root

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/cli"
)

// apiServer answers as an API server with two nodes: one has a static CPU manager, the other's kubelet may not be asked.
func apiServer(t *testing.T) string {
	t.Helper()
	node := func(name string) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": name},
			"status": map[string]any{
				"allocatable": map[string]string{"cpu": "2", "memory": "8Gi"},
				"conditions":  []map[string]string{{"type": "Ready", "status": "True"}},
			},
		}
	}
	answers := map[string]any{
		"/api":    map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis":   map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"/api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{map[string]any{"name": "nodes", "kind": "Node", "verbs": []string{"list"}}}},
		"/api/v1/nodes": map[string]any{
			"kind": "NodeList", "apiVersion": "v1", "items": []any{node("node-a"), node("node-b")},
		},
		"/api/v1/nodes/node-a/proxy/configz": map[string]any{"kubeletconfig": map[string]any{"cpuManagerPolicy": "static", "failSwapOn": true}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
				"message": "nodes/proxy is forbidden"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func preflightOf(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	// The kubeconfig of the environment is not used.
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	command := New()
	command.SetArgs(append([]string{"preflight"}, arguments...))
	command.SetOut(&out)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// runFile holds a run with some demands.
func runFile(t *testing.T, demands string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.yaml")
	text := "apiVersion: assay.dev/v1alpha1\nkind: BenchmarkRun\nmetadata: {name: r}\nspec:\n  templateRef: {name: t}\n  arms: [{name: a}]\n" +
		demands
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPreflight_Cluster(t *testing.T) {
	cases := map[string]struct {
		demands string
		code    int
		says    []string
	}{
		"no run": {says: []string{"node-a", "cpuManagerPolicy is static", "node-b", "forbidden"}},
		"a run whose requirements are met": {
			demands: "  placement: {requireStaticCPUManager: true}\n", says: []string{"Nothing that the run asks for is known to be missing."},
		},
		"a run that cannot": {
			demands: "  placement: {cpus: 3}\n", code: cli.ExitError, says: []string{"cannot be met", "node-a: 2 whole CPUs, placement.cpus is 3"},
		},
		"a run whose demand only a block can judge": {
			demands: "  environment: {require: {governor: performance}}\n", says: []string{"only a running block can verify it"},
		},
		"a run with a requirement that no runner reports": {
			demands: "  environment: {require: {cpuGovernor: performance}}\n", says: []string{"the runner reports no such key"},
		},
		"a file with something else": {demands: "  nonsense: 1\n", code: cli.ExitUsage},
	}
	server := apiServer(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			arguments := []string{"--server", server}
			if tc.demands != "" {
				arguments = append(arguments, "-f", runFile(t, tc.demands))
			}
			out, err := preflightOf(t, arguments...)
			if got := codeOf(err); got != tc.code {
				t.Fatalf("exit code %d (%v), want %d\n%s", got, err, tc.code, out)
			}
			for _, want := range tc.says {
				if !strings.Contains(out, want) {
					t.Errorf("the output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

func TestPreflight_JSON(t *testing.T) {
	out, err := preflightOf(t, "--server", apiServer(t), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machines []struct {
			Name     string
			Findings []struct{ Claim, Supported, Found, How string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(got.Machines) != 2 || got.Machines[0].Findings[0].Claim != "exclusiveCPUs" || got.Machines[0].Findings[0].Supported != "yes" ||
		got.Machines[1].Findings[0].Supported != "unknown" {
		t.Errorf("got %+v", got)
	}
}

func TestPreflight_LocalUsesRunner(t *testing.T) {
	folder := t.TempDir()
	runner := func(script string) {
		if err := os.WriteFile(filepath.Join(folder, "assay-runner"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// A runner that tells on how many CPUs it may run, as the real one does.
	runner(`[ "$1" = probe ] || exit 9
cpus=$(nproc)
echo '{"schema": "assay.dev/survey/v1alpha1", "environment": {"hard": {"smt": true}, "soft": {"hostname": "here"}}, "isolation": {"level": "Shared", "reason": "on '$cpus' CPU"}, "noise": {"otherWorkRatio": 0.3}}'
`)
	out, err := preflightOf(t, "--local", "--bin-dir", folder, "-f", runFile(t, "  environment: {require: {smt: \"false\"}}\n"))
	if codeOf(err) != cli.ExitError {
		t.Fatalf("%v, want that the demand cannot be met\n%s", err, out)
	}
	for _, want := range []string{"Shared: on 1 CPU", "30.0 % of its CPUs used by others",
		`environment.require.smt: here: is "true", must be "false"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}

	runner("echo broken >&2; exit 7\n")
	if _, err := preflightOf(t, "--local", "--bin-dir", folder); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v, want the message of the runner", err)
	}
}

func codeOf(err error) int {
	var coded *cli.CodedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.Code
	}
	return cli.ExitError
}
