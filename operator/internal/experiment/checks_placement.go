package experiment

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/lease"
)

// checkPlacement refuses what Kubernetes would refuse of every pod of the run, and a toleration by which a pod of the run could
// get onto a node that another run has for itself.
func checkPlacement(spec *assayv1alpha1.BenchmarkRunSpec, problems *Invalid) {
	for key, value := range sorted(spec.Placement.NodeSelector) {
		checkLabel("spec.placement.nodeSelector", key, value, problems)
	}
	if memory := spec.Placement.Memory; memory.Sign() < 0 {
		problems.add("spec.placement.memory", "invalid memory %q: write what a block needs, such as 1Gi", memory.String())
	}
	for i, toleration := range spec.Placement.Tolerations {
		checkToleration(fmt.Sprintf("spec.placement.tolerations[%d]", i), toleration, problems)
	}
}

// checkLabel holds a key and a value of a label, or of a taint, which have the same form, against Kubernetes' rules.
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
		problems.add(field+".tolerationSeconds", "invalid tolerationSeconds %d: only with effect: NoExecute are pods ended after some time; "+
			"remove it, or write that", *t.TolerationSeconds)
	}
	switch t.Key {
	case lease.TaintKey:
		problems.add(field+".key", "invalid key %q: it is the taint of nodes that a run has for itself; a run gets the toleration of its own "+
			"by exclusive: Node", t.Key)
	case "":
		problems.add(field+".key", "no key, which with operator Exists tolerates every taint, that of nodes which another run has for itself "+
			"too: name the key of each taint")
	default:
		checkLabel(field, t.Key, t.Value, problems)
	}
}
