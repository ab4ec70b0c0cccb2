package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

const leaseTaint = "assay.dev/leased"

// create creates a run as a user, and deletes it when the test ends.
func (w *World) create(t *testing.T, run *assayv1alpha1.BenchmarkRun) error {
	t.Helper()
	w.remove(t, run)
	t.Cleanup(func() { w.remove(t, run) })
	return w.as(t, Tenant).Create(t.Context(), run)
}

// remove deletes a run and waits until it is gone.
func (w *World) remove(t *testing.T, run *assayv1alpha1.BenchmarkRun) {
	t.Helper()
	ctx := context.Background() // After the test, too.
	until(t, "run "+run.Name+" is gone", func() error {
		err := w.Kube.Delete(ctx, &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: run.Name}})
		if err == nil {
			err = fmt.Errorf("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}

func (w *World) get(t *testing.T, run *assayv1alpha1.BenchmarkRun) *assayv1alpha1.BenchmarkRun {
	t.Helper()
	var current assayv1alpha1.BenchmarkRun
	if err := w.Kube.Get(t.Context(), client.ObjectKeyFromObject(run), &current); err != nil {
		t.Fatal(err)
	}
	return &current
}

// untilCondition waits until a condition of a run has a status and a reason.
func (w *World) untilCondition(t *testing.T, run *assayv1alpha1.BenchmarkRun, kind string, status metav1.ConditionStatus,
	reason string) *metav1.Condition {
	t.Helper()
	var condition *metav1.Condition
	until(t, fmt.Sprintf("%s of %s is %s (%s)", kind, run.Name, status, reason), func() error {
		now := w.get(t, run)
		if condition = meta.FindStatusCondition(now.Status.Conditions, kind); condition == nil || condition.Status != status ||
			condition.Reason != reason {
			return fmt.Errorf("conditions %+v", now.Status.Conditions)
		}
		return nil
	})
	return condition
}

func merge(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

const verdictGo = `{"status":{"verdict":"Go"}}`

// writesAVerdict is a write of the status by a user without that right.
func writesAVerdict(who func(*World) string) func(*testing.T, *World) {
	return func(t *testing.T, w *World) {
		run := w.Sound(w.Namespace, "attack-status")
		if err := w.create(t, run); err != nil {
			t.Fatal(err)
		}
		forbidden(t, w.as(t, who(w)).Status().Patch(t.Context(), w.get(t, run), merge(verdictGo)))
	}
}

func bornWithAVerdict(t *testing.T, w *World) {
	run := w.Sound(w.Namespace, "attack-born-go")
	run.Status.Verdict, run.Status.Phase = assayv1alpha1.VerdictGo, assayv1alpha1.PhaseSucceeded
	if err := w.create(t, run); err != nil {
		t.Fatal(err)
	}
	if status := w.get(t, run).Status; status.Verdict != "" || status.Phase == assayv1alpha1.PhaseSucceeded {
		t.Errorf("it is %s with the verdict %s", status.Phase, status.Verdict)
	}
}

func changesATemplate(t *testing.T, w *World) {
	template := &assayv1alpha1.BenchmarkTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "pir-scan"}}
	tenant := w.as(t, Tenant)
	forbidden(t, tenant.Delete(t.Context(), template.DeepCopy(), client.DryRunAll))
	forbidden(t, tenant.Patch(t.Context(), template.DeepCopy(), merge(`{"spec":{"image":"attackers/own"}}`), client.DryRunAll))
	forbidden(t, tenant.Create(t.Context(), &assayv1alpha1.BenchmarkTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "attackers-own"},
		Spec:       assayv1alpha1.BenchmarkTemplateSpec{Image: "a", Command: []string{"/a"}},
	}, client.DryRunAll))
}

func toleration(toleration corev1.Toleration, says string) func(*testing.T, *World) {
	return func(t *testing.T, w *World) {
		run := w.Sound(w.Namespace, "attack-toleration")
		run.Spec.Placement.Tolerations = []corev1.Toleration{toleration}
		refused(t, w.as(t, Tenant).Create(t.Context(), run, client.DryRunAll), says)
	}
}

// numbers returns this many values of an axis.
func numbers(name string, count int) assayv1alpha1.SweepAxis {
	out := assayv1alpha1.SweepAxis{Name: name}
	for i := range count {
		out.Values = append(out.Values, fmt.Sprint(i+1))
	}
	return out
}

func tooManyCells(t *testing.T, w *World) {
	big := w.Sound(w.Namespace, "attack-cells")
	big.Spec.Sweep.Axes = []assayv1alpha1.SweepAxis{numbers("batchSize", 100), numbers("rows", 100), numbers("iterations", 8)}
	refused(t, w.as(t, Tenant).Create(t.Context(), big, client.DryRunAll), "spec.sweep")
	// Only the operator can count an exclusion.
	big.Spec.Sweep.Axes = big.Spec.Sweep.Axes[:2]
	big.Spec.Parameters = nil
	big.Spec.Sweep.Exclude = []assayv1alpha1.ParameterValues{{"batchSize": "1"}}
	if err := w.create(t, big); err != nil {
		t.Fatal(err)
	}
	w.untilCondition(t, big, assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonInvalidExperiment)
}

func configMapInTheWay(t *testing.T, w *World) {
	run := w.Sound(w.Namespace, "attack-map")
	run.Spec.Placement.NodeSelector = nil
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: run.Name + "-w000"},
		Data: map[string]string{"precious": "yes"}}
	if err := w.Kube.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Kube.Delete(context.Background(), theirs) })
	if err := w.create(t, run); err != nil {
		t.Fatal(err)
	}
	w.untilCondition(t, run, assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonExecutionFailed)
	var configMap corev1.ConfigMap
	if err := w.Kube.Get(t.Context(), client.ObjectKeyFromObject(theirs), &configMap); err != nil || len(configMap.Data) != 1 ||
		configMap.Data["precious"] != "yes" {
		t.Errorf("it holds %v (%v)", configMap.Data, err)
	}
}

// afterAcceptance changes an accepted run to one that the policy or the gates would have rejected.
func afterAcceptance(t *testing.T, w *World) {
	run := w.Sound(w.Namespace, "attack-edit")
	if err := w.create(t, run); err != nil {
		t.Fatal(err)
	}
	w.untilCondition(t, run, assayv1alpha1.ConditionAccepted, metav1.ConditionTrue, assayv1alpha1.ReasonAccepted)
	for field, value := range map[string]any{
		"placement": map[string]any{"maxNodes": 100, "cpus": 1024, "exclusive": "Node"},
		"budget":    map[string]any{"wallClock": "87600h", "trials": 100000},
		"retry":     map[string]any{"limit": 9}, "gates": []any{}, "design": map[string]any{"seed": 7}, "parameters": map[string]any{"rows": "1"},
		"arms": []any{map[string]any{"name": "loop", "baseline": true}}, "environment": map[string]any{"onViolation": "Invalid"},
	} {
		raw, err := json.Marshal(map[string]any{"spec": map[string]any{field: value}})
		if err != nil {
			t.Fatal(err)
		}
		refused(t, w.as(t, Tenant).Patch(t.Context(), w.get(t, run), client.RawPatch(types.MergePatchType, raw), client.DryRunAll),
			field+" is immutable")
	}
}

func (w *World) aNode(t *testing.T) *corev1.Node {
	t.Helper()
	var nodes corev1.NodeList
	if err := w.Kube.List(t.Context(), &nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("no nodes: %v", err)
	}
	return &nodes.Items[0]
}

// patchesANode is a change of a node by a user without that right.
func patchesANode(who func(*World) string, patch string) func(*testing.T, *World) {
	return func(t *testing.T, w *World) {
		forbidden(t, w.as(t, who(w)).Patch(t.Context(), w.aNode(t), merge(patch), client.DryRunAll))
	}
}

func tenant(*World) string { return Tenant }

// readsSecrets reads Secrets of the release and of a namespace with runs.
func readsSecrets(who func(*World) string) func(*testing.T, *World) {
	return func(t *testing.T, w *World) {
		for _, namespace := range []string{w.System, w.Namespace} {
			forbidden(t, w.as(t, who(w)).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "assay-ledger"}, &corev1.Secret{}))
			forbidden(t, w.as(t, who(w)).List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)))
		}
	}
}

func makesAPod(t *testing.T, w *World) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "hijacked"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	forbidden(t, w.as(t, w.operator()).Create(t.Context(), pod, client.DryRunAll))
}

// block returns a pod as Argo's controller creates it for a block of a run.
func (w *World) block(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{
			"assay.dev/run": "scan", "assay.dev/run-uid": "0000", "assay.dev/wave": "0", "assay.dev/part": "block",
			"app.kubernetes.io/managed-by": "assay-operator", "app": "mine"}},
		Spec: corev1.PodSpec{
			// No scheduler has this name.
			SchedulerName: "nobody", AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "a", Image: "a", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}

// maker grants a tenant the right to create pods and workflows, as Kubernetes' role edit and Argo's do.
func (w *World) maker(t *testing.T) client.Client {
	t.Helper()
	name := metav1.ObjectMeta{Namespace: w.Namespace, Name: "attack-maker"}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"", "argoproj.io"},
			Resources: []string{"pods", "pods/status", "pods/exec", "pods/attach", "workflows"},
			Verbs:     []string{"get", "create", "patch", "update"}}}},
		&rbacv1.RoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: Tenant}}},
	} {
		if err := client.IgnoreAlreadyExists(w.Kube.Create(t.Context(), object)); err != nil {
			t.Fatal(err)
		}
	}
	return w.as(t, Tenant)
}

// executes is a rule of the policy.
const executes = "who may execute"

func makesABlock(t *testing.T, w *World) {
	tenant := w.maker(t)
	own := w.block("attack-own")
	own.Labels = map[string]string{"app": "mine"}
	until(t, "the tenant may make pods", func() error { return tenant.Create(t.Context(), own, client.DryRunAll) })
	for _, label := range []string{"assay.dev/run", "assay.dev/run-uid", "assay.dev/wave", "assay.dev/part", "app.kubernetes.io/managed-by"} {
		pod := w.block("attack-block")
		pod.Labels = map[string]string{label: w.block("").Labels[label]}
		refused(t, tenant.Create(t.Context(), pod, client.DryRunAll), executes)
	}
	flow := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
		"spec": map[string]any{"entrypoint": "a", "templates": []any{}}}}
	flow.SetNamespace(w.Namespace)
	flow.SetName("scan-w000-a1")
	flow.SetLabels(w.block("").Labels)
	refused(t, tenant.Create(t.Context(), flow, client.DryRunAll), executes)
}

func takesAName(t *testing.T, w *World) {
	tenant := w.maker(t)
	pod := w.block("attack-block")
	if err := w.Kube.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Kube.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	until(t, "the tenant may change its pods", func() error {
		return tenant.Patch(t.Context(), pod.DeepCopy(), merge(`{"metadata":{"labels":{"app":"theirs"}}}`), client.DryRunAll)
	})
	for _, patch := range []string{`{"assay.dev/run-uid":null}`, `{"assay.dev/part":"analysis"}`, `{"assay.dev/run":"other"}`, `{"assay.dev/wave":"1"}`,
		`{"app.kubernetes.io/managed-by":null}`} {
		labels := merge(`{"metadata":{"labels":` + patch + `}}`)
		refused(t, tenant.Patch(t.Context(), pod.DeepCopy(), labels, client.DryRunAll), executes)
		refused(t, tenant.Status().Patch(t.Context(), pod.DeepCopy(), labels,
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}}), executes)
	}
}

// entersAPod changes the program of a pod of a run, and executes another one in it. Both could report a forged analysis.
func entersAPod(t *testing.T, w *World) {
	tenant := w.maker(t)
	pod := w.block("attack-entered-w000-analyze-1")
	pod.Labels["assay.dev/part"] = "analysis"
	own := w.block("attack-own-pod")
	own.Labels = map[string]string{"app": "mine"}
	for _, of := range []*corev1.Pod{pod, own} {
		if err := w.Kube.Create(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Kube.Delete(context.Background(), of, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
	image := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/containers/0/image", "value": "theirs"}]`))
	until(t, "the tenant may change its pods", func() error {
		return tenant.Patch(t.Context(), own.DeepCopy(), image, client.DryRunAll)
	})
	refused(t, tenant.Patch(t.Context(), pod.DeepCopy(), image, client.DryRunAll), executes)
	for _, how := range []string{"exec", "attach"} {
		// Without a kubelet the admitted request fails later.
		if err := w.connect(t, own.Name, how); err == nil || strings.Contains(err.Error(), executes) {
			t.Errorf("%s into a pod that is not a run's: %v", how, err)
		}
		refused(t, w.connect(t, pod.Name, how), executes)
	}
}

// connect requests to execute a program in a pod, or to attach to it, as the tenant.
func (w *World) connect(t *testing.T, pod, how string) error {
	t.Helper()
	config := rest.CopyConfig(w.Config)
	config.Impersonate.UserName = Tenant
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube.CoreV1().RESTClient().Post().Namespace(w.Namespace).Resource("pods").Name(pod).SubResource(how).
		VersionedParams(&corev1.PodExecOptions{Command: []string{"/assay"}, Stdout: true}, clientgoscheme.ParameterCodec).
		Do(t.Context()).Error()
}

func writesElsewhere(t *testing.T, w *World) {
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hijacked"}}
	forbidden(t, w.as(t, w.operator()).Create(t.Context(), theirs, client.DryRunAll))
}

// takesRights is an operator that grants itself rights, or uses verbs outside its rights.
func takesRights(t *testing.T, w *World) {
	operator := w.as(t, w.operator())
	admin := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	forbidden(t, operator.Create(t.Context(),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "hijacked"}, RoleRef: admin}, client.DryRunAll))
	forbidden(t, operator.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "hijacked"}, RoleRef: admin},
		client.DryRunAll))
	forbidden(t, operator.Delete(t.Context(), w.aNode(t), client.DryRunAll))
	forbidden(t, operator.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "hijacked"}},
		client.DryRunAll))
	// It creates runs of schedules, but only reads the objects that they come from.
	theirs := metav1.ObjectMeta{Namespace: w.Namespace, Name: "hijacked"}
	for _, object := range []client.Object{
		&assayv1alpha1.BenchmarkTemplate{ObjectMeta: theirs}, &assayv1alpha1.BenchmarkSchedule{ObjectMeta: theirs},
		&assayv1alpha1.BenchmarkRevision{ObjectMeta: theirs},
	} {
		forbidden(t, operator.Create(t.Context(), object, client.DryRunAll))
	}
}

// asksWithoutAToken is a request to the API server by a program in a run's pod, which can reach it because Argo's executor needs to.
func asksWithoutAToken(t *testing.T, w *World) {
	anonymous, err := client.New(rest.AnonymousClientConfig(w.Config), client.Options{Scheme: w.Kube.Scheme(), Mapper: w.Kube.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.PodList{}, &assayv1alpha1.BenchmarkRunList{}} {
		if err := anonymous.List(t.Context(), list, client.InNamespace(w.Namespace)); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(
			err) {
			t.Errorf("%T: error %v, want one that it is forbidden", list, err)
		}
	}
	if err := anonymous.Create(t.Context(), w.Sound(w.Namespace, "attack-nobody"), client.DryRunAll); !apierrors.IsForbidden(err) &&
		!apierrors.IsUnauthorized(err) {
		t.Errorf("a run: error %v, want one that it is forbidden", err)
	}
}
