package observe

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func pod(name string, phase corev1.PodPhase, edit ...func(*corev1.Pod)) corev1.Pod {
	out := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon)},
		Status: corev1.PodStatus{Phase: phase}}
	for _, e := range edit {
		e(&out)
	}
	return out
}

func waitingFor(image, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Image: image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "attempt 17 at 12:00:01"}},
		})
	}
}

func scheduledAt(status corev1.ConditionStatus, when time.Time, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(when),
		})
	}
}

// initialized is a pod of a workflow with one container that ended, and its sandbox since then or not.
func initialized(sandbox corev1.ConditionStatus, when time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Workflow", Name: "scan-w000", Controller: ptr.To(true)}}
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: ended}, {}}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReadyToStartContainers, Status: sandbox, LastTransitionTime: metav1.NewTime(when),
		})
	}
}

// ended adds a terminated container with a message.
func ended(name, words string, at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		status := corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Message: words, FinishedAt: metav1.NewTime(at)},
		}}
		if name == executor.KeeperContainer {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, status)
		} else {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
		}
	}
}

func TestPods(t *testing.T) {
	later := noon.Add(time.Minute)
	cases := map[string]struct {
		pods []corev1.Pod
		want plan.PodState
	}{
		"no pods": {nil, plan.PodState{}},
		"pods that ended do not count": {
			[]corev1.Pod{pod("a", corev1.PodSucceeded), pod("b", corev1.PodFailed), pod("c", corev1.PodRunning)}, plan.PodState{Alive: 1},
		},
		"the message of the newest failed pod is used": {
			[]corev1.Pod{
				pod("a", corev1.PodFailed, ended("keeper", "SecretKeyWrong", later)), pod("b", corev1.PodFailed, ended("keeper", "older", noon)),
				pod("c", corev1.PodSucceeded, ended("keeper", "it ended well", later.Add(time.Minute))),
			}, plan.PodState{TerminationMessage: "SecretKeyWrong"},
		},
		"the message of a trial is ignored": {[]corev1.Pod{pod("a", corev1.PodFailed, ended("main", "all is well", later))}, plan.PodState{}},
		"the message of an analysis is used": {
			[]corev1.Pod{pod("a", corev1.PodFailed, ended("main", "the store is away", later), func(p *corev1.Pod) {
				p.Labels = map[string]string{executor.PartLabel: executor.AnalysisPart}
			})}, plan.PodState{TerminationMessage: "the store is away"},
		},
		"an image that is being pulled is not a problem": {
			[]corev1.Pod{pod("a", corev1.PodPending, waitingFor("scan:1", "ContainerCreating"))}, plan.PodState{Alive: 1},
		},
		"the message of an image problem is constant": {
			[]corev1.Pod{pod("a", corev1.PodPending, waitingFor("scan:1", "ImagePullBackOff"), scheduledAt(corev1.ConditionTrue, later, "", ""))},
			plan.PodState{
				Alive:    1,
				Image:    &plan.ImageProblem{Image: "scan:1", Message: "it does not exist, its registry cannot be reached, or credentials are missing", Scheduled: later},
				Starting: &plan.StartingPod{Name: "a", Scheduled: later, Block: true},
			},
		},
		"an invalid image name": {
			[]corev1.Pod{pod("a", corev1.PodPending, waitingFor("scan:1:2", "InvalidImageName"))},
			plan.PodState{Alive: 1, Image: &plan.ImageProblem{Image: "scan:1:2", Message: "the name is not valid", Scheduled: noon}},
		},
		"the scheduler's message of the first pod by name is used": {
			[]corev1.Pod{
				pod("b", corev1.PodPending, scheduledAt(corev1.ConditionFalse, noon, corev1.PodReasonUnschedulable, "second")),
				pod("a", corev1.PodPending, scheduledAt(corev1.ConditionFalse, noon, corev1.PodReasonUnschedulable, "first")),
			},
			plan.PodState{Alive: 2, Unschedulable: "first"},
		},
		"a container that cannot start is quoted without identifiers": {
			[]corev1.Pod{pod("a", corev1.PodPending, waitingFor("scan:1", "CreateContainerConfigError"), func(p *corev1.Pod) {
				p.Spec.NodeName = "node-a"
				p.Status.ContainerStatuses[0].Name = "main"
				p.Status.ContainerStatuses[0].State.Waiting.Message = "name is reserved for \"0123456789abcdef\"\x1b"
			})},
			plan.PodState{Alive: 1,
				CannotStart: `pod a on node node-a cannot start its container main: CreateContainerConfigError: "name is reserved for \"…\"\x1b"`},
		},
		"an evicted pod is reported after its end": {
			[]corev1.Pod{pod("a", corev1.PodFailed, func(p *corev1.Pod) {
				p.Spec.NodeName, p.Status.Reason, p.Status.Message = "node-a", "Evicted", "low on memory"
			})},
			plan.PodState{Failed: `pod a on node node-a failed: Evicted: "low on memory"`},
		},
		"a container that the kernel killed is reported": {
			[]corev1.Pod{pod("a", corev1.PodRunning, ended("main", "", later), func(p *corev1.Pod) {
				p.Spec.NodeName = "node-a"
				p.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
			})},
			plan.PodState{Alive: 1,
				Failed: "container main of pod a on node node-a was killed for lack of memory (OOMKilled)"},
		},
		"a pod without its sandbox precedes one that still starts": {
			[]corev1.Pod{
				pod("a", corev1.PodPending, scheduledAt(corev1.ConditionTrue, noon, "", "")),
				pod("b", corev1.PodPending, scheduledAt(corev1.ConditionTrue, noon, "", ""), initialized(corev1.ConditionFalse, later)),
				pod("c", corev1.PodPending, scheduledAt(corev1.ConditionTrue, noon, "", ""), initialized(corev1.ConditionTrue, later)),
			},
			plan.PodState{Alive: 3, Starting: &plan.StartingPod{Name: "b", Execution: "scan-w000", Scheduled: noon, Lost: later, Block: true}},
		},
		"a pod with its sandbox is not lost": {
			[]corev1.Pod{pod("c", corev1.PodPending, scheduledAt(corev1.ConditionTrue, noon, "", ""), initialized(corev1.ConditionTrue, later))},
			plan.PodState{Alive: 1, Starting: &plan.StartingPod{Name: "c", Execution: "scan-w000", Scheduled: noon, Block: true}},
		},
		"a pod that is being deleted is alive and has no other problem": {
			[]corev1.Pod{pod("a", corev1.PodPending, waitingFor("scan:1", "ErrImagePull"),
				func(p *corev1.Pod) { p.DeletionTimestamp, p.Spec.NodeName = ptr.To(metav1.NewTime(noon)), "node-a" })},
			plan.PodState{Alive: 1, Ending: []plan.EndingPod{{Name: "a", Node: "node-a", By: noon, Block: true}}},
		},
		"a pod that is deleted before it is scheduled is ignored": {
			[]corev1.Pod{pod("a", corev1.PodPending, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) })},
			plan.PodState{},
		},
		"analyses have their nodes and workflows": {
			[]corev1.Pod{
				pod("a", corev1.PodRunning, func(p *corev1.Pod) {
					p.Spec.NodeName, p.Labels = "node-a", map[string]string{executor.PartLabel: executor.AnalysisPart}
				}, initialized(corev1.ConditionTrue, later)),
			},
			plan.PodState{Alive: 1, Analysing: []plan.AnalysisPod{{Node: "node-a", Execution: "scan-w000"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// TestPods_BlocksAreCountedByNode checks Blocks.
			got := podState(tc.pods)
			got.Blocks = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPods_BlocksAreCountedByNode(t *testing.T) {
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	analyses := func(p *corev1.Pod) { p.Labels = map[string]string{executor.PartLabel: executor.AnalysisPart} }
	got := podState([]corev1.Pod{
		pod("a", corev1.PodRunning, on("node-a")), pod("b", corev1.PodPending), pod("c", corev1.PodRunning, on("node-a")),
		pod("d", corev1.PodSucceeded, on("node-a")), pod("e", corev1.PodRunning, on("node-b"), analyses),
	}).Blocks
	if diff := cmp.Diff(map[string]int{"node-a": 2, "": 1}, got); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

// execution returns the execution of a run with a uid. Wave -1 is unknown.
func execution(name, uid string, wave int) executor.Execution {
	return executor.Execution{
		Execution: plan.Execution{Name: name}, Run: lease.Holder{Namespace: "lab", Name: "scan", UID: uid}, Wave: wave,
		Analysis: wave >= 0 && name != executor.Name("scan", wave),
	}
}

func TestExecutions(t *testing.T) {
	cases := map[string]struct {
		newest   int
		all      []executor.Execution
		wave     string
		analyses []string
		older    bool
	}{
		"none": {},
		"the newest wave's, and its repeated analyses": {
			newest: 1, all: []executor.Execution{execution("scan-w001-a1", "u", 1), execution("scan-w000", "u", 0), execution("scan-w001", "u", 1), execution("scan-w000-a1", "u", 0)},
			wave: "scan-w001", analyses: []string{"scan-w001-a1"},
		},
		"an earlier run's":                       {all: []executor.Execution{execution("scan-w000", "earlier", 0)}, older: true},
		"an execution without a wave is ignored": {all: []executor.Execution{execution("scan-w000", "u", -1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			world := &World{Observed: plan.Observed{
				Run:    &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "scan", UID: "u"}},
				Ledger: plan.LedgerState{Newest: &record.Wave{Wave: tc.newest}},
			}}
			sortExecutions(world, tc.all)
			var wave string
			if world.Wave != nil {
				wave = world.Wave.Name
			}
			var analyses []string
			for _, a := range world.Analyses {
				analyses = append(analyses, a.Name)
			}
			if diff := cmp.Diff([]any{tc.wave, tc.analyses, tc.older}, []any{wave, analyses, world.EarlierRunDeleting}); diff != "" {
				t.Errorf("workflows (-want +got):\n%s", diff)
			}
		})
	}
}

// A run can be cancelled while the store is unreachable, because its newest execution is found without the ledger.
func TestExecutions_NewestWithoutTheLedger(t *testing.T) {
	world := &World{Observed: plan.Observed{Run: &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "scan", UID: "u"}}}}
	sortExecutions(world, []executor.Execution{execution("scan-w001", "u", 1), execution("scan-w000", "u", 0)})
	if world.Wave == nil || world.Wave.Name != "scan-w001" {
		t.Errorf("newest is %+v", world.Wave)
	}
}

func TestLedger_ProblemOfAStoreError(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"a missing bucket":     {fmt.Errorf("list: %w", store.ErrNoBucket), assayv1alpha1.ReasonLedgerMissing},
		"an unreachable store": {fmt.Errorf("list: %w", store.ErrUnreachable), assayv1alpha1.ReasonLedgerUnreachable},
		"a timeout":            {context.DeadlineExceeded, assayv1alpha1.ReasonLedgerUnreachable},
		"a wrong digest":       {errors.New("digest differs"), assayv1alpha1.ReasonLedgerDamaged},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Problem(tc.err); got != tc.want {
				t.Errorf("reason %s, want %s", got, tc.want)
			}
		})
	}
}
