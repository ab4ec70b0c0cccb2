package platform

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestDoctor_PodSecurityOfNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		labels       map[string]string
		seen, remedy string
	}{
		"restricted ones only": {map[string]string{enforceLabel: "restricted"}, "pod-security.kubernetes.io/enforce enforces restricted", ""},
		"baseline ones":        {map[string]string{enforceLabel: "baseline"}, "pod-security.kubernetes.io/enforce enforces baseline", "runs need only restricted pods: kubectl label namespace team pod-security.kubernetes.io/enforce=restricted --overwrite"},
		"any":                  {nil, "pod-security.kubernetes.io/enforce enforces no level", "runs need only restricted pods: kubectl label namespace team pod-security.kubernetes.io/enforce=restricted --overwrite"},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team",
				Labels: test.labels}}).Build()
			findings := examine(t.Context(), reader, nil, "team", "assay-system", nil)
			for _, f := range findings {
				if f.Check == "Pod Security of namespace team" {
					if !f.OK || f.Found != test.seen || f.Remedy != test.remedy {
						t.Errorf("doctor says %+v", f)
					}
					return
				}
			}
			t.Errorf("doctor says nothing of it: %+v", findings)
		})
	}
	if findings := podSecurity(t.Context(), fake.NewClientBuilder().Build(), "hidden"); findings != nil {
		t.Errorf("of a namespace that cannot be read doctor says %+v", findings)
	}
}
