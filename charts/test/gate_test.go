package chart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// gateContainer is the container of the template that other pipelines call.
func gateContainer(t *testing.T, object unstructured.Unstructured) corev1.Container {
	t.Helper()
	templates, ok, err := unstructured.NestedSlice(object.Object, "spec", "templates")
	if err != nil || !ok {
		t.Fatal(err)
	}
	for _, template := range templates {
		if content := template.(map[string]any); content["name"] == "gate" {
			return into[corev1.Container](t, unstructured.Unstructured{Object: content}, "container")
		}
	}
	t.Fatal("there is no template gate")
	return corev1.Container{}
}

func TestGate_IsInstalledInRunNamespaces(t *testing.T) {
	if objects := render(t, ``).of("WorkflowTemplate"); len(objects) > 0 {
		t.Errorf("%s was not asked for", identity(objects[0]))
	}
	chart := render(t, `{benchmarkGate: {enabled: true}, runNamespaces: [team-a, team-b], images: {pullPolicy: Always, operator: {repository: registry.example.com/operator, tag: 1.2.3}}}`)
	for _, namespace := range []string{"team-a", "team-b"} {
		template := chart.find(t, "WorkflowTemplate/"+namespace+"/benchmark-gate")
		if got := template.GetLabels()["workflows.argoproj.io/controller-instanceid"]; got != "assay" {
			t.Errorf("Argo's UI does not show it: the instance is %q", got)
		}
		container := gateContainer(t, template)
		if container.Image != "registry.example.com/operator:1.2.3" || container.ImagePullPolicy != corev1.PullAlways {
			t.Errorf("it runs %s, pulled %s", container.Image, container.ImagePullPolicy)
		}
		binding := into[rbacv1.RoleBinding](t, chart.find(t, "RoleBinding/"+namespace+"/benchmark-gate"))
		if subject := binding.Subjects[0]; subject.Namespace != namespace || subject.Name != "benchmark-gate" ||
			binding.RoleRef.Name != "benchmark-gate" {
			t.Errorf("the rights go to %+v", binding)
		}
		chart.find(t, "ServiceAccount/"+namespace+"/benchmark-gate")
	}
}

// Its image is the operator's, which comes from where the release's images come from.
func TestGate_PullsItsImage(t *testing.T) {
	chart := render(t, `{benchmarkGate: {enabled: true}, global: {imagePullSecrets: [{name: all}]}, runs: {imagePullSecrets: [{name: runs}]}}`)
	for _, name := range []string{"assay-executor", "benchmark-gate"} {
		account := into[corev1.ServiceAccount](t, chart.find(t, "ServiceAccount/default/"+name))
		if got := account.ImagePullSecrets; len(got) != 2 || got[0].Name != "all" || got[1].Name != "runs" {
			t.Errorf("%s pulls with %v", name, got)
		}
	}
}

// A gate runs in pipelines of people who may not do more than start runs.
func TestGate_HasOnlyTheRightsItUses(t *testing.T) {
	chart := render(t, `{benchmarkGate: {enabled: true}}`)
	allowed := map[string]string{}
	for _, rule := range into[rbacv1.Role](t, chart.find(t, "Role/default/benchmark-gate")).Rules {
		allowed[strings.Join(rule.APIGroups, ",")+"/"+strings.Join(rule.Resources, ",")] = strings.Join(rule.Verbs, ",")
	}
	if len(allowed) != 2 || allowed["assay.dev/benchmarkruns"] != "create,get,watch" ||
		allowed["argoproj.io/workflowtaskresults"] != "create,patch" {
		t.Errorf("it may do %v", allowed)
	}
	container := gateContainer(t, chart.find(t, "WorkflowTemplate/default/benchmark-gate"))
	if len(container.Command) < 2 || container.Command[0] != "/assay" || len(container.Args) > 0 {
		t.Errorf("it runs %q: the manifest must reach no shell", container.Command)
	}
	for _, word := range container.Command {
		if strings.Contains(word, "inputs.parameters.run") {
			t.Errorf("the manifest is in the argument %q", word)
		}
	}
	security := container.SecurityContext
	if security == nil || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || !*security.RunAsNonRoot ||
		security.Capabilities.Drop[0] != "ALL" {
		t.Errorf("it is not restricted: %+v", security)
	}
	if container.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		t.Error("a node that fails does not say why")
	}
}

func TestArgo_ShowsNoDialogs(t *testing.T) {
	server := render(t, ``).pods(t)["Deployment/assay-system/assay-argo-server"].Spec.Containers[0]
	for _, window := range []string{"FIRST_TIME_USER_MODAL", "FEEDBACK_MODAL", "NEW_VERSION_MODAL"} {
		if !slices.Contains(server.Env, corev1.EnvVar{Name: window, Value: "false"}) {
			t.Errorf("%s is not off: %v", window, server.Env)
		}
	}
}

func TestArgo_LinksToDashboardsAndReports(t *testing.T) {
	const dashboard = "/d/assay-run?var-namespace=${metadata.namespace}&var-run=${workflow.metadata.labels.assay.dev/run}" +
		"&from=${status.startedAtEpoch}&to=${status.finishedAtEpoch}"
	for name, tc := range map[string]struct {
		values string
		want   map[string]string
	}{
		"a bundled Grafana":                {``, map[string]string{"Dashboard": "http://localhost:3000" + dashboard}},
		"a Grafana without an address":     {`{grafana: {mode: external}}`, map[string]string{}},
		"a Grafana and reports in a store": {`{grafana: {url: "https://grafana.example.com", reportsURL: "https://minio.example.com/assay"}}`, map[string]string{"Dashboard": "https://grafana.example.com" + dashboard, "Report": "https://minio.example.com/assay${workflow.metadata.annotations.assay.dev/report}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, link := range argoConfig(t, render(t, tc.values)).Links {
				got[link.Scope+" "+link.Name] = link.URL
			}
			if len(got) != 2*len(tc.want) {
				t.Errorf("links %v, want %v of workflows and of pods", got, tc.want)
			}
			for link, url := range tc.want {
				for _, scope := range []string{"workflow", "pod"} {
					if got[scope+" "+link] != url {
						t.Errorf("%s of a %s leads to %q, want %q", link, scope, got[scope+" "+link], url)
					}
				}
			}
		})
	}
}
