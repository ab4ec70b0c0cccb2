package experiment

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/lease"
)

func TestFreeze_InvalidPlacementIsRejected(t *testing.T) {
	one := func(t corev1.Toleration) assayv1alpha1.Placement {
		return assayv1alpha1.Placement{Tolerations: []corev1.Toleration{t}}
	}
	cases := map[string]struct {
		placement assayv1alpha1.Placement
		says      []string
	}{
		"a taint of the site":      {placement: one(corev1.Toleration{Key: "example.com/bench", Operator: "Equal", Value: "yes", Effect: "NoSchedule"})},
		"any value and any effect": {placement: one(corev1.Toleration{Key: "bench", Operator: "Exists"})},
		"a key with braces":        {placement: one(corev1.Toleration{Key: "{{workflow.name}}", Operator: "Exists"}), says: []string{"tolerations[0]: invalid key"}},
		"a value with braces":      {placement: one(corev1.Toleration{Key: "bench", Value: "{{workflow.name}}"}), says: []string{"tolerations[0]: invalid value"}},
		"a value that is never looked at": {
			placement: one(corev1.Toleration{Key: "bench", Operator: "Exists", Value: "x"}), says: []string{"tolerations[0].value", "remove it"},
		},
		"for as long as a taint that ends pods lets it": {
			placement: one(corev1.Toleration{Key: "bench", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](60)}),
		},
		"for some time with an effect that ends none": {
			placement: one(corev1.Toleration{Key: "bench", Effect: "NoSchedule", TolerationSeconds: ptr.To[int64](60)}),
			says:      []string{"tolerations[0].tolerationSeconds", "effect NoExecute"},
		},
		"for some time with every effect": {
			placement: one(corev1.Toleration{Key: "bench", TolerationSeconds: ptr.To[int64](0)}),
			says:      []string{"tolerations[0].tolerationSeconds", "effect NoExecute"},
		},
		"the taint of leases":          {placement: one(corev1.Toleration{Key: lease.TaintKey, Operator: "Exists"}), says: []string{"tolerations[0].key", "exclusive: Node"}},
		"the taint of one run's lease": {placement: one(corev1.Toleration{Key: lease.TaintKey, Value: "uid"}), says: []string{"tolerations[0].key", "exclusive: Node"}},
		"every taint":                  {placement: one(corev1.Toleration{Operator: "Exists"}), says: []string{"tolerations[0].key", "tolerates every taint"}},
		"no key":                       {placement: one(corev1.Toleration{Value: "x"}), says: []string{"tolerations[0].key", "no key"}},
		"memory below nothing": {
			placement: assayv1alpha1.Placement{Memory: resource.MustParse("-1Gi")}, says: []string{"spec.placement.memory", `"-1Gi"`},
		},
		"less than a byte below nothing": {
			placement: assayv1alpha1.Placement{Memory: resource.MustParse("-1m")}, says: []string{"spec.placement.memory"},
		},
		"a label of nodes":                   {placement: assayv1alpha1.Placement{NodeSelector: map[string]string{"kubernetes.io/hostname": "node-a"}}},
		"a selector that no node can match":  {placement: assayv1alpha1.Placement{NodeSelector: map[string]string{"disk": "{{x}}"}}, says: []string{"nodeSelector", `invalid value "{{x}}"`}},
		"a selector whose key is no label's": {placement: assayv1alpha1.Placement{NodeSelector: map[string]string{"a b": "x"}}, says: []string{"nodeSelector", `invalid key "a b"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			problems := &Invalid{}
			checkPlacement(&assayv1alpha1.BenchmarkRunSpec{Placement: tc.placement}, problems)
			assertSays(t, "error", problems.Error(), tc.says)
		})
	}
}

func TestFreeze_InvalidTemplateImageIsRejected(t *testing.T) {
	template := testTemplate()
	template.Image = "{{=1}}"
	_, err := freezeAndCheck(t, testSpec(), template)
	if err == nil || !strings.Contains(err.Error(), "template.image") {
		t.Errorf("error %v, want one that names template.image", err)
	}
}
