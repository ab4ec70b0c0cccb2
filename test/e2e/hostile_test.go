package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// hostileRun compares a program with one that reports twenty times its duration and attacks the runner.
func hostileRun(name, attack string) *assayv1alpha1.BenchmarkRun {
	return &assayv1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: assayv1alpha1.BenchmarkRunSpec{
			Template: &assayv1alpha1.BenchmarkTemplateSpec{
				Image: "assay.dev/assay-attack:0.1.0", Parity: assayv1alpha1.ParityNone,
				Command:    []string{"/assay-hostile", "--socket=/assay-keeper/socket", "--attempts=/assay", "--program=/spin-kernel"},
				Parameters: []assayv1alpha1.Parameter{{Name: "value"}, {Name: "attack", Default: ptr.To("none")}},
				Metrics:    []assayv1alpha1.Metric{{Name: "latency", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, Statistic: assayv1alpha1.StatisticValue}},
			},
			Arms: []assayv1alpha1.Arm{
				{Name: "victim", Baseline: true, Parameters: values{"value": "0.00123"}},
				{Name: "hostile", Parameters: values{"value": "0.0257", "attack": attack}},
			},
			Environment: &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationWarn},
			Design:      assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 3, Max: 3}},
			Gates:       []assayv1alpha1.Gate{{Name: "not-slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}},
		},
	}
}

// A candidate that attacks the runner, the keeper, the attempts and the programs of the pod changes nothing: the verdict is
// the true one, and every attack says that it was refused.
func TestHostile_CandidateChangesNoResult(t *testing.T) {
	run := hostileRun("hostile", "all")
	apply(t, run)
	done := untilComplete(t, run.Name, 4*time.Minute)
	if done.Status.Verdict != assayv1alpha1.VerdictNoGo {
		t.Errorf("verdict %s, and the candidate is twenty times as slow: %s", done.Status.Verdict, conditions(done))
	}
	all := attempts(t, run.Name)
	if planned := number(t, results(t, run.Name), "trials", "planned"); len(all) != planned {
		t.Errorf("%d attempts of %d trials", len(all), planned)
	}
	for _, attempt := range all {
		want := 0.00123
		if attempt["arm"] == "hostile" {
			want = 0.0257
			said, _ := attempt["stderrTail"].(string)
			if !strings.Contains(said, "refused") {
				t.Errorf("attempt %v does not report the results of its attacks: %q", attempt["id"], said)
			}
			for line := range strings.Lines(said) {
				// That a daemon can be started is no harm: it does not outlive its trial.
				if strings.Contains(line, ": got ") && !strings.HasPrefix(line, "daemon:") {
					t.Errorf("attempt %v: %s", attempt["id"], line)
				}
			}
			if left, _ := attempt["leftBehind"].(float64); left < 1 {
				t.Errorf("attempt %v left %v processes behind, and started one daemon", attempt["id"], left)
			}
		}
		result, _ := attempt["result"].(map[string]any)
		metrics, _ := result["metrics"].(map[string]any)
		latency, _ := metrics["latency"].(map[string]any)
		if attempt["outcome"] != "Succeeded" || latency["value"] != want {
			t.Errorf("attempt %v of arm %v is %v with %v, want %v: %v", attempt["id"], attempt["arm"], attempt["outcome"], latency, want,
				attempt["message"])
		}
	}
}

// A candidate that writes as much as it can, and prints a result, fails at the limit of its storage. The other one cannot write anywhere
// else.
func TestHostile_CandidateThatFillsItsStorageFails(t *testing.T) {
	run := hostileRun("hostile-storage", "storage")
	run.Spec.Arms[0].Parameters["attack"] = "elsewhere"
	apply(t, run)
	untilComplete(t, run.Name, 4*time.Minute)
	for _, attempt := range attempts(t, run.Name) {
		message, _ := attempt["message"].(string)
		said, _ := attempt["stderrTail"].(string)
		switch {
		case attempt["arm"] == "hostile" &&
			(attempt["outcome"] != "Failed" || !strings.Contains(message, "reached its limit of 512 MiB in /tmp")):
			t.Errorf("attempt %v filled its storage and is %v: %s", attempt["id"], attempt["outcome"], message)
		case attempt["arm"] == "victim" && (attempt["outcome"] != "Succeeded" || !strings.Contains(said, "elsewhere: refused")):
			t.Errorf("attempt %v is %v, and its program reports %q", attempt["id"], attempt["outcome"], said)
		}
	}
}

// A candidate that ends the runner in the middle of its trials loses those trials, and its baseline none.
func TestHostile_CandidateThatEndsItsBlockFails(t *testing.T) {
	long(t)
	run := hostileRun("hostile-stop", "stop")
	run.Spec.Retry.Limit = ptr.To[int32](1)
	apply(t, run)
	done := untilComplete(t, run.Name, 6*time.Minute)
	if done.Status.Verdict == assayv1alpha1.VerdictGo {
		t.Errorf("verdict Go: %s", conditions(done))
	}
	var ended int
	for _, attempt := range attempts(t, run.Name) {
		if attempt["endedExecution"] != true {
			continue
		}
		if ended++; attempt["arm"] != "hostile" || attempt["outcome"] != "Failed" {
			t.Errorf("attempt %v of arm %v is %v: %v", attempt["id"], attempt["arm"], attempt["outcome"], attempt["message"])
		}
	}
	if ended == 0 {
		t.Error("no attempt says that it ended its block")
	}
}
