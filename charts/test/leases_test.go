package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// On a cluster of one node, a run that has the node for itself must not keep the platform from running.
func TestLeases_PodsTolerateALeasedNode(t *testing.T) {
	leased := corev1.Taint{Key: "assay.dev/leased", Value: "some-run", Effect: corev1.TaintEffectNoSchedule}
	others := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	tolerates := func(pod corev1.PodSpec, taint corev1.Taint) bool {
		return slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
			return t.Operator == corev1.TolerationOpExists && (t.Key == taint.Key || t.Key == "") && (t.Effect == taint.Effect || t.Effect == "")
		})
	}
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			for id, pod := range render(t, values).pods(t) {
				if !tolerates(pod.Spec, leased) {
					t.Errorf("%s does not tolerate %s", id, leased.ToString())
				}
				if tolerates(pod.Spec, others) {
					t.Errorf("%s tolerates everything", id)
				}
			}
		})
	}
}

func TestLeases_OperatorHasTheRightsOfItsCode(t *testing.T) {
	for role, file := range map[string]string{"leases": "leases_role.yaml", "leader-election": "leader_election_role.yaml"} {
		raw, err := os.ReadFile(filepath.Join(repository, "operator", "config", "rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		var want rbacv1.Role
		if err := yaml.UnmarshalStrict(raw, &want); err != nil {
			t.Fatal(err)
		}
		got := into[rbacv1.Role](t, render(t, ``).find(t, "Role/assay-system/assay-operator-"+role))
		if !reflect.DeepEqual(got.Rules, want.Rules) {
			t.Errorf("the chart's rules are %+v and config/rbac/%s has %+v", got.Rules, file, want.Rules)
		}
	}
}
