package chart

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Where it is not known who makes the pods of runs, only workflows are looked at: a policy for pods would keep every run from starting.
func TestRunsPolicy_KnowsEveryControllerOfPods(t *testing.T) {
	for name, tc := range map[string]struct {
		values, controller string
		want               []string
	}{
		"a bundled Argo": {"{runNamespaces: [team-a]}", "Role/team-a/assay-argo-controller-runs", []string{"workflows", "pods", "pods/status"}},
		"an external Argo that has its rights from the chart": {
			"{runNamespaces: [team-a], argo: {mode: external, external: {namespace: argo, serviceAccount: argo}}}",
			"Role/team-a/assay-argo-controller-runs", []string{"workflows", "pods", "pods/status"}},
		"an external Argo that has its rights from elsewhere": {"{runNamespaces: [team-a], argo: {mode: external}}", "", []string{"workflows"}},
	} {
		t.Run(name, func(t *testing.T) {
			chart := render(t, tc.values)
			spec := into[admissionv1.ValidatingAdmissionPolicySpec](t, chart.find(t, "ValidatingAdmissionPolicy/assay-operator-runs"), "spec")
			var got []string
			for _, rule := range spec.MatchConstraints.ResourceRules {
				got = append(got, rule.Resources...)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("it looks at %v, want %v", got, tc.want)
			}
			protected := slices.ContainsFunc(chart.objects, func(object unstructured.Unstructured) bool {
				return object.GetKind() == "ValidatingAdmissionPolicy" && object.GetName() == "assay-operator-pods"
			})
			if protected != (tc.controller != "") {
				t.Errorf("a policy protects the pods of runs: %v", protected)
			}
			executes := func(role string) bool {
				return slices.ContainsFunc(rulesOf(t, chart.find(t, role)), func(rule rbacv1.PolicyRule) bool {
					return slices.Contains(rule.Resources, "benchmarkruns") && slices.Contains(rule.Verbs, "execute")
				})
			}
			if !executes("Role/team-a/assay-operator-runs") {
				t.Error("the operator may not make a workflow")
			}
			if tc.controller != "" && !executes(tc.controller) {
				t.Error("Argo's controller may not make a pod")
			}
		})
	}
}

func TestRunsPolicy_OnlyTheEngineCreatesObjectsOfRuns(t *testing.T) {
	c := startCluster(t)
	c.createNamespace(t, "team-a")
	c.createNamespace(t, "elsewhere")
	c.install(t, "{runNamespaces: [team-a]}")
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "author"}},
		// As Kubernetes' own role edit and Argo's allow; roles are not aggregated here.
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "author"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", "argoproj.io"}, Resources: []string{"pods", "workflows"}, Verbs: []string{"create"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "author"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "author"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "team-a", Name: "author"}}},
	} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	in := func(namespace string, object client.Object) client.Object {
		object.SetNamespace(namespace)
		return object
	}
	pod := func(labels map[string]string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p", Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	}
	flow := func(labels map[string]string) client.Object {
		out := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"entrypoint": "a"}}}
		out.SetAPIVersion("argoproj.io/v1alpha1")
		out.SetKind("Workflow")
		out.SetNamespace("team-a")
		out.SetName("scan-w000")
		out.SetLabels(labels)
		return out
	}
	own, runs := map[string]string{"app": "mine"}, map[string]string{"assay.dev/run": "scan", "assay.dev/run-uid": "0000"}
	author, operator := c.as(t, "team-a", "author"), c.as(t, releaseNamespace, "assay-operator")
	controller := c.as(t, releaseNamespace, "assay-argo-controller")
	const refused = "who may execute"
	c.untilPoliciesHold(t, func() error { return author.Create(t.Context(), pod(runs), client.DryRunAll) })
	for name, tc := range map[string]struct {
		who    client.Client
		object client.Object
		refuse string
	}{
		"Argo's controller makes a block's pod":        {controller, pod(runs), ""},
		"the operator makes a wave's workflow":         {operator, flow(runs), ""},
		"an administrator repairs something":           {c.Client, pod(runs), ""},
		"an author makes a pod":                        {author, pod(own), ""},
		"an author makes a pod of a run":               {author, pod(runs), refused},
		"a pod is created in a namespace without runs": {author, in("elsewhere", pod(runs)), ""},
		"Argo's controller makes a workflow anew":      {controller, flow(own), ""},
		"an author makes another workflow of a run":    {author, flow(runs), refused},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.who.Create(t.Context(), tc.object, client.DryRunAll)
			if tc.refuse == "" && err != nil || tc.refuse != "" && (err == nil || !strings.Contains(err.Error(), tc.refuse)) {
				t.Errorf("told %v, want %q", err, tc.refuse)
			}
		})
	}
}
