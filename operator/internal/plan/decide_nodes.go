package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/period"
	"assay.dev/assay/operator/internal/policy"
)

// usableNodes returns the names of the nodes on which a block can run, regardless of their leases, or the cause if the list is empty.
func usableNodes(placement experiment.Placement, overhead corev1.ResourceList, allowed *policy.Policy, nodes []Node) ([]string, string) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	need := demand(placement, overhead)
	var usable, refusals []string
	selected := 0
	for _, node := range nodes {
		if !labels.SelectorFromSet(placement.NodeSelector).Matches(labels.Set(node.Labels)) {
			continue
		}
		selected++
		if refusal := refuse(node, placement, need, allowed); refusal != "" {
			refusals = append(refusals, node.Name+" "+refusal)
		} else {
			usable = append(usable, node.Name)
		}
	}
	if len(usable) > 0 {
		return usable, ""
	}
	selector := "spec.placement.nodeSelector " + cmp.Or(labels.Set(placement.NodeSelector).String(), "(empty: every node)")
	if selected == 0 {
		return nil, fmt.Sprintf("%s matches none of %d nodes: label a node, or create a run with another selector", selector, len(nodes))
	}
	const shown = 5
	more := ""
	if len(refusals) > shown {
		more = fmt.Sprintf(" and %d more", len(refusals)-shown)
		refusals = refusals[:shown]
	}
	return nil, fmt.Sprintf("%s matches %d of %d nodes and none can run a block: %s%s", selector, selected, len(nodes),
		strings.Join(refusals, "; "), more)
}

// demand is the sum of the requests of a block's pod.
func demand(placement experiment.Placement, overhead corev1.ResourceList) corev1.ResourceList {
	cpu, memory := *resource.NewQuantity(int64(placement.CPUs), resource.DecimalSI), placement.Memory.DeepCopy()
	cpu.Add(overhead[corev1.ResourceCPU])
	memory.Add(overhead[corev1.ResourceMemory])
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}

// refuse is why a node cannot run a block; empty when it can.
func refuse(node Node, placement experiment.Placement, need corev1.ResourceList, allowed *policy.Policy) string {
	switch {
	case !allowed.Opens(node.Labels):
		return fmt.Sprintf("has no label %s, by which the administrator opens nodes to runs", allowed.NodeLabel)
	case !node.Ready:
		return "is not ready"
	case node.Unschedulable:
		return "is cordoned"
	case node.LeaseDamaged != "":
		return "has an unreadable lease: " + node.LeaseDamaged
	}
	for _, taint := range node.Taints {
		// The lease decides, and not its taint.
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !isLeaseTaint(taint) && !tolerated(taint, placement.Tolerations) {
			return fmt.Sprintf("has taint %s, which spec.placement.tolerations does not tolerate", taint.ToString())
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		has, wants := node.Allocatable[name], need[name]
		if has.Cmp(wants) < 0 {
			return fmt.Sprintf("has %s of %s and a block with the containers beside it takes %s", has.String(), name, wants.String())
		}
	}
	return ""
}

func isLeaseTaint(taint corev1.Taint) bool { return taint.Key == lease.TaintKey }

func tolerated(taint corev1.Taint, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(&taint) })
}

// node is the node as it was observed; without a name when it is gone.
func (p *planner) node(name string) Node {
	for _, node := range p.Nodes {
		if node.Name == name {
			return node
		}
	}
	return Node{}
}

// lost is the reason why no further blocks will run on a node; empty if they will. Dead means that the pods that run there now are lost
// too. A node that is not ready is given NodeGrace, because most network failures are short.
func (p *planner) lost(name string) (why string, dead bool) {
	node := p.node(name)
	switch {
	case node.Name == "":
		return "node " + name + " is gone", true
	case !node.Ready:
		if left := period.Left(node.ReadySince, p.settings.NodeGrace, p.now); left > 0 {
			p.wake(left)
			return "", false
		}
		return fmt.Sprintf("node %s is not ready since %s", name, stamp(node.ReadySince)), true
	case node.Unschedulable:
		return "node " + name + " is cordoned", false
	}
	return "", false
}

// nodesLost stops a wave with blocks on lost nodes, so that they are planned again. Blocks that run on other nodes, or still run on a
// cordoned one, end first. Open counts, by node, the blocks that did not run to their end.
func (p *planner) nodesLost(open map[string]int) *Decision {
	var reasons []string
	blocks, elsewhere := 0, false
	for _, name := range slices.Sorted(maps.Keys(open)) {
		why, _ := p.lost(name)
		if why == "" {
			elsewhere = true
			continue
		}
		blocks += open[name]
		reasons = append(reasons, why)
	}
	if blocks == 0 {
		return nil
	}
	why := fmt.Sprintf("%s with %d blocks to run", strings.Join(reasons, ", "), blocks)
	for name := range p.Pods.Blocks {
		if _, dead := p.lost(name); !dead {
			return waveRuns(why+": they are planned again once the blocks that run now have ended", p.untilDeadline())
		}
	}
	if !elsewhere {
		return p.stopAndPlanAgain(why)
	}
	// No pod runs at all: that may be the moment between two blocks of a lane.
	if period.Over(p.since(assayv1alpha1.GraceForNodes), p.settings.NodeGrace, p.now) {
		return p.stopAndPlanAgain(why)
	}
	out := waiting(assayv1alpha1.ReasonWaitingForNode, why+": waiting for the blocks on the other nodes", podsInterval)
	out.Grace = assayv1alpha1.GraceForNodes
	return out
}
