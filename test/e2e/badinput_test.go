package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// ending is a row of the table of outcomes (docs/concepts.md).
type ending struct {
	phase   assayv1alpha1.Phase
	reason  string
	verdict assayv1alpha1.Verdict
}

var broken = ending{assayv1alpha1.PhaseFailed, assayv1alpha1.ReasonSetupBroken, assayv1alpha1.VerdictInvalid}

// A workload fails in different ways, in both arms, in the baseline or in the candidate: the run ends with the phase, the reason and the
// verdict of the table of outcomes, and records every attempt.
func TestBadInput_MisbehavingWorkloads(t *testing.T) {
	long(t)
	command := func(words ...string) func(*assayv1alpha1.BenchmarkRun) {
		return func(run *assayv1alpha1.BenchmarkRun) {
			run.Spec.Template.Command, run.Spec.Template.Parameters = words, nil
			run.Spec.Parameters, run.Spec.Sweep = nil, nil
			run.Spec.Arms[0].Parameters, run.Spec.Arms[1].Parameters = nil, nil
			run.Spec.Gates = run.Spec.Gates[1:]
		}
	}
	metric := func(edit func(*assayv1alpha1.Metric)) func(*assayv1alpha1.BenchmarkRun) {
		return func(run *assayv1alpha1.BenchmarkRun) { edit(&run.Spec.Template.Metrics[0]) }
	}
	// strategy selects an invalid way to scan, which the program refuses.
	strategy := func(arms ...int) func(*assayv1alpha1.BenchmarkRun) {
		return func(run *assayv1alpha1.BenchmarkRun) {
			for _, arm := range arms {
				run.Spec.Arms[arm].Parameters["strategy"] = "none"
			}
		}
	}
	noGo := ending{assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached, assayv1alpha1.VerdictNoGo}
	cases := map[string]struct {
		name string
		edit func(*assayv1alpha1.BenchmarkRun)
		// outcome is that of every attempt; empty if the arms differ.
		outcome string
		want    ending
	}{
		"hangs past its timeout": {
			"hangs", func(run *assayv1alpha1.BenchmarkRun) {
				run.Spec.Parameters["iterations"], run.Spec.Parameters["rows"] = "100000", "262144"
				run.Spec.Arms[1].Parameters["strategy"] = "fused-naive"
				run.Spec.Sweep.Axes[0].Values = []string{"8"}
				run.Spec.Template.TrialTimeout = metav1.Duration{Duration: time.Second}
			},
			"TimedOut", ending{assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonTooFewTrials, assayv1alpha1.VerdictInvalid},
		},
		"prints something else than a result": {"malformed", command("/scan-pir", "--help"), "Malformed", broken},
		"a program that is missing":           {"missing", command("/no/such/program"), "Failed", broken},
		"a folder in place of a program":      {"folder", command("/tmp"), "Failed", broken},
		"an option that it does not have":     {"option", command("/scan-pir", "--no-such-option"), "Failed", broken},
		"a metric that it does not report": {"metric", func(run *assayv1alpha1.BenchmarkRun) {
			run.Spec.Template.Metrics = append(run.Spec.Template.Metrics, assayv1alpha1.Metric{
				Name: "other", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, Statistic: assayv1alpha1.StatisticMedian,
			})
		}, "Succeeded", broken},
		"a unit that it does not report": {"unit", metric(func(m *assayv1alpha1.Metric) { m.Unit = "rows" }), "Succeeded", broken},
		"a file that it does not write": {"file", func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Template.Output.Path = "other.json" },
			"Malformed", broken},
		"both arms refuse their strategy":    {"both", strategy(0, 1), "Failed", broken},
		"the baseline refuses its strategy":  {"baseline", strategy(0), "", broken},
		"the candidate refuses its strategy": {"candidate", strategy(1), "", noGo},
		"disagrees in parity": {
			"disagrees", func(run *assayv1alpha1.BenchmarkRun) {
				run.Spec.Template.Parameters = append(run.Spec.Template.Parameters, assayv1alpha1.Parameter{Name: "seed", Default: ptr.To("1")})
				run.Spec.Arms[1].Parameters["seed"] = "2"
			},
			"Succeeded", noGo,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := inline(smallScan("misbehaves-"+tc.name, 3), func(*assayv1alpha1.BenchmarkTemplateSpec) {})
			run.Spec.Gates[0].At = nil
			tc.edit(run)
			keepsEveryAttempt(t, run, tc.outcome, tc.want)
		})
	}
}

// keepsEveryAttempt measures a run of three blocks, all of whose trials have the outcome, if one is given. A failure that a repetition does
// not change ends with the block in which it was found.
func keepsEveryAttempt(t *testing.T, run *assayv1alpha1.BenchmarkRun, result string, want ending) []map[string]any {
	t.Helper()
	apply(t, run)
	ended := untilEnded(t, run.Name, 4*time.Minute)
	kind := assayv1alpha1.ConditionComplete
	if want.phase == assayv1alpha1.PhaseFailed {
		kind = assayv1alpha1.ConditionFailed
	}
	last := meta.FindStatusCondition(ended.Status.Conditions, kind)
	if last == nil || (ending{ended.Status.Phase, last.Reason, ended.Status.Verdict}) != want {
		t.Errorf("phase %s, verdict %q, want %+v: %s", ended.Status.Phase, ended.Status.Verdict, want, conditions(ended))
	}
	found := attempts(t, run.Name)
	least := ended.Status.Trials.Planned
	if result != "TimedOut" && result != "Succeeded" {
		least /= 3
	}
	if got := int32(len(found)); got < least || got > ended.Status.Trials.Planned {
		t.Errorf("%d attempts in the ledger, want at least %d of %d planned", got, least, ended.Status.Trials.Planned)
	}
	for _, attempt := range found {
		if result != "" && attempt["outcome"] != result {
			t.Fatalf("attempt %s is %s, want %s: %s", attempt["id"], attempt["outcome"], result, attempt["message"])
		}
	}
	if result != "" && result != "Succeeded" && int(ended.Status.Trials.Failed) != len(found) {
		t.Errorf("status counts %d failed trials of %d", ended.Status.Trials.Failed, len(found))
	}
	return found
}

// A parameter value with any content arrives unchanged, byte for byte, through Argo and all other parts.
func TestBadInput_ParameterValueArrivesVerbatim(t *testing.T) {
	hostile := "{{workflow.name}} {{=1+1}} \"double\" 'single'\nsecond line; $(touch /tmp/x) `id` $(rows) \\n %s &|<> \u00e9"
	// The program knows the flag, refuses the value and exits non-zero, quoting it, which proves its content.
	run := inline(smallScan("verbatim", 3), func(tpl *assayv1alpha1.BenchmarkTemplateSpec) {
		tpl.Parameters = append(tpl.Parameters, assayv1alpha1.Parameter{Name: "path"})
	})
	run.Spec.Parameters["path"] = hostile
	for _, attempt := range keepsEveryAttempt(t, run, "Failed", broken) {
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
func TestBadInput_UnpullableImageIsNamed(t *testing.T) {
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
func TestBadInput_RunWaitsForItsLedger(t *testing.T) {
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
