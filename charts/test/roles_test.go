package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Kubernetes' role view may read runs, edit may create them, admin also their templates; no role may write results.
func TestRoles_AggregateToKubernetesRoles(t *testing.T) {
	// Kubernetes itself puts view into edit, and edit into admin.
	levels := []string{"view", "edit", "admin"}
	type question struct{ verb, resource string }
	want := map[question]string{
		{"list", "benchmarkruns"}: "view", {"watch", "benchmarktemplates"}: "view", {"get", "benchmarkruns/status"}: "view",
		{"create", "benchmarkruns"}: "edit", {"patch", "benchmarkruns"}: "edit", {"deletecollection", "benchmarkruns"}: "edit",
		{"create", "benchmarktemplates"}: "admin", {"update", "benchmarktemplates"}: "admin",
		{"update", "benchmarkruns/status"}: "nobody", {"patch", "benchmarkruns/status"}: "nobody",
		{"update", "benchmarkruns/finalizers"}: "nobody", {"update", "benchmarktemplates/status"}: "nobody",
		{"list", "benchmarkschedules"}: "view", {"get", "benchmarkschedules/status"}: "view", {"watch", "benchmarkrevisions"}: "view",
		{"create", "benchmarkschedules"}: "edit", {"delete", "benchmarkrevisions"}: "edit",
		{"patch", "benchmarkschedules/status"}: "nobody", {"update", "benchmarkrevisions/status"}: "nobody",
	}
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			rules := map[string][]rbacv1.PolicyRule{}
			for _, object := range render(t, values).of("ClusterRole") {
				for _, level := range levels {
					if object.GetLabels()["rbac.authorization.k8s.io/aggregate-to-"+level] == "true" {
						rules[level] = append(rules[level], rulesOf(t, object)...)
					}
				}
			}
			for q, level := range want {
				got := "nobody"
				for _, l := range slices.Backward(levels) {
					if slices.ContainsFunc(rules[l], func(r rbacv1.PolicyRule) bool {
						return slices.Contains(r.APIGroups, "assay.dev") && slices.Contains(r.Resources, q.resource) && slices.Contains(r.Verbs, q.verb)
					}) {
						got = l
					}
				}
				if got != level {
					t.Errorf("%s %s takes the role %s, want %s", q.verb, q.resource, got, level)
				}
			}
			for level, list := range rules {
				for _, rule := range list {
					// Ledgers are read with the keys of a Secret. An aggregated role may grant no other Secret.
					if level == "view" && slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.Verbs, []string{"get"}) &&
						len(rule.ResourceNames) > 0 {
						for _, name := range rule.ResourceNames {
							if !strings.HasSuffix(name, "-ledger-read") && !strings.HasSuffix(name, "-ledger-ca") {
								t.Errorf("%s reads the Secret %s", level, name)
							}
						}
						continue
					}
					if !slices.Equal(rule.APIGroups, []string{"assay.dev"}) {
						t.Errorf("%s is given %s of %s", level, strings.Join(rule.Verbs, ", "), strings.Join(rule.APIGroups, ", "))
					}
				}
			}
		})
	}
}

func TestRoles_CreatedNamespacesRequireRestrictedPods(t *testing.T) {
	for _, object := range render(t, `{runNamespaces: [team-a, team-b], createRunNamespaces: true}`).of("Namespace") {
		if got := object.GetLabels()["pod-security.kubernetes.io/enforce"]; got != "restricted" {
			t.Errorf("namespace %s enforces %q", object.GetName(), got)
		}
	}
}

// The attacks that need no cluster are tried by people with these roles (operator/test/integration).
func TestRoles_AreThoseOfConfig(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "operator", "config", "rbac", "people.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	chart := render(t, ``)
	roles := strings.Split(string(raw), "\n---\n")
	for _, text := range roles {
		var want rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		got := into[rbacv1.ClusterRole](t, chart.find(t, "ClusterRole/"+want.Name))
		// Secrets of the bundled store are the release's own.
		rules := slices.DeleteFunc(got.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Equal(rule.Resources, []string{"secrets"}) })
		if !reflect.DeepEqual(rules, want.Rules) {
			t.Errorf("%s: the chart's rules are %+v and config/rbac/people.yaml has %+v", want.Name, rules, want.Rules)
		}
		for label := range want.Labels {
			if got.Labels[label] != want.Labels[label] {
				t.Errorf("%s: the chart's label %s is %q", want.Name, label, got.Labels[label])
			}
		}
	}
	if len(roles) != 4 {
		t.Errorf("%d roles, want view, edit, admin and record", len(roles))
	}
}
