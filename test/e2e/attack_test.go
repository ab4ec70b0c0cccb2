package e2e

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

var attackSuite = flag.Bool("attack", false, "with the attacks that are end-to-end tests of their own, and the figure")

// An attack fails its test when it succeeds. It names the promise of docs/threat-model.md that it breaks and the guard that stands
// against it: taken out, the attack succeeds.
type attack struct {
	name, promise, guard string
	try                  func(t *testing.T)
}

const (
	tenantUser   = "attacker"
	operatorUser = "system:serviceaccount:" + system + ":assay-operator"
	executorUser = "system:serviceaccount:" + namespace + ":assay-executor"
)

var attacks = []attack{
	{"a tenant writes its own verdict", "Who may make runs may not write what was measured", "charts/assay/templates/roles.yaml: edit has no benchmarkruns/status",
		func(t *testing.T) {
			apply(t, unplaceable("attack-status"))
			forbidden(t, as(t, tenantUser).Status().Patch(t.Context(), getRun(t, "attack-status"), verdictGo()))
		}},
	{"a tenant makes a run that has its verdict already", "Who may make runs may not write what was measured", "the status subresource of the CRD",
		func(t *testing.T) {
			run := unplaceable("attack-born-go")
			run.Namespace, run.Status.Verdict, run.Status.Phase = namespace, assayv1alpha1.VerdictGo, assayv1alpha1.PhaseSucceeded
			remove(t, run.Name)
			t.Cleanup(func() { remove(t, run.Name) })
			if err := as(t, tenantUser).Create(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			if found := getRun(t, run.Name).Status; found.Verdict != "" || found.Phase == assayv1alpha1.PhaseSucceeded {
				t.Errorf("it is %s with the verdict %s", found.Phase, found.Verdict)
			}
		}},
	{"a tenant changes what others' runs execute", "Who may make runs may not write what was measured", "charts/assay/templates/roles.yaml: edit has no benchmarktemplates",
		func(t *testing.T) {
			template := &assayv1alpha1.BenchmarkTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pir-scan"}}
			forbidden(t, as(t, tenantUser).Delete(t.Context(), template))
		}},
	{"an effect that Argo's controller evaluates", "What a program prints, its parameters and names arrive as they are, through Argo and into the report",
		"the rules of spec.placement.tolerations in the CRD", refusedToleration(corev1.Toleration{Key: "a", Effect: "{{=sprig.env(\"HOME\")}}"}, "effect")},
	{"a toleration of others' leases", "Of nodes it changes the taint of a lease and nothing else", "the same",
		refusedToleration(corev1.Toleration{Key: leaseTaint, Operator: corev1.TolerationOpExists}, leaseTaint)},
	{"a toleration of everything", "Of nodes it changes the taint of a lease and nothing else", "the same",
		refusedToleration(corev1.Toleration{Operator: corev1.TolerationOpExists}, "key")},
	{"160,000 cells", "A run that asks for too much, or that nobody can read, is refused before it takes anything", "operator/internal/experiment/limits.go and the rules of spec.sweep in the CRD", tooManyCells},
	{"a ConfigMap in the way of a run's plan", "The operator writes only where runs are, and reads nothing else but nodes",
		"the check of owners in operator/internal/apply", configMapInTheWay},
	{"a hijacked operator labels a node", "Of nodes it changes the taint of a lease and nothing else", "ValidatingAdmissionPolicy assay-operator-nodes", hijackedNode(
		`{"metadata":{"labels":{"hijacked":"yes"}}}`)},
	{"a hijacked operator taints a node for others than a lease", "Of nodes it changes the taint of a lease and nothing else", "the same", hijackedNode(
		`{"spec":{"taints":[{"key":"hijacked","effect":"NoExecute"}]}}`)},
	{"a hijacked operator reads a Secret", "It reads no Secret through the API and makes no pod", "config/rbac", func(t *testing.T) {
		forbidden(t, as(t, operatorUser).Get(t.Context(), client.ObjectKey{Namespace: system, Name: "assay-ledger"}, &corev1.Secret{}))
	}},
	{"a hijacked operator makes a pod", "It reads no Secret through the API and makes no pod", "config/rbac", func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hijacked"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		forbidden(t, as(t, operatorUser).Create(t.Context(), pod, client.DryRunAll))
	}},
	{"a hijacked operator writes where no runs are", "The operator writes only where runs are, and reads nothing else but nodes", "a Role for each run namespace",
		func(t *testing.T) {
			theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hijacked"}}
			forbidden(t, as(t, operatorUser).Create(t.Context(), theirs, client.DryRunAll))
		}},
	{"what stores a block's results reads a Secret", "It reads no Secret through the API and makes no pod", "charts/assay/templates/runs/executor.yaml", func(t *testing.T) {
		forbidden(t, as(t, executorUser).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "assay-ledger"}, &corev1.Secret{}))
	}},
	{"what stores a block's results writes a verdict", "Who may make runs may not write what was measured", "charts/assay/templates/runs/executor.yaml", func(t *testing.T) {
		apply(t, unplaceable("attack-executor"))
		forbidden(t, as(t, executorUser).Status().Patch(t.Context(), getRun(t, "attack-executor"), verdictGo()))
	}},
	{"metrics without a token", "The operator's metrics are for tokens that the cluster allows", "the filter of the operator's metrics server",
		closed("https:assay-operator:metrics", "/metrics")},
	{"Argo's server without a token", "Argo's server shows a client what its token may see, and reads no Secret itself", "--auth-mode=client",
		closed("http:assay-argo-server:web", "/api/v1/workflows/"+namespace)},
	{"a program looks for credentials and rights in its pod", "Every pod of the release and every part of a block's pod is restricted",
		"operator/internal/workflow: the pod's security context, its mounts and its environment", credentialsOfAProgram},
}

// byName are attacks that the other tests of this package are.
var byName = []attack{
	{"a hostile candidate", "", "", TestAHostileCandidateChangesNothing},
	{"a candidate that ends its block", "", "", TestACandidateThatEndsItsBlockFails},
	{"expressions in parameters", "", "", TestAParameterValueArrivesVerbatim},
}

func TestAttacks(t *testing.T) {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tenantUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenantUser}},
	}
	if err := kube.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.Delete(context.Background(), binding) })
	// Roles are aggregated and read by the API server a moment after they were made.
	eventually(t, time.Minute, "the tenant may list runs", func() (bool, string) {
		err := as(t, tenantUser).List(t.Context(), &assayv1alpha1.BenchmarkRunList{}, client.InNamespace(namespace))
		return err == nil, fmt.Sprint(err)
	})
	all := attacks
	if *attackSuite {
		all = append(append([]attack{}, all...), byName...)
	}
	succeeded := 0
	for _, a := range all {
		if !t.Run(a.name, func(t *testing.T) {
			t.Logf("promise: %s; guard: %s", a.promise, a.guard)
			a.try(t)
		}) {
			succeeded++
		}
	}
	if *attackSuite {
		t.Logf(`{"figure":"security.tenant_attacks_succeeded","value":%d,"unit":"1","low":%[1]d,"high":%[1]d,"samples":%d}`, succeeded, len(all))
	}
}

// as is a client that is somebody else.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.Impersonate.UserName = user
	if parts := strings.Split(user, ":"); len(parts) == 4 {
		config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + parts[2], "system:authenticated"}
	}
	out, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func forbidden(t *testing.T, err error) {
	t.Helper()
	// A policy says so in a message of its own, with the code of an invalid object.
	if !apierrors.IsForbidden(err) && (err == nil || !strings.Contains(err.Error(), "denied request")) {
		t.Errorf("error %v, want one that it is forbidden", err)
	}
}

func verdictGo() client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"status":{"verdict":"Go"}}`))
}

// unplaceable is a run that stays where it is.
func unplaceable(name string) *assayv1alpha1.BenchmarkRun {
	return with(smallScan(name, 3), func(run *assayv1alpha1.BenchmarkRun) {
		run.Spec.Placement.NodeSelector = map[string]string{"nowhere": "nowhere"}
	})
}

func refusedToleration(toleration corev1.Toleration, says string) func(*testing.T) {
	return func(t *testing.T) {
		run := unplaceable("attack-toleration")
		run.Namespace, run.Spec.Placement.Tolerations = namespace, []corev1.Toleration{toleration}
		if err := as(t, tenantUser).Create(t.Context(), run, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that it is invalid and says %q", err, says)
		}
	}
}

func tooManyCells(t *testing.T) {
	axis := func(name string, count int) assayv1alpha1.SweepAxis {
		out := assayv1alpha1.SweepAxis{Name: name}
		for i := range count {
			out.Values = append(out.Values, fmt.Sprint(i+1))
		}
		return out
	}
	big := unplaceable("attack-cells")
	big.Namespace = namespace
	big.Spec.Sweep.Axes = []assayv1alpha1.SweepAxis{axis("batchSize", 100), axis("rows", 100), axis("iterations", 8)}
	if err := as(t, tenantUser).Create(t.Context(), big, client.DryRunAll); !apierrors.IsInvalid(err) {
		t.Errorf("80,000 combinations of two arms: error %v, want that they are invalid", err)
	}
	// With an exclusion only the operator can count.
	before := restarts(t)
	big.Spec.Parameters = values{"warmupIterations": "1"}
	big.Spec.Sweep.Axes = big.Spec.Sweep.Axes[:2]
	big.Spec.Sweep.Exclude = []values{{"batchSize": "1"}}
	apply(t, big)
	untilCondition(t, big.Name, assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, "spec.sweep", time.Minute)
	if after := restarts(t); after != before {
		t.Errorf("the operator was started again: %d times, %d before", after, before)
	}
}

func restarts(t *testing.T) (count int32) {
	t.Helper()
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "operator"}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			count += status.RestartCount
		}
	}
	return count
}

func configMapInTheWay(t *testing.T) {
	const name = "attack-map"
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-w000"}, Data: map[string]string{"precious": "yes"}}
	if err := as(t, tenantUser).Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.Delete(context.Background(), theirs) })
	apply(t, smallScan(name, 3))
	untilCondition(t, name, assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, theirs.Name, 2*time.Minute)
	var found corev1.ConfigMap
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(theirs), &found); err != nil || len(found.Data) != 1 || found.Data["precious"] != "yes" {
		t.Errorf("it holds %v (%v)", found.Data, err)
	}
}

func hijackedNode(patch string) func(*testing.T) {
	return func(t *testing.T) {
		var nodes corev1.NodeList
		if err := kube.List(t.Context(), &nodes); err != nil || len(nodes.Items) == 0 {
			t.Fatalf("no nodes: %v", err)
		}
		forbidden(t, as(t, operatorUser).Patch(t.Context(), &nodes.Items[0], client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll))
	}
}

// closed reaches a port through the API server, which passes on no token of the one who asks.
func closed(service, path string) func(*testing.T) {
	return func(t *testing.T) {
		out, err := try("kubectl", "get", "--raw", "/api/v1/namespaces/"+system+"/services/"+service+"/proxy"+path)
		if err == nil || !strings.Contains(out, "Unauthorized") && !strings.Contains(out, "Forbidden") && !strings.Contains(out, "token") &&
			!strings.Contains(out, "must be logged in") && !strings.Contains(out, "forbidden") {
			t.Errorf("it answers, or is not there to ask: %v\n%.500s", err, out)
		}
	}
}

func credentialsOfAProgram(t *testing.T) {
	const name = "attack-credentials"
	apply(t, smallScan(name, 3))
	var pod corev1.Pod
	eventually(t, 2*time.Minute, "a block has its pod", func() (bool, string) {
		for _, found := range podsOf(t, name) {
			if found.Labels["assay.dev/part"] == "block" {
				pod = found
				return true, ""
			}
		}
		return false, conditions(getRun(t, name))
	})
	for _, container := range pod.Spec.Containers {
		if container.Name != "main" {
			continue
		}
		empty := map[string]bool{}
		for _, volume := range pod.Spec.Volumes {
			empty[volume.Name] = volume.EmptyDir != nil
		}
		for _, mount := range container.VolumeMounts {
			// An empty folder may hide where a token would be.
			if strings.Contains(mount.MountPath, "serviceaccount") && !empty[mount.Name] || strings.Contains(mount.Name, "ledger") {
				t.Errorf("the program has %s at %s", mount.Name, mount.MountPath)
			}
		}
		for _, variable := range container.Env {
			if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
				t.Errorf("the program has the Secret %s as %s", variable.ValueFrom.SecretKeyRef.Name, variable.Name)
			}
		}
	}
	// Kubernetes itself judges the pod: what is in it may run where only restricted pods may.
	strict := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attack-restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := kube.Create(t.Context(), strict); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.Delete(context.Background(), strict) })
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: strict.Name, Name: "again"}, Spec: *pod.Spec.DeepCopy()}
	again.Spec.NodeName, again.Spec.ServiceAccountName, again.Spec.DeprecatedServiceAccount = "", "default", ""
	again.Spec.PriorityClassName, again.Spec.Priority, again.Spec.PreemptionPolicy = "", nil, nil
	eventually(t, time.Minute, "the pod is judged", func() (bool, string) {
		err := kube.Create(t.Context(), again.DeepCopy(), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "violates PodSecurity") {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}
