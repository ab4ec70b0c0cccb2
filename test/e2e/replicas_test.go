package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// The study of replicas with a pod each, smaller and with a part of a CPU for each: every trial finds them by their names, has them begin
// anew, and all its commands are answered.
func TestReplicas_HaveSeparatePods(t *testing.T) {
	long(t)
	const name, study = "curp-pods", "workflows/studies/curp-batch-delay/"
	revision := deployedRevision(t)
	t.Cleanup(func() { command(t, "helm", "rollback", "assay", revision, "-n", system, "--wait", "--timeout", "4m") })
	command(t, "helm", "upgrade", "assay", "charts/assay", "-n", system, "--reuse-values", "--wait", "--timeout", "4m", "--set-json",
		`networkPolicies.runs.egress=[{"to": [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "curp"}}}], "ports": [{"port": 7000}]}]`)

	replicas := edited(t, study+"pods/replicas.yaml", `requests: {cpu: "1"`, "requests: {cpu: 50m", `limits: {cpu: "1"`, "limits: {cpu: 500m")
	t.Cleanup(func() { command(t, "kubectl", "delete", "-n", namespace, "-f", replicas, "--wait") })
	command(t, "kubectl", "apply", "-n", namespace, "-f", replicas)
	command(t, "kubectl", "rollout", "status", "-n", namespace, "statefulset/curp", "--timeout=2m")

	remove(t, name)
	t.Cleanup(func() { remove(t, name) })
	command(t, "kubectl", "apply", "-n", namespace, "-f",
		edited(t, study+"pods.yaml", `operations: "40000"`, `operations: "2000"`, "min: 10, max: 16", "min: 3, max: 3",
			// Without exclusive CPUs the replicas share the CPU of the clients.
			"  budget:", "  environment: {noise: {steal: \"off\", otherWork: \"off\"}}\n  budget:"))
	run := untilComplete(t, name, 5*time.Minute)
	if run.Status.Verdict == assayv1alpha1.VerdictInvalid {
		t.Errorf("verdict %s: %s", run.Status.Verdict, conditions(run))
	}
	all := attempts(t, name)
	if len(all) < 3*3 {
		t.Errorf("%d attempts, want three arms in three blocks", len(all))
	}
	for _, attempt := range all {
		if attempt["outcome"] != "Succeeded" {
			t.Errorf("attempt %v is %v: %v", attempt["id"], attempt["outcome"], attempt["message"])
		}
	}
}

// edited is a copy of a file of the tree in which every old text, of which there has to be one, is the new one after it.
func edited(t *testing.T, file string, oldNew ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(oldNew); i += 2 {
		if strings.Count(string(raw), oldNew[i]) != 1 {
			t.Fatalf("%s does not have %q once", file, oldNew[i])
		}
	}
	out := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(out, []byte(strings.NewReplacer(oldNew...).Replace(string(raw))), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}
