package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A compiled Go test runs in an empty image as it is; its lines become samples, and its output stays in the ledger.
func TestAdapters_GoBenchmarkRunsUnmodified(t *testing.T) {
	long(t)
	const name = "example-go-test-smoke"
	program := filepath.Join(t.TempDir(), "join.test")
	t.Setenv("CGO_ENABLED", "0")
	command(t, "go", "-C", "workflows/examples/go-test", "test", "-c", "-trimpath", "-o", program, ".")
	archive := command(t, "bin/cluster", "images", "add", "--name", "assay.dev/example-go-test:0.1.0", "--file", "/join.test="+program,
		"--entrypoint", "/join.test", "--user", "65532")
	mode := os.Getenv("CLUSTER")
	if mode == "" {
		mode = "embedded"
	}
	command(t, "bin/cluster", "load", "--mode", mode, strings.TrimSpace(archive))
	remove(t, name)
	t.Cleanup(func() { remove(t, name) })
	command(t, "kubectl", "apply", "-n", namespace, "-f", "workflows/examples/go-test/smoke.yaml")
	run := untilComplete(t, name, 4*time.Minute)
	wins(t, run, "builder", "strings.Builder is faster than +=")
	for _, attempt := range attempts(t, name) {
		id := attempt["id"].(string)
		if attempt["outcome"] != "Succeeded" {
			t.Errorf("attempt %s is %v: %v", id, attempt["outcome"], attempt["message"])
			continue
		}
		result, _ := attempt["result"].(map[string]any)
		metrics, _ := result["metrics"].(map[string]any)
		latency, _ := metrics["latency"].(map[string]any)
		if samples, _ := latency["samples"].([]any); len(samples) != 3 || latency["unit"] != "s" {
			t.Errorf("attempt %s has latency %v, want three samples in seconds: -test.count=3", id, latency)
		}
		raw, _ := attempt["output"].([]any)
		if len(raw) != 1 || !strings.Contains(raw[0].(map[string]any)["text"].(string), "BenchmarkJoin/way="+attempt["arm"].(string)) {
			t.Errorf("attempt %s has the output %v, want the benchmark's output", id, raw)
		}
	}
}
