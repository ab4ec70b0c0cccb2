package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// A workload fails in different ways: the run ends, reports it, and records every attempt.
func TestWorkloadsThatMisbehave(t *testing.T) {
	long(t)
	cases := map[string]struct {
		name    string
		edit    func(*assayv1alpha1.BenchmarkRun)
		outcome string
		verdict assayv1alpha1.Verdict
	}{
		"hangs past its timeout": {
			"hangs", func(run *assayv1alpha1.BenchmarkRun) {
				run.Spec.Parameters["iterations"], run.Spec.Parameters["rows"] = "100000", "262144"
				run.Spec.Arms[1].Parameters["strategy"] = "fused-naive"
				run.Spec.Sweep.Axes[0].Values = []string{"8"}
				run.Spec.Template.TrialTimeout = metav1.Duration{Duration: time.Second}
			},
			"TimedOut", assayv1alpha1.VerdictNoGo,
		},
		"prints something else than a result": {
			"malformed", func(run *assayv1alpha1.BenchmarkRun) {
				run.Spec.Template.Command, run.Spec.Template.Parameters = []string{"/scan-pir", "--help"}, nil
				run.Spec.Parameters, run.Spec.Sweep = nil, nil
				run.Spec.Arms[0].Parameters, run.Spec.Arms[1].Parameters = nil, nil
				run.Spec.Gates = run.Spec.Gates[1:]
			},
			"Malformed", assayv1alpha1.VerdictNoGo,
		},
		"disagrees in parity": {
			"disagrees", func(run *assayv1alpha1.BenchmarkRun) {
				run.Spec.Template.Parameters = append(run.Spec.Template.Parameters, assayv1alpha1.Parameter{Name: "seed", Default: ptr.To("1")})
				run.Spec.Arms[1].Parameters["seed"] = "2"
			},
			"Succeeded", assayv1alpha1.VerdictNoGo,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := inline(smallScan("misbehaves-"+tc.name, 3), func(*assayv1alpha1.BenchmarkTemplateSpec) {})
			run.Spec.Gates[0].At = nil
			tc.edit(run)
			keepsEveryAttempt(t, run, tc.outcome, tc.verdict)
		})
	}
}

// keepsEveryAttempt measures a run, all of whose trials have the outcome.
func keepsEveryAttempt(t *testing.T, run *assayv1alpha1.BenchmarkRun, outcome string, verdict assayv1alpha1.Verdict) []map[string]any {
	t.Helper()
	apply(t, run)
	ended := untilComplete(t, run.Name, 4*time.Minute)
	if ended.Status.Verdict != verdict {
		t.Errorf("verdict %q, want %s: %s", ended.Status.Verdict, verdict, conditions(ended))
	}
	found := attempts(t, run.Name)
	if int32(len(found)) != ended.Status.Trials.Planned {
		t.Errorf("%d attempts in the ledger, %d planned", len(found), ended.Status.Trials.Planned)
	}
	for _, attempt := range found {
		if attempt["outcome"] != outcome {
			t.Fatalf("attempt %s is %s, want %s: %s", attempt["id"], attempt["outcome"], outcome, attempt["message"])
		}
	}
	if outcome != "Succeeded" && ended.Status.Trials.Failed != ended.Status.Trials.Planned {
		t.Errorf("status counts %d failed trials of %d", ended.Status.Trials.Failed, ended.Status.Trials.Planned)
	}
	return found
}

// A parameter value with any content arrives unchanged, byte for byte, through Argo and all other parts.
func TestAParameterValueArrivesVerbatim(t *testing.T) {
	hostile := "{{workflow.name}} {{=1+1}} \"double\" 'single'\nsecond line; $(touch /tmp/x) `id` $(rows) \\n %s &|<> \u00e9"
	// The program knows the flag, refuses the value and exits non-zero, quoting it, which proves its content.
	run := inline(smallScan("verbatim", 3), func(tpl *assayv1alpha1.BenchmarkTemplateSpec) {
		tpl.Parameters = append(tpl.Parameters, assayv1alpha1.Parameter{Name: "path"})
	})
	run.Spec.Parameters["path"] = hostile
	for _, attempt := range keepsEveryAttempt(t, run, "Failed", assayv1alpha1.VerdictNoGo) {
		argv, _ := attempt["argv"].([]any)
		if !slices.Contains(argv, any("--path="+hostile)) {
			t.Fatalf("argv is %q, want an element --path=%q", argv, hostile)
		}
		for _, part := range []string{"{{workflow.name}}", "{{=1+1}}", "$(touch /tmp/x)", "$(rows)", "second line"} {
			if stderr, _ := attempt["stderrTail"].(string); !strings.Contains(stderr, part) {
				t.Fatalf("the program did not see %q; it says: %s", part, stderr)
			}
		}
	}
}

// Other runs that cannot start have their tests on an API server without pods: operator/test/integration.
func TestAnImageThatCannotBePulledIsNamed(t *testing.T) {
	const image = "localhost:1/no/such:image"
	run := inline(smallScan("no-image", 3), func(tpl *assayv1alpha1.BenchmarkTemplateSpec) { tpl.Image = image })
	apply(t, run)
	for _, text := range []string{assayv1alpha1.ReasonImageNotPulled, image} {
		untilCondition(t, run.Name, assayv1alpha1.ConditionProgressing, "False", text, 3*time.Minute)
	}
}

func with(run *assayv1alpha1.BenchmarkRun, edit func(*assayv1alpha1.BenchmarkRun)) *assayv1alpha1.BenchmarkRun {
	edit(run)
	return run
}

// MinIO is unavailable, then empty, then restored: the run waits, reports each fault, and completes.
func TestARunWaitsForItsLedger(t *testing.T) {
	long(t)
	const name = "patient"
	command(t, "kubectl", "-n", system, "scale", "sts/assay-minio", "--replicas=0")
	command(t, "kubectl", "-n", system, "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=minio", "--timeout=120s")
	t.Cleanup(func() { restoreLedger(t) })
	apply(t, smallScan(name, 3))
	untilCondition(t, name, assayv1alpha1.ConditionLedgerReady, "False", "LedgerUnreachable", 3*time.Minute)

	// Without persistence MinIO comes back empty, without the operator's user even.
	command(t, "kubectl", "-n", system, "scale", "sts/assay-minio", "--replicas=1")
	untilCondition(t, name, assayv1alpha1.ConditionLedgerReady, "False", assayv1alpha1.ReasonLedgerCredentials, 3*time.Minute)

	restoreLedger(t)
	run := untilComplete(t, name, 5*time.Minute)
	if run.Status.Verdict != assayv1alpha1.VerdictGo {
		t.Errorf("verdict %s, want Go", run.Status.Verdict)
	}
}

func restoreLedger(t *testing.T) {
	t.Helper()
	command(t, "kubectl", "-n", system, "rollout", "status", "sts/assay-minio", "--timeout=120s")
	// The chart's hook creates the bucket and the users; an upgrade runs it again.
	command(t, "helm", "upgrade", "assay", "charts/assay", "-n", system, "--reuse-values", "--wait", "--timeout", "3m")
}
