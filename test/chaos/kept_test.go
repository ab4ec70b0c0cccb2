package main

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func aRun(name string, ended bool) assayv1alpha1.BenchmarkRun {
	run := assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	run.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "WaveRunning", Message: "it runs"}}
	if ended {
		run.Status.Conditions = []metav1.Condition{{Type: assayv1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
	}
	return run
}

func TestRetained_ResourcesOfEndedRuns(t *testing.T) {
	pod := func(phase corev1.PodPhase) cluster {
		of := metav1.ObjectMeta{Name: "block", Labels: map[string]string{"assay.dev/run-uid": "uid-of-first"}}
		return cluster{pods: []corev1.Pod{{ObjectMeta: of, Status: corev1.PodStatus{Phase: phase}}}}
	}
	lease := cluster{leases: []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("default/first/uid-of-first")}}}}
	taint := cluster{nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "assay.dev/leased", Value: "uid-of-first"}}}}}}
	for name, tc := range map[string]struct {
		there cluster
		ended bool
		says  string
	}{
		"a lease of a run that has ended":    {lease, true, "Lease node-1 is held by first"},
		"a lease of a run that goes on":      {lease, false, ""},
		"a taint of a run that has ended":    {taint, true, "Node node-1 has the taint assay.dev/leased of first"},
		"a taint of a run that goes on":      {taint, false, ""},
		"a pod of a run that has ended":      {pod(corev1.PodRunning), true, "Pod block is Running and of first"},
		"a pod that waits for a node":        {pod(corev1.PodPending), true, "Pod block is Pending and of first"},
		"a pod that has ended":               {pod(corev1.PodFailed), true, ""},
		"a pod of a run that goes on":        {pod(corev1.PodRunning), false, ""},
		"a lease without a holder":           {cluster{leases: []coordinationv1.Lease{{}}}, true, ""},
		"a lease of a run outside the suite": {cluster{leases: []coordinationv1.Lease{{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a/b/c")}}}}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.there.runs = []assayv1alpha1.BenchmarkRun{aRun("first", tc.ended)}
			kept := strings.Join(tc.there.kept(), "\n")
			if (kept == "") != (tc.says == "") || !strings.Contains(kept, tc.says) {
				t.Errorf("kept %q, want %q", kept, tc.says)
			}
		})
	}
}

func TestRetained_UnendedRunReportsItsPhase(t *testing.T) {
	there := cluster{runs: []assayv1alpha1.BenchmarkRun{aRun("first", true), aRun("second", false)}}
	going := there.going()
	if len(going) != 1 || !strings.HasPrefix(going[0], "second is ") || !strings.Contains(going[0], "Progressing=True WaveRunning: it runs") {
		t.Errorf("%q", going)
	}
}

func TestSuite_ShortFormOmitsLongAndStoreFaults(t *testing.T) {
	long := func(kinds []Kind) (names []string) {
		for _, kind := range kinds {
			if kind.Long || kind.OwnStore {
				names = append(names, kind.Name)
			}
		}
		return names
	}
	all, err := chosen("", false)
	if err != nil || len(all) != len(makes) {
		t.Errorf("%d kinds of %d (%v)", len(all), len(makes), err)
	}
	short, err := chosen("", true)
	if err != nil || len(long(short)) > 0 || len(short)+len(long(all)) != len(all) {
		t.Errorf("short has %v, and %d kinds of %d (%v)", long(short), len(short), len(all), err)
	}
	if named, err := chosen("store-full,node-rebooted", true); err != nil || len(named) != 2 {
		t.Errorf("kinds that are named: %v (%v)", named, err)
	}
	if _, err := chosen("earthquake", true); err == nil || !strings.Contains(err.Error(), "node-rebooted") {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestSchedule_NodeOutagesAreShorterAndLongerThanGrace(t *testing.T) {
	within, beyond := false, false
	for _, made := range makes {
		if !strings.HasPrefix(made.Name, "node-") || made.Name == "node-rebooted" {
			continue
		}
		within = within || made.Least > monitorGrace && made.Most < monitorGrace+nodeGrace
		beyond = beyond || made.Least > monitorGrace+nodeGrace
	}
	if !within || !beyond {
		t.Errorf("within the grace %v, beyond it %v", within, beyond)
	}
}

func TestLeader_IsTheHolderOfTheLease(t *testing.T) {
	acquired := metav1.NewMicroTime(time.Date(2026, 11, 26, 8, 0, 0, 500, time.UTC))
	pod := func(name string, began time.Duration) corev1.Pod {
		running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(acquired.Add(began))}
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: running}}},
		}}
	}
	pods := []corev1.Pod{pod("assay-operator-a", -time.Minute), pod("assay-operator-ab", -time.Minute), pod("assay-operator-c", time.Second)}
	ends := pod("assay-operator-d", -time.Minute)
	ends.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	pods = append(pods, ends)
	for name, tc := range map[string]struct {
		holder     *string
		pod, fails string
	}{
		"the first of two":              {ptr.To("assay-operator-a_5a0c"), "assay-operator-a", ""},
		"one with a longer name":        {ptr.To("assay-operator-ab_5a0c"), "assay-operator-ab", ""},
		"one that is gone":              {ptr.To("assay-operator-x_5a0c"), "", "assay-operator-x_5a0c is not one of 4 pods"},
		"one whose process began later": {ptr.To("assay-operator-c_5a0c"), "", "that led is gone"},
		"one whose process has ended":   {ptr.To("assay-operator-d_5a0c"), "", "that led is gone"},
		"no holder at the moment":       {ptr.To(""), "", "no leader"},
		"no holder, since there is no":  {nil, "", "no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := leaderOf(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: tc.holder, AcquireTime: &acquired}}, pods)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%v, want %q", err, tc.fails)
				}
				return
			}
			if err != nil || got.Name != tc.pod {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// Only existing faults explain a failed run.
func TestExplanations_NameExistingFaults(t *testing.T) {
	for reason, excuse := range explained {
		for _, name := range excuse.by {
			if _, err := chosen(name, false); err != nil {
				t.Errorf("%s: %v", reason, err)
			}
		}
	}
}
