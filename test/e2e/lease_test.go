package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

const leaseTaint = "assay.dev/leased"

// Two runs want the one node at once, and the operator is killed meanwhile: they run one after the other, each under a separate
// token. The run with an exclusive node has it tainted as long as it holds it.
func TestLease_TwoRunsAlternateOnANode(t *testing.T) {
	long(t)
	names := []string{"turn-a", "turn-b"}
	for _, name := range names {
		run := smallScan(name, 3)
		run.Spec.Sweep.Axes[0].Values = []string{"8"}
		run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode
		// How quiet the machine is, is not the question here.
		run.Spec.Environment = &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationWarn}
		apply(t, run)
	}
	first, second := names[0], names[1]
	eventually(t, time.Minute, "one run holds the node and the other waits and says for whom", func() (bool, string) {
		if len(getRun(t, first).Status.Leases) == 0 {
			first, second = second, first
		}
		holder, waiter := getRun(t, first), getRun(t, second)
		return len(holder.Status.Leases) == 1 && len(waiter.Status.Leases) == 0 &&
			waits(waiter, "leased by "+namespace+"/"+first), conditions(holder) + " | " + conditions(waiter)
	})
	if found := taintsOf(t); len(found) != 1 || found[0] != string(getRun(t, first).UID) {
		t.Errorf("nodes are tainted for runs %v, want %s", found, getRun(t, first).UID)
	}
	kill(t, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "operator"})

	untilComplete(t, first, 2*time.Minute)
	untilComplete(t, second, 2*time.Minute)
	eventually(t, 30*time.Second, "no node is leased or tainted any more", func() (bool, string) {
		taints, leases := taintsOf(t), getRun(t, second).Status.Leases
		return len(taints) == 0 && len(leases) == 0, fmt.Sprint(taints, leases)
	})

	end, endToken := span(t, first, false)
	begin, beginToken := span(t, second, true)
	if !begin.After(end) {
		t.Errorf("%s began to measure at %s, before %s ended at %s", second, begin, first, end)
	}
	if beginToken != endToken+1 {
		t.Errorf("%s ran under token %d and %s under %d, want one more", first, endToken, second, beginToken)
	}
	for _, name := range names {
		analysis := results(t, name)
		if planned, used := number(t, analysis, "trials", "planned"), number(t, analysis, "trials", "used"); used != planned {
			t.Errorf("%s: %d of %d trials are in the figures, excluded: %v", name, used, planned, analysis["excluded"])
		}
	}
}

func waits(run *assayv1alpha1.BenchmarkRun, text string) bool {
	for _, c := range run.Status.Conditions {
		if c.Type == assayv1alpha1.ConditionProgressing && c.Reason == assayv1alpha1.ReasonWaitingForLease {
			return strings.Contains(c.Message, text)
		}
	}
	return false
}

// taintsOf are the runs that nodes are tainted for.
func taintsOf(t *testing.T) []string {
	t.Helper()
	var nodes corev1.NodeList
	if err := kube.List(context.Background(), &nodes); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, node := range nodes.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key == leaseTaint {
				out = append(out, taint.Value)
			}
		}
	}
	return out
}

// span is when a run's attempts began or ended, and the token that all of them carry.
func span(t *testing.T, name string, begin bool) (time.Time, int) {
	t.Helper()
	var at time.Time
	token := 0
	for _, attempt := range attempts(t, name) {
		text, _ := attempt["startedAt"].(string)
		started, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatalf("attempt of %s: startedAt %q: %v", name, text, err)
		}
		seconds, _ := attempt["durationSeconds"].(float64)
		ended := started.Add(time.Duration(seconds * float64(time.Second)))
		switch {
		case begin && (at.IsZero() || started.Before(at)):
			at = started
		case !begin && ended.After(at):
			at = ended
		}
		if found := number(t, attempt, "lease", "token"); token != 0 && found != token {
			t.Errorf("attempts of %s carry tokens %d and %d", name, token, found)
		} else {
			token = found
		}
	}
	if token == 0 {
		t.Fatalf("%s left no attempt under a lease", name)
	}
	return at, token
}
