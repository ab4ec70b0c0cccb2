package experiment

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/lease"
)

// checkPlacement rejects placements that Kubernetes would reject for every pod of the run, and tolerations that would admit a pod to a
// node that another run uses exclusively.
func checkPlacement(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	for key, value := range sorted(spec.Placement.NodeSelector) {
		checkLabel("spec.placement.nodeSelector", key, value, problems)
	}
	if memory := spec.Placement.Memory; memory.Sign() < 0 {
		problems.add("spec.placement.memory", "invalid memory %q: write the memory of a block, such as 1Gi", memory.String())
	}
	for i, toleration := range spec.Placement.Tolerations {
		checkToleration(fmt.Sprintf("spec.placement.tolerations[%d]", i), toleration, problems)
	}
}

// checkLabel validates a key and a value of a label or a taint, which have the same form, by Kubernetes' rules.
func checkLabel(field, key, value string, problems *Invalid) {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		problems.add(field, "invalid key %q: %s", key, strings.Join(wrong, "; "))
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		problems.add(field, "invalid value %q of %q: %s", value, key, strings.Join(wrong, "; "))
	}
}

func checkToleration(field string, t corev1.Toleration, problems *Invalid) {
	if t.Operator == corev1.TolerationOpExists && t.Value != "" {
		problems.add(field+".value", "invalid value %q: operator Exists takes none; remove it, or write operator: Equal", t.Value)
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		problems.add(field+".tolerationSeconds", "invalid tolerationSeconds %d: only with effect NoExecute are pods evicted after some time; "+
			"remove it, or write that", *t.TolerationSeconds)
	}
	switch t.Key {
	case lease.TaintKey:
		problems.add(field+".key", "invalid key %q: it is the taint of nodes that a run uses exclusively; a run gets its toleration "+
			"by exclusive: Node", t.Key)
	case "":
		problems.add(field+".key", "no key, which with operator Exists tolerates every taint, that of another run's exclusive nodes "+
			"too: name the key of each taint")
	default:
		checkLabel(field, t.Key, t.Value, problems)
	}
}
