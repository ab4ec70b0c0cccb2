package observe

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// notPulled are the reasons of a waiting container whose image cannot be pulled, in our words if the kubelet's do not say enough.
var notPulled = map[string]string{
	"ErrImagePull":        notThere,
	"ImagePullBackOff":    notThere,
	"InvalidImageName":    "the name is not valid",
	"ErrImageNeverPull":   "it is not on the node and its pull policy is Never",
	"ImageInspectError":   "",
	"RegistryUnavailable": "",
}

const notThere = "it does not exist, its registry cannot be reached, or credentials are missing"

// podState summarizes the run's pods. Of several pods with a problem the first by name is reported: they share one template.
func podState(pods []corev1.Pod) plan.PodState {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var out plan.PodState
	var said time.Time
	for i := range pods {
		pod := &pods[i]
		out.Failed = cmp.Or(out.Failed, failedPod(pod))
		if words, at := terminationMessage(pod); words != "" && !at.Before(said) {
			out.TerminationMessage, said = words, at
		}
		if pod.Labels[executor.PartLabel] != executor.AnalysisPart {
			out.Unstarted = addUnstarted(out.Unstarted, pod)
		}
		if over(pod) {
			continue
		}
		out.Alive++
		if !aliveBlock(pod) {
			out.Analysing = append(out.Analysing, plan.AnalysisPod{Node: pod.Spec.NodeName, Execution: executionOf(pod)})
		} else {
			if out.Blocks == nil {
				out.Blocks = map[string]int{}
			}
			out.Blocks[pod.Spec.NodeName]++
		}
		if pod.DeletionTimestamp != nil {
			out.Ending = append(out.Ending,
				plan.EndingPod{Name: pod.Name, Node: pod.Spec.NodeName, By: pod.DeletionTimestamp.Time, Block: aliveBlock(pod)})
		}
		if found, ok := kept(pod); ok {
			out.Kept = append(out.Kept, found)
		}
		if out.Demoted == "" && aliveBlock(pod) {
			out.Demoted = demoted(pod)
		}
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil {
			continue
		}
		if out.Image == nil {
			out.Image = imageProblem(pod)
		}
		out.CannotStart = cmp.Or(out.CannotStart, cannotStart(pod))
		condition := podCondition(pod, corev1.PodScheduled)
		if out.Unschedulable == "" && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			out.Unschedulable = condition.Message
		}
		if condition.Status == corev1.ConditionTrue {
			starting := &plan.StartingPod{
				Name: pod.Name, Node: pod.Spec.NodeName, Scheduled: condition.LastTransitionTime.Time,
				Lost: sandboxLost(pod), Block: aliveBlock(pod), Execution: executionOf(pod),
			}
			if out.Starting == nil || out.Starting.Lost.IsZero() && !starting.Lost.IsZero() {
				out.Starting = starting
			}
		}
	}
	return out
}

// kept returns a pod whose own containers have ended while one of another program still runs. The kubelet itself ends sidecars that are
// init containers.
func kept(pod *corev1.Pod) (plan.KeptPod, bool) {
	out, main := plan.KeptPod{Name: pod.Name, UID: string(pod.UID), Deleting: pod.DeletionTimestamp != nil}, false
	var running []string
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		ended := status.State.Terminated
		switch {
		case executor.IsForeign(status.Name):
			if ended == nil {
				running = append(running, status.Name)
			}
		case ended == nil:
			return plan.KeptPod{}, false
		default:
			main = main || status.Name == executor.MainContainer
			if ended.FinishedAt.After(out.Since) {
				out.Since = ended.FinishedAt.Time
			}
		}
	}
	slices.Sort(running)
	out.Containers = strings.Join(running, ", ")
	return out, main && len(running) > 0
}

// demoted names the containers of other programs in a pod that is not Guaranteed; empty if there are none.
func demoted(pod *corev1.Pod) string {
	if class := pod.Status.QOSClass; class == "" || class == corev1.PodQOSGuaranteed {
		return ""
	}
	var names []string
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if executor.IsForeign(status.Name) {
			names = append(names, status.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// over reports whether a pod has ended, or was deleted before it had a node: the scheduler gives it none any more.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil
}

func executionOf(pod *corev1.Pod) string {
	return ptr.Deref(metav1.GetControllerOfNoCopy(pod), metav1.OwnerReference{}).Name
}

// sandboxLost is when a pod that still initializes lost the sandbox that its containers ran in; zero if it has one, or is to get its first.
func sandboxLost(pod *corev1.Pod) time.Time {
	ready := podCondition(pod, corev1.PodReadyToStartContainers)
	ran := slices.ContainsFunc(pod.Status.InitContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.State.Terminated != nil
	})
	if ready.Status != corev1.ConditionFalse || !ran {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

func imageProblem(pod *corev1.Pod) *plan.ImageProblem {
	for _, status := range containers(pod) {
		reason := ptr.Deref(status.State.Waiting, corev1.ContainerStateWaiting{}).Reason
		// Only the reason: the kubelet's message changes with every attempt, and a condition must not.
		if words, ok := notPulled[reason]; ok {
			return &plan.ImageProblem{Image: status.Image, Message: cmp.Or(words, reason), Scheduled: scheduled(pod)}
		}
	}
	return nil
}

// starts are the reasons of a container that waits and is about to start.
var starts = []string{"", "ContainerCreating", "PodInitializing"}

// cannotStart describes a container that the kubelet cannot start: a Secret that is missing, a user that the image does not allow, a
// program that is not in the image. It is empty without one, and for an image that cannot be pulled.
func cannotStart(pod *corev1.Pod) string {
	for _, status := range containers(pod) {
		waiting := ptr.Deref(status.State.Waiting, corev1.ContainerStateWaiting{})
		if _, image := notPulled[waiting.Reason]; image || slices.Contains(starts, waiting.Reason) {
			continue
		}
		return fmt.Sprintf("pod %s on node %s cannot start its container %s: %s%s", pod.Name, pod.Spec.NodeName, status.Name, waiting.Reason,
			quoted(waiting.Message))
	}
	return ""
}

// killed are the reasons of a container that ended and whose program is not the cause, and what they mean.
var killed = map[string]string{
	"OOMKilled":          "killed for lack of memory (OOMKilled)",
	"StartError":         "not started (StartError)",
	"ContainerCannotRun": "not started (ContainerCannotRun)",
	"DeadlineExceeded":   "over its deadline (DeadlineExceeded)",
}

// failedPod describes a pod that the kubelet rejected or evicted, or that has a container which it killed or could not start; empty for any
// other pod. The exit code of a container that ended by itself is not reported, because its attempts have the cause.
func failedPod(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return fmt.Sprintf("pod %s on node %s failed: %s%s", pod.Name, pod.Spec.NodeName, pod.Status.Reason, quoted(pod.Status.Message))
	}
	for _, status := range containers(pod) {
		if ended := status.State.Terminated; ended != nil && killed[ended.Reason] != "" {
			return fmt.Sprintf("container %s of pod %s on node %s was %s%s", status.Name, pod.Name, pod.Spec.NodeName, killed[ended.Reason],
				quoted(ended.Message))
		}
	}
	return ""
}

func containers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// identifier matches the identifiers of containers, which change with every attempt, as a condition must not.
var identifier = regexp.MustCompile(`\b[0-9a-f]{12,}\b`)

// longestKubelet limits the characters of the kubelet's message.
const longestKubelet = 240

// quoted appends a message of the kubelet, which may contain texts of a tenant.
func quoted(message string) string {
	if message == "" {
		return ""
	}
	return ": " + record.Quote(identifier.ReplaceAllString(message, "…"), longestKubelet)
}

func scheduled(pod *corev1.Pod) time.Time {
	if condition := podCondition(pod, corev1.PodScheduled); condition.Status == corev1.ConditionTrue {
		return condition.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// podCondition is one of a pod's conditions; without a status where the pod has none of its kind.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.PodCondition{}
}
