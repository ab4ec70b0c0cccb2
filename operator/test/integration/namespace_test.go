package integration

import (
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// boundIn gives scopedUser the rights of an operator in the namespace of the test only, as the chart does.
func boundIn(w *world, o *testOperator) {
	o.connection = scopedConfig
	w.must(admin.Create(w.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: runsRole}, RoleRef: roleRef("ClusterRole", runsRole), Subjects: subjects(scopedUser),
	}))
	w.untilMay(scopedUser, "list", assayv1alpha1.GroupVersion.Group, "benchmarkruns", w.namespace)
}

// A namespace is deleted while a run in it holds a node. The operator's RoleBinding is deleted first.
func TestNamespace_DeletionReleasesRunAndNode(t *testing.T) {
	t.Parallel()
	w := started(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode
	}, boundIn)
	node, uid := w.node("node-a"), string(w.get().UID)
	w.untilTaint(node, uid)
	pod := w.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodRunning})

	// In place of the controller of namespaces, which the suite does not have.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	w.must(admin.Delete(w.ctx, namespace))
	w.must(admin.DeleteAllOf(w.ctx, &rbacv1.RoleBinding{}, client.InNamespace(w.namespace)))
	w.until("the operator has no rights in the namespace", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: scopedUser, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: w.namespace},
		}}
		if err := admin.Create(w.ctx, review); err != nil || review.Status.Allowed {
			return errors.Join(err, errors.New("it has"))
		}
		return nil
	})
	w.must(admin.Delete(w.ctx, w.run))
	w.until("the run is gone", func() error { return w.gone(w.run.DeepCopy()) })
	flow, err := w.getWorkflow("scan-w000")
	w.must(err)
	w.must(admin.Delete(w.ctx, flow))

	// As long as the namespace is there, a pod may be too.
	w.expire(node)
	w.must(retry.RetryOnConflict(retry.DefaultRetry, func() error { // The operator looks at the lease, and restores the taint.
		var live corev1.Node
		if err := admin.Get(w.ctx, client.ObjectKey{Name: node}, &live); err != nil {
			return err
		}
		live.Spec.Taints = nil
		return admin.Update(w.ctx, &live)
	}))
	w.untilTaint(node, uid)
	if held := w.leaseOf(node); !held.Held() {
		t.Error("the node is free while a pod of the run is there")
	}
	w.deletePod(pod)
	w.must(admin.Get(w.ctx, client.ObjectKeyFromObject(namespace), namespace))
	namespace.Spec.Finalizers = nil
	w.must(admin.SubResource("finalize").Update(w.ctx, namespace))
	w.until("the namespace is gone", func() error { return w.gone(namespace) })
	w.until("the node is free", func() error {
		if held := w.leaseOf(node); held.Held() {
			return errors.New("it is not")
		}
		return nil
	})
	w.untilTaint(node, "")
}
