package argo

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/experiment"
)

// user that everything in a pod runs as, but the keeper.
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

// noToken hides the ServiceAccount's token, which Argo's executor needs, from the other containers of the pod: the API
// server mounts none where something is mounted already.
var (
	noToken      = emptyDir("no-token", emptyRoom)
	noTokenMount = corev1.VolumeMount{Name: "no-token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}
)

func (c Config) executorResources() corev1.ResourceRequirements {
	list := corev1.ResourceList{corev1.ResourceCPU: c.ExecutorCPU, corev1.ResourceMemory: c.ExecutorMemory}
	return stored(corev1.ResourceRequirements{Requests: list, Limits: list}, executorRoom)
}

// Overhead is what a block's pod takes of a node beside the block: Argo's container and the keeper.
func (c Config) Overhead() corev1.ResourceList {
	cpu, memory := c.ExecutorCPU.DeepCopy(), c.ExecutorMemory.DeepCopy()
	cpu.Add(c.ExecutorCPU)
	memory.Add(c.ExecutorMemory)
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}

// preparing is what containers have that end before a block begins: what the block itself will have. The pod needs no more for
// it, and with the executor's share of a CPU each of them would take seconds. Requests are limits, as in the block.
func (c Config) preparing(placement experiment.Placement) corev1.ResourceRequirements {
	list := blockAsks(placement)
	if placement.Memory.Cmp(c.ExecutorMemory) < 0 {
		list[corev1.ResourceMemory] = c.ExecutorMemory
	}
	return stored(corev1.ResourceRequirements{Requests: list, Limits: list}, executorRoom)
}

// burstable is what the executor has in a pod that need not be Guaranteed: no more than usual for sure, and a CPU where one is free.
func (c Config) burstable() corev1.ResourceRequirements {
	out := c.executorResources()
	out.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	return out
}

// podSpecPatch completes what Argo adds to every pod, whatever its controller is configured to do: a block's pod is only
// Guaranteed if Argo's containers request what they limit too. Variables named after services are no part of an experiment.
func podSpecPatch(config Config) string {
	executor := func(name string) corev1.Container {
		return corev1.Container{Name: name, Resources: config.executorResources(), SecurityContext: containerSecurity(false)}
	}
	return patch(corev1.PodSpec{
		InitContainers:     []corev1.Container{executor("init")},
		Containers:         []corev1.Container{executor(argosContainer)},
		EnableServiceLinks: ptr.To(false),
		// Argo's own, which have no bounds: its program, and what passes through it.
		Volumes: []corev1.Volume{emptyDir("var-run-argo", argoRoom), emptyDir("tmp-dir-argo", argoRoom)},
	})
}

// blockPatch and analysisPatch go on top of it.
func blockPatch(config Config, placement experiment.Placement) string {
	// Not a whole PodSpec: its containers would be null, which removes them.
	return patch(map[string]any{
		"initContainers":                []corev1.Container{{Name: "init", Resources: config.preparing(placement)}},
		"terminationGracePeriodSeconds": graceSeconds,
	})
}

func analysisPatch(config Config) string {
	return patch(corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Resources: config.burstable()}},
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
