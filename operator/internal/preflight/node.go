package preflight

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// KubeletConfig is the part of a kubelet's configuration that affects isolation.
type KubeletConfig struct {
	CPUManagerPolicy string `json:"cpuManagerPolicy"`
	FailSwapOn       *bool  `json:"failSwapOn"`
}

// staticHow describes how to enable the static CPU manager.
const staticHow = "in the kubelet's configuration set cpuManagerPolicy: static and reserve CPU with kubeReserved or reservedSystemCPUs, " +
	"drain the node, delete /var/lib/kubelet/cpu_manager_state, restart the kubelet"

// lookHow is the remedy for properties that the API does not report.
const lookHow = "environment.require makes every block check"

// FromNode derives the findings of a node from the API. Config is nil if the kubelet's configuration could not be read; why is the
// error.
func FromNode(node *corev1.Node, config *KubeletConfig, why error) Machine {
	allocatable := node.Status.Allocatable
	m := Machine{
		Name: node.Name, labels: node.Labels, memory: allocatable.Memory().Value(),
		// Round down, because a block uses whole CPUs.
		cpus:        allocatable.Cpu().MilliValue() / 1000,
		environment: map[string]string{"kernelRelease": node.Status.NodeInfo.KernelVersion},
	}
	m.static(config, why)
	m.add(WholeCPUs, yesIf(m.cpus > 0), fmt.Sprintf("%d whole of %s CPUs allocatable", m.cpus, allocatable.Cpu()),
		"reserve less CPU for the system, or use a larger node")
	m.available(node)
	m.add(CgroupV2, Unknown, "not reported by the API", lookHow+" (cgroupVersion: \"2\")")
	m.labelled(FixedGovernor, "feature.node.kubernetes.io/cpu-pstate.scaling_governor", "performance", "governor: performance")
	m.labelled(NoTurbo, "feature.node.kubernetes.io/cpu-pstate.turbo", "false", "turbo: \"false\"")
	m.labelled(NoSMT, "feature.node.kubernetes.io/cpu-hardware_multithreading", "false", "smt: \"false\"")
	m.add(HugepagesOnRequest, Unknown, "not reported by the API", lookHow+" (transparentHugepages: madvise)")
	m.swap(config)
	return m
}

func (m *Machine) static(config *KubeletConfig, why error) {
	switch {
	case config == nil:
		m.add(ExclusiveCPUs, Unknown, fmt.Sprintf("the kubelet's configuration could not be read: %v", why),
			"allow get on nodes/proxy, or set placement.requireStaticCPUManager: a block without exclusive CPUs then runs no trial")
	case config.CPUManagerPolicy == "static":
		m.add(ExclusiveCPUs, yesIf(m.cpus > 0), "cpuManagerPolicy is static", "reserve less CPU for the system: no whole CPU is left")
	default:
		m.add(ExclusiveCPUs, No, fmt.Sprintf("cpuManagerPolicy is %q", config.CPUManagerPolicy), staticHow)
	}
}

// available reports whether a block could start there now.
func (m *Machine) available(node *corev1.Node) {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	var taints []string
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			taints = append(taints, taint.ToString())
		}
	}
	switch {
	case !ready:
		m.add(Available, No, "the node is not ready", "see kubectl describe node "+node.Name)
	case node.Spec.Unschedulable:
		m.add(Available, No, "the node is cordoned", "kubectl uncordon "+node.Name)
	case len(taints) > 0:
		m.add(Available, Unknown, "taints "+strings.Join(taints, ", "), "tolerate them in placement.tolerations")
	default:
		m.add(Available, Yes, "ready", "")
	}
}

// labelled derives a claim from a label of node-feature-discovery.
func (m *Machine) labelled(claim Claim, label, want, require string) {
	value, ok := m.labels[label]
	if !ok {
		m.add(claim, Unknown, "reported neither by the API nor by node-feature-discovery", lookHow+" ("+require+")")
		return
	}
	m.add(claim, yesIf(value == want), "label "+label+" is "+value, "change it in the node's firmware or system configuration")
}

func (m *Machine) swap(config *KubeletConfig) {
	switch {
	case config == nil || config.FailSwapOn == nil:
		m.add(NoSwap, Unknown, "the kubelet's configuration could not be read", lookHow+" (swapTotalBytes: \"0\")")
	case *config.FailSwapOn:
		m.add(NoSwap, Yes, "the kubelet refuses to run with swap", "")
	default:
		m.add(NoSwap, Unknown, "the kubelet runs with swap too", lookHow+" (swapTotalBytes: \"0\")")
	}
}
