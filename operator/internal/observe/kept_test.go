package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/plan"
)

func runs(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
}

func sidecar(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name})
	}
}

func TestPods_ContainersOfOtherPrograms(t *testing.T) {
	later := noon.Add(time.Minute)
	class := func(class corev1.PodQOSClass) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.QOSClass = class }
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp, p.Spec.NodeName = &metav1.Time{Time: later}, "node-a" }
	all := func(name string) plan.KeptPod { return plan.KeptPod{Name: "a", Containers: name, Since: later} }
	cases := map[string]struct {
		edit    []func(*corev1.Pod)
		kept    []plan.KeptPod
		demoted string
	}{
		"a container that outlives the block and the engine keeps the pod": {
			edit: []func(*corev1.Pod){ended(executor.MainContainer, "", noon), ended(executor.EngineContainer, "", later), runs("mesh-proxy")},
			kept: []plan.KeptPod{all("mesh-proxy")},
		},
		"several are named in order": {
			edit: []func(*corev1.Pod){runs("z"), ended(executor.MainContainer, "", noon), ended(executor.EngineContainer, "", later), runs("b")},
			kept: []plan.KeptPod{all("b, z")},
		},
		"one that waits keeps it too": {
			edit: []func(*corev1.Pod){ended(executor.MainContainer, "", noon), ended(executor.EngineContainer, "", later),
				func(p *corev1.Pod) {
					p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "mesh-proxy"})
				}},
			kept: []plan.KeptPod{all("mesh-proxy")},
		},
		"the engine's container has not ended": {
			edit: []func(*corev1.Pod){ended(executor.MainContainer, "", noon), runs(executor.EngineContainer), runs("mesh-proxy")},
		},
		"the block has not ended":                     {edit: []func(*corev1.Pod){runs(executor.MainContainer), runs("mesh-proxy")}},
		"the status has no containers of the run yet": {edit: []func(*corev1.Pod){runs("mesh-proxy")}},
		"no container of another program runs": {
			edit: []func(*corev1.Pod){ended(executor.MainContainer, "", noon), ended("mesh-proxy", "", noon)},
		},
		"the kubelet ends a sidecar that is an init container": {
			edit: []func(*corev1.Pod){ended(executor.MainContainer, "", noon), sidecar("mesh-proxy")},
		},
		"a pod that is being deleted was told to end": {
			edit: []func(*corev1.Pod){ended(executor.MainContainer, "", later), runs("mesh-proxy"), deleted},
			kept: []plan.KeptPod{{Name: "a", Containers: "mesh-proxy", Since: later, Deleting: true}},
		},
		"a sidecar takes the class Guaranteed away": {
			edit: []func(*corev1.Pod){runs(executor.MainContainer), sidecar(executor.KeeperContainer), sidecar("image-0"),
				sidecar("mesh-proxy"), class(corev1.PodQOSBurstable)},
			demoted: "mesh-proxy",
		},
		"so does a container": {
			edit:    []func(*corev1.Pod){runs(executor.MainContainer), runs("image-of-another"), class(corev1.PodQOSBurstable)},
			demoted: "image-of-another",
		},
		"a pod that is Guaranteed with a sidecar":       {edit: []func(*corev1.Pod){sidecar("mesh-proxy"), class(corev1.PodQOSGuaranteed)}},
		"a pod whose own containers are not Guaranteed": {edit: []func(*corev1.Pod){runs(executor.MainContainer), class(corev1.PodQOSBurstable)}},
		"the analysis is not Guaranteed and need not be so": {
			edit: []func(*corev1.Pod){sidecar("mesh-proxy"), class(corev1.PodQOSBurstable), func(p *corev1.Pod) {
				p.Labels = map[string]string{executor.PartLabel: executor.AnalysisPart}
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := podState([]corev1.Pod{pod("a", corev1.PodRunning, tc.edit...)})
			if diff := cmp.Diff(tc.kept, got.Kept); diff != "" || got.Demoted != tc.demoted {
				t.Errorf("kept (-want +got):\n%s\ndemoted %q, want %q", diff, got.Demoted, tc.demoted)
			}
		})
	}
}
