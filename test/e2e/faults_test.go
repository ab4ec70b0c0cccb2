package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// The operator, the Argo controller and a block pod are killed in the middle of a run: it completes, and no attempt is lost
// or counted twice.
func TestFaults_RunSurvivesKills(t *testing.T) {
	const name = "survivor"
	run := smallScan(name, 4)
	// Blocks of some ten seconds, so that each kill meets one half-way.
	run.Spec.Parameters = values{"rows": "65536", "iterations": "40", "warmupIterations": "1"}
	apply(t, run)

	killRunningBlock(t, name)
	kill(t, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "operator"})
	untilTrials(t, name, 1)
	kill(t, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "argo-controller"})

	done := untilComplete(t, name, 6*time.Minute)
	if done.Status.Verdict != assayv1alpha1.VerdictGo {
		t.Errorf("verdict %s, want Go: %s", done.Status.Verdict, conditions(done))
	}
	analysis := results(t, name)
	if planned, used := number(t, analysis, "trials", "planned"), number(t, analysis, "trials", "used"); used != planned {
		t.Errorf("%d of %d trials are in the figures", used, planned)
	}
	// Nothing lost: every trial has an attempt, counted here from the objects themselves. Nothing twice: of a block that ran
	// again only one execution is in the figures.
	trials := map[any]bool{}
	found := attempts(t, name)
	for _, attempt := range found {
		trials[attempt["trial"]] = true
	}
	if planned := number(t, analysis, "trials", "planned"); len(trials) != planned {
		t.Errorf("the ledger has attempts at %d trials of %d", len(trials), planned)
	}
	excluded, _ := analysis["excluded"].([]any)
	if used := number(t, analysis, "trials", "used"); used+len(excluded) != len(found) {
		t.Errorf("%d attempts in the ledger, %d used and %d excluded: they must add up", len(found), used, len(excluded))
	}
}

func killRunningBlock(t *testing.T, name string) {
	t.Helper()
	eventually(t, 3*time.Minute, "a block of "+name+" runs its trials", func() (bool, string) {
		for _, pod := range podsOf(t, name) {
			if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || pod.Labels["assay.dev/part"] != "block" {
				continue
			}
			if err := kube.Delete(context.Background(), &pod, &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err == nil {
				t.Logf("killed block pod %s", pod.Name)
				return true, ""
			}
		}
		return false, conditions(getRun(t, name))
	})
}

// kill deletes pods at once and waits until others of the same labels are ready.
func kill(t *testing.T, options ...client.ListOption) {
	t.Helper()
	var before corev1.PodList
	if err := kube.List(context.Background(), &before, options...); err != nil || len(before.Items) == 0 {
		t.Fatalf("no pod to kill with %v: %v", options, err)
	}
	old := map[string]bool{}
	for i := range before.Items {
		old[before.Items[i].Name] = true
		if err := kube.Delete(context.Background(), &before.Items[i], &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatal(err)
		}
		t.Logf("killed pod %s", before.Items[i].Name)
	}
	eventually(t, 2*time.Minute, "a new pod is ready", func() (bool, string) {
		var now corev1.PodList
		if err := kube.List(context.Background(), &now, options...); err != nil {
			return false, err.Error()
		}
		for _, pod := range now.Items {
			for _, c := range pod.Status.Conditions {
				if !old[pod.Name] && c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					return true, ""
				}
			}
		}
		return false, "no new pod ready"
	})
}

func untilTrials(t *testing.T, name string, least int32) {
	t.Helper()
	eventually(t, 3*time.Minute, "the ledger has attempts", func() (bool, string) {
		run := getRun(t, name)
		return run.Status.Trials.Done >= least, conditions(run)
	})
}

func TestFaults_SuspendHoldsBlocksAndCancelRetainsAttempts(t *testing.T) {
	long(t)
	const name = "held"
	apply(t, smallScan(name, 4))
	untilTrials(t, name, 1)

	patch(t, name, func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Suspend = ptr.To(true) })
	untilCondition(t, name, assayv1alpha1.ConditionSuspended, "True", "", time.Minute)
	eventually(t, podsEnd, "no block runs while suspended", func() (bool, string) {
		for _, pod := range podsOf(t, name) {
			if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending {
				return false, pod.Name
			}
		}
		return true, ""
	})
	held := getRun(t, name)
	if held.Status.Trials.Done >= held.Status.Trials.Planned {
		t.Fatalf("the run was over before it could be suspended: %s", conditions(held))
	}

	patch(t, name, func(run *assayv1alpha1.BenchmarkRun) {
		run.Spec.Suspend = ptr.To(false)
		run.Spec.Cancel = ptr.To(true)
	})
	eventually(t, podsEnd+time.Minute, "the cancelled run has ended with an analysis", func() (bool, string) {
		run := getRun(t, name)
		return run.Status.Phase == assayv1alpha1.PhaseCancelled && run.Status.CompletionTime != nil, conditions(run)
	})
	analysis := results(t, name)
	if used, missing := number(t, analysis, "trials", "used"), number(t, analysis, "trials", "missing"); used == 0 || missing == 0 {
		t.Errorf("used %d, missing %d: a cancelled run must keep its measurements and report missing trials", used, missing)
	}
}

func patch(t *testing.T, name string, edit func(*assayv1alpha1.BenchmarkRun)) {
	t.Helper()
	run := getRun(t, name)
	before := run.DeepCopy()
	edit(run)
	if err := kube.Patch(context.Background(), run, client.MergeFrom(before)); err != nil {
		t.Fatalf("patch BenchmarkRun %s: %v", name, err)
	}
}

func TestFaults_DeletedRunLeavesNoPod(t *testing.T) {
	const name = "gone"
	apply(t, smallScan(name, 6))
	eventually(t, 3*time.Minute, "a block pod exists", func() (bool, string) {
		return len(podsOf(t, name)) > 0, conditions(getRun(t, name))
	})
	remove(t, name)
	eventually(t, time.Minute, "its pods are gone", func() (bool, string) {
		pods := podsOf(t, name)
		return len(pods) == 0, ""
	})
}

// A few faults of the fault suite, by its seed. Its output lists the injected faults and the failures.
func TestFaults_FewFaultsLoseNoTrial(t *testing.T) {
	long(t)
	t.Setenv("CHAOS_CLUSTER", "running")
	t.Log(command(t, "hack/chaos.sh", "smoke"))
}
