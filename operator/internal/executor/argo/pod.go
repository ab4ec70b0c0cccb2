package argo

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
)

// user is the UID of all containers of a pod except the keeper.
const user = 65532

func podSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user), FSGroup: ptr.To[int64](user),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func containerSecurity(readOnlyRoot bool) *corev1.SecurityContext {
	out := &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		RunAsNonRoot:             ptr.To(true),
	}
	if readOnlyRoot {
		out.ReadOnlyRootFilesystem = ptr.To(true)
	}
	return out
}

// noToken hides the ServiceAccount's token, which Argo's executor needs, from the other containers of the pod. The API server does not
// mount the token over an existing mount.
var (
	noToken      = emptyDir("no-token", emptyRoom)
	noTokenMount = corev1.VolumeMount{Name: "no-token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}
)

func (c Config) executorResources() corev1.ResourceRequirements {
	list := corev1.ResourceList{corev1.ResourceCPU: c.ExecutorCPU, corev1.ResourceMemory: c.ExecutorMemory}
	return stored(corev1.ResourceRequirements{Requests: list, Limits: list}, executorRoom)
}

// Overhead returns the requests of a block's pod in addition to the block, which are those of Argo's container and the keeper.
func (c Config) Overhead() corev1.ResourceList {
	cpu, memory := c.ExecutorCPU.DeepCopy(), c.ExecutorMemory.DeepCopy()
	cpu.Add(c.ExecutorCPU)
	memory.Add(c.ExecutorMemory)
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}

// preparing returns the resources of init containers, which are those of the block. They do not add to the pod's requests, and with the
// executor's share of a CPU each of them would take seconds. Requests equal limits, as in the block.
func (c Config) preparing(placement experiment.Placement) corev1.ResourceRequirements {
	list := blockAsks(placement)
	if placement.Memory.Cmp(c.ExecutorMemory) < 0 {
		list[corev1.ResourceMemory] = c.ExecutorMemory
	}
	return stored(corev1.ResourceRequirements{Requests: list, Limits: list}, executorRoom)
}

// burstable returns the resources of the executor in a pod that need not be Guaranteed: its usual requests, and a limit of one CPU.
func (c Config) burstable() corev1.ResourceRequirements {
	out := c.executorResources()
	out.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	return out
}

// podSpecPatch sets the resources of the containers that Argo adds to every pod, independently of its controller's configuration. A block's
// pod is Guaranteed only if the limits of Argo's containers equal their requests. Service variables are disabled, because they would make
// the environment of trials depend on the namespace.
func podSpecPatch(config Config) string {
	resources := func(name string) corev1.Container {
		return corev1.Container{Name: name, Resources: config.executorResources(), SecurityContext: containerSecurity(false)}
	}
	return patch(corev1.PodSpec{
		InitContainers:     []corev1.Container{resources(executor.EngineInitContainer)},
		Containers:         []corev1.Container{resources(argosContainer)},
		EnableServiceLinks: ptr.To(false),
		// Argo's own volumes, for its program and for artifacts, have no size limit by default.
		Volumes: []corev1.Volume{emptyDir("var-run-argo", argoRoom), emptyDir("tmp-dir-argo", argoRoom)},
	})
}

// blockPatch and analysisPatch extend podSpecPatch.
func blockPatch(config Config, placement experiment.Placement) string {
	// A map instead of a PodSpec, whose null containers would remove those of the pod.
	return patch(map[string]any{
		"initContainers":                []corev1.Container{{Name: executor.EngineInitContainer, Resources: config.preparing(placement)}},
		"terminationGracePeriodSeconds": graceSeconds,
	})
}

func analysisPatch(config Config) string {
	return patch(corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: executor.EngineInitContainer, Resources: config.burstable()}},
		Containers:     []corev1.Container{{Name: argosContainer, Resources: config.burstable()}},
	})
}

func patch(spec any) string {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err) // Plain values always marshal.
	}
	return string(raw)
}
