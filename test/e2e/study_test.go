package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// A person applies the smoke size of the PIR study, watches it, and reads the right verdict on real work.
func TestStudy_RunsFromApplyToVerdict(t *testing.T) {
	long(t)
	const name = "pir-batch-scan-smoke"
	remove(t, name)
	t.Cleanup(func() { remove(t, name) })
	command(t, "kubectl", "apply", "-n", namespace, "-f", "workflows/studies/pir-batch-scan/smoke.yaml")

	checkBlockPod(t, runningBlock(t, name))
	watches(t, name, "fused-naive", "fused-m4r")
	run := untilComplete(t, name, time.Minute)
	verdicts := map[string]assayv1alpha1.Verdict{}
	for _, candidate := range run.Status.Candidates {
		verdicts[candidate.Name] = candidate.Verdict
	}
	wins(t, run, "fused-m4r", "look-ups are faster than the loop")
	if verdict := verdicts["fused-naive"]; verdict != assayv1alpha1.VerdictNoGo && verdict != assayv1alpha1.VerdictInconclusive {
		t.Errorf("fused-naive is %q, want NoGo: it is no faster than the loop", verdict)
	}
	if verdict := verdicts["fused-m4r"]; verdict != run.Status.Verdict {
		t.Errorf("the run is %s where fused-m4r, which alone may be Go, is %q", run.Status.Verdict, verdict)
	}
	checkResults(t, run)
}

// runningBlock waits for a pod of a block, and returns it.
func runningBlock(t *testing.T, name string) (block *corev1.Pod) {
	t.Helper()
	eventually(t, 3*time.Minute, "a block pod runs", func() (bool, string) {
		for _, pod := range podsOf(t, name) {
			if pod.Status.Phase == corev1.PodRunning && pod.Labels["assay.dev/part"] == "block" {
				block = pod.DeepCopy()
				return true, ""
			}
		}
		return false, conditions(getRun(t, name))
	})
	return block
}

// watches follows a run to its end, and checks that every text is printed.
func watches(t *testing.T, name string, texts ...string) {
	t.Helper()
	watched, err := try("bin/assay", "watch", name, "-n", namespace)
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 3) { // 3 is Inconclusive.
		t.Fatalf("assay watch: %v\n%s", err, watched)
	}
	for _, want := range append(texts, "trials", "VERDICT  ") {
		if !strings.Contains(watched, want) {
			t.Errorf("assay watch does not print %q:\n%s", want, watched)
		}
	}
}

// checkResults checks that every trial of a run is used and had an exclusive CPU, and that commands show its results.
func checkResults(t *testing.T, run *assayv1alpha1.BenchmarkRun) {
	t.Helper()
	name := run.Name
	if run.Status.Ledger == "" || run.Status.Report == "" || run.Status.Gain == "" {
		t.Errorf("status lacks ledger, report or gain: %+v", run.Status)
	}
	analysis := results(t, name)
	planned, used, missing := number(t, analysis, "trials", "planned"), number(t, analysis, "trials", "used"),
		number(t, analysis, "trials", "missing")
	if used == 0 || used+number(t, analysis, "trials", "warmups") != planned || missing != 0 {
		t.Errorf("planned %d, used %d, missing %d: every planned trial must be used", planned, used, missing)
	}
	for _, attempt := range attempts(t, name) {
		isolation, _ := attempt["isolation"].(map[string]any)
		// Other work on this machine may disturb the CPU, but its assignment does not depend on that.
		cpus, _ := isolation["cpusAllowed"].(string)
		if cpus == "" || strings.ContainsAny(cpus, ",-") || isolation["level"] == "Throttled" || isolation["level"] == "Unknown" {
			t.Fatalf("attempt %s ran with isolation %v, want an exclusive CPU", attempt["id"], isolation)
		}
	}
	for form, want := range map[string]string{"report": "fused-m4r", "csv": "batchSize", "table": "fused-m4r"} {
		if out := command(t, "bin/assay", "results", name, "-n", namespace, "-o", form); !strings.Contains(out, want) {
			t.Errorf("assay results -o %s does not mention %q:\n%s", form, want, out)
		}
	}
	table := command(t, "kubectl", "get", "benchmarkruns", "-n", namespace, name)
	for _, want := range []string{"VERDICT", "PROGRESS", "GAIN", string(run.Status.Verdict), "Succeeded"} {
		if !strings.Contains(table, want) {
			t.Errorf("kubectl get benchmarkruns does not show %q:\n%s", want, table)
		}
	}
}

func checkBlockPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if pod.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("block pod %s has QoS class %s: without Guaranteed its CPU is not its own", pod.Name, pod.Status.QOSClass)
	}
	for _, container := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		security := container.SecurityContext
		if security == nil || security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation {
			t.Errorf("container %s of %s may escalate its privileges", container.Name, pod.Name)
		}
		if container.Name != "main" {
			continue
		}
		for _, variable := range container.Env {
			if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
				t.Errorf("the workload container gets Secret %s in %s", variable.ValueFrom.SecretKeyRef.Name, variable.Name)
			}
		}
		for _, mount := range container.VolumeMounts {
			for _, volume := range pod.Spec.Volumes {
				if volume.Name == mount.Name && volume.Secret != nil {
					t.Errorf("the workload container mounts Secret %s", volume.Secret.SecretName)
				}
			}
		}
	}
}
