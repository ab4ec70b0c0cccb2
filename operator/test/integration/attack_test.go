package integration

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/test/attacks"
)

// The attacks on the API, which make attack also runs against a whole cluster.
func TestAPI_AttacksFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, withLimited)
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, &assayv1alpha1.BenchmarkTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.limited(), Name: w.template.Name}, Spec: w.template.Spec,
	}))
	for _, name := range []string{"people.yaml", "executor_role.yaml"} {
		roles, err := readConfig(name)
		w.must(err)
		for _, role := range roles {
			if role.GetKind() == "Role" {
				role.SetNamespace(w.namespace)
			}
			w.must(client.IgnoreAlreadyExists(admin.Create(w.ctx, role)))
		}
	}
	w.must(admin.Create(w.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "assay-executor"}, RoleRef: roleRef("Role", "assay-executor"),
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "assay-executor"}},
	}))
	world := &attacks.World{
		Kube: admin, Config: adminConfig, System: systemNamespace, Namespace: w.namespace, Limited: w.limited(),
		// The test environment has no controller for role aggregation, so extend the role edit directly.
		TenantRoles: []string{"assay-view", "assay-edit"},
		Sound: func(namespace, name string) *assayv1alpha1.BenchmarkRun {
			run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: *w.run.Spec.DeepCopy()}
			run.Spec.Placement.NodeSelector = map[string]string{"nowhere": "nowhere"}
			return run
		},
	}
	world.Hire(t)
	for _, part := range []attacks.Part{attacks.API, attacks.Limited} {
		attacks.Run(t, world, attacks.Of(part))
	}
}
