package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A run namespace that was deleted does not fail an upgrade for all others.
func TestUpgrade_LeavesOutNamespacesThatAreGone(t *testing.T) {
	const values = `{runNamespaces: [team-a, team-b], grafana: {mode: external}, prometheus: {mode: external}}`
	cluster := startCluster(t)
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	watched := func(want string) {
		t.Helper()
		var operator appsv1.Deployment
		must(cluster.Get(t.Context(), client.ObjectKey{Namespace: releaseNamespace, Name: "assay-operator"}, &operator))
		if args := operator.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--namespaces="+want) {
			t.Errorf("the operator has %q, want the namespaces %s", args, want)
		}
	}
	remove := func(name string) {
		t.Helper()
		gone := namespace(name)
		must(cluster.Delete(t.Context(), gone))
		// In place of the controller of namespaces.
		must(cluster.DeleteAllOf(t.Context(), &rbacv1.RoleBinding{}, client.InNamespace(name)))
		must(cluster.Get(t.Context(), client.ObjectKeyFromObject(gone), gone))
	}
	finalize := func(name string) {
		t.Helper()
		gone := namespace(name)
		must(cluster.Get(t.Context(), client.ObjectKeyFromObject(gone), gone))
		gone.Spec.Finalizers = nil
		must(cluster.SubResource("finalize").Update(t.Context(), gone))
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); !apierrors.IsNotFound(err) {
			t.Fatalf("namespace %s is there: %v", name, err)
		}
	}
	must(cluster.Create(t.Context(), namespace("team-a")))
	must(cluster.Create(t.Context(), namespace("team-b")))
	cluster.install(t, values)
	watched("team-a,team-b")

	remove("team-b")
	cluster.upgrade(t, values)
	watched("team-a")
	finalize("team-b")
	cluster.upgrade(t, values)
	watched("team-a")

	must(cluster.Create(t.Context(), namespace("team-b")))
	cluster.upgrade(t, values)
	watched("team-a,team-b")
	var binding rbacv1.RoleBinding
	must(cluster.Get(t.Context(), client.ObjectKey{Namespace: "team-b", Name: "assay-operator-runs"}, &binding))

	remove("team-a")
	remove("team-b")
	const none = "none of the namespaces in runNamespaces exists (team-a, team-b)"
	if err := cluster.tryUpgrade(t, values); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("without any namespace: %v", err)
	}
}
