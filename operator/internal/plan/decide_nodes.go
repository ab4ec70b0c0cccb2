package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// pickLanes takes the first nodes, by name, on which a block can run, or says what is missing.
func pickLanes(placement assayv1alpha1.Placement, overhead corev1.ResourceList, nodes []Node, blocks int) ([]Lane, string) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	need := demand(placement, overhead)
	var lanes []Lane
	var refusals []string
	selected := 0
	for _, node := range nodes {
		if !hasLabels(node, placement.NodeSelector) {
			continue
		}
		selected++
		if refusal := refuse(node, placement, need); refusal != "" {
			refusals = append(refusals, node.Name+" "+refusal)
			continue
		}
		lanes = append(lanes, Lane{Node: node.Name})
	}
	if len(lanes) > 0 {
		return lanes[:min(len(lanes), int(placement.MaxNodes), blocks)], ""
	}
	selector := "spec.placement.nodeSelector " + describeSelector(placement.NodeSelector)
	if selected == 0 {
		return nil, fmt.Sprintf("%s matches none of %d nodes: label a node, or create a run with another selector", selector, len(nodes))
	}
	const shown = 5
	more := ""
	if len(refusals) > shown {
		more = fmt.Sprintf(" and %d more", len(refusals)-shown)
		refusals = refusals[:shown]
	}
	return nil, fmt.Sprintf("%s matches %d of %d nodes and none can run a block: %s%s", selector, selected, len(nodes), strings.Join(refusals, "; "), more)
}

// demand is what a block's pod requests in all.
func demand(placement assayv1alpha1.Placement, overhead corev1.ResourceList) corev1.ResourceList {
	cpu, memory := *resource.NewQuantity(int64(placement.CPUs), resource.DecimalSI), placement.Memory.DeepCopy()
	cpu.Add(overhead[corev1.ResourceCPU])
	memory.Add(overhead[corev1.ResourceMemory])
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}

func hasLabels(node Node, selector map[string]string) bool {
	for key, value := range selector {
		if actual, ok := node.Labels[key]; !ok || actual != value {
			return false
		}
	}
	return true
}

// refuse says why a node cannot run a block, or nothing.
func refuse(node Node, placement assayv1alpha1.Placement, need corev1.ResourceList) string {
	switch {
	case !node.Ready:
		return "is not ready"
	case node.Unschedulable:
		return "is cordoned"
	}
	for _, taint := range node.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(taint, placement.Tolerations) {
			return fmt.Sprintf("has taint %s, which spec.placement.tolerations does not tolerate", taint.ToString())
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		has, wants := node.Allocatable[name], need[name]
		if has.Cmp(wants) < 0 {
			return fmt.Sprintf("has %s of %s and a block with Argo's containers takes %s", has.String(), name, wants.String())
		}
	}
	return ""
}

func tolerated(taint corev1.Taint, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(&taint) })
}

func describeSelector(selector map[string]string) string {
	if len(selector) == 0 {
		return "(empty: every node)"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		parts = append(parts, key+"="+selector[key])
	}
	return strings.Join(parts, ",")
}
