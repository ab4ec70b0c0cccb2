package chart

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"helm.sh/helm/v4/pkg/action"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Kubernetes takes names such as 2024, 1e3 and no, which YAML reads as numbers and truths where nothing says that they are texts.
func TestNames_NumericNamesStayTexts(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"the names": `{fullnameOverride: "7", nameOverride: "8"}`,
		"given": `{
			objectStore: {existingSecret: "1e3", accessKeyKey: "1", secretKeyKey: "no", bucket: "123", region: "1",
				persistence: {existingClaim: "2024", storageClassName: "1e3"},
				tls: {enabled: true, existingSecret: "2024", ca: "-----BEGIN CERTIFICATE-----"},
				ingress: {enabled: true, className: "1", host: "1e3", tlsSecret: "2024"}},
			prometheus: {persistence: {existingClaim: "2024"}, ingress: {enabled: true, className: "1", host: "1e3", tlsSecret: "2024"}},
			grafana: {admin: {existingSecret: "2024", userKey: "1", passwordKey: "on"}, dashboards: {folder: "1"}},
			scheduling: {priorityClassName: "1e3"}, argo: {instanceID: "2024"}, networkPolicies: {interfacesFrom: [{podSelector: {}}]},
			benchmarkGate: {enabled: true}, runs: {imagePullSecrets: [{name: "2024"}]}}`,
		"rendered": `{objectStore: {accessKeyKey: "1", secretKeyKey: "no", persistence: {storageClassName: "1e3"}},
			prometheus: {persistence: {storageClassName: "1e3"}}, grafana: {admin: {userKey: "1", passwordKey: "on"}}}`,
		"an external store": `{objectStore: {mode: external, existingSecret: "2024", accessKeyKey: "1", secretKeyKey: "off", external: {
			endpoint: "1e3", ca: {existingSecret: "1e3", key: "1"}}}}`,
		"all else external": `{argo: {mode: external, external: {namespace: "1e3", serviceAccount: "2024"}},
			prometheus: {mode: external, operator: {enabled: true}},
			grafana: {mode: external, dashboards: {labelKey: "no", labelValue: "1"}}, objectStore: {tls: {enabled: true}}}`,
	}
	maps.Copy(values, variations)
	for name, values := range values {
		t.Run(name, func(t *testing.T) {
			given := parseValues(t, values)
			given["runNamespaces"] = []any{"2024", "no", "1e3"}
			objects := renderAs(t, "42", "1e3", given)
			for _, object := range objects {
				wantTexts(t, object.GetKind(), object.Object)
				data, _, _ := unstructured.NestedStringMap(object.Object, "data")
				for file, text := range data {
					if object.GetKind() != "ConfigMap" || file != "config" && file != "datasources.yaml" && file != "dashboards.yaml" {
						continue
					}
					var inside any
					if err := yaml.Unmarshal([]byte(text), &inside); err != nil {
						t.Errorf("%s: %v", file, err)
					}
					wantTexts(t, file, inside)
				}
				store, _ := given["objectStore"].(map[string]any)
				for _, key := range []string{"accessKeyKey", "secretKeyKey"} {
					name, _ := store[key].(string)
					if _, given := data[name]; name != "" && strings.HasSuffix(object.GetName(), "-ledger-read") && !given {
						t.Errorf("%s has no %s %q", object.GetName(), key, name)
					}
				}
			}
			if len(objects) < 10 {
				t.Errorf("%d objects", len(objects))
			}
		})
	}
}

// renderAs are the objects of a release of a name, in a namespace.
func renderAs(t *testing.T, name, namespace string, values map[string]any) (objects []unstructured.Unstructured) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.KubeVersion, install.APIVersions = kubeVersion, withPrometheusOperator
	install.ReleaseName, install.Namespace = name, namespace
	releaser, err := install.Run(loadChart(t), values)
	if err != nil {
		t.Fatal(err)
	}
	made := releaser.(*release.Release)
	manifests := []string{made.Manifest}
	for _, hook := range made.Hooks {
		manifests = append(manifests, hook.Manifest)
	}
	for _, manifest := range manifests {
		objects = append(objects, decode(t, manifest)...)
	}
	return objects
}

// Helm takes names with dots and names with a digit first, and Kubernetes takes neither for a Service.
func TestNames_ReleaseOfAnyNameIsInstalled(t *testing.T) {
	t.Parallel()
	type installed struct{ name, values string }
	var all []installed
	names := []string{"42", "bench.prod", "1.2.3-rc.1", "a", "a.b--c", strings.Repeat("9.", 26) + "9", strings.Repeat("a--", 17) + "a"}
	for _, name := range names {
		all = append(all, installed{name, ``}, installed{name, variations["a Prometheus Operator"]})
	}
	for _, values := range []string{`{fullnameOverride: "7"}`, `{fullnameOverride: a.b}`, `{nameOverride: "4.2"}`, `{nameOverride: a.b}`} {
		all = append(all, installed{"42", values})
	}
	for _, one := range all {
		for _, object := range renderAs(t, one.name, releaseNamespace, parseValues(t, one.values)) {
			wrong := validation.IsDNS1123Subdomain(object.GetName())
			switch object.GetKind() {
			case "Service":
				wrong = validation.IsDNS1035Label(object.GetName())
			case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
				wrong = content.IsPathSegmentName(object.GetName())
			}
			for _, value := range object.GetLabels() {
				wrong = append(wrong, validation.IsValidLabelValue(value)...)
			}
			if len(wrong) > 0 {
				t.Errorf("release %q with %s: %s: %s", one.name, one.values, identity(object), strings.Join(wrong, "; "))
			}
		}
	}
}

// A key of a Secret may have hyphens and dots, of which go-template makes other things.
func TestNames_NotesPrintKeysOfAnyName(t *testing.T) {
	notes := render(t, `{objectStore: {accessKeyKey: access-key, secretKeyKey: secret.key},
		grafana: {admin: {userKey: admin.user, passwordKey: pass-word}}}`).notes
	commands := regexp.MustCompile(`go-template='([^']*)'`).FindAllStringSubmatch(notes, -1)
	if len(commands) != 2 {
		t.Fatalf("%d commands print keys:\n%s", len(commands), notes)
	}
	secret := map[string]any{"data": map[string]any{"access-key": "a", "secret.key": "s", "admin.user": "a", "pass-word": "s"}}
	for _, command := range commands {
		parsed, err := template.New("").Funcs(template.FuncMap{"base64decode": strings.ToUpper}).Parse(command[1])
		if err != nil {
			t.Errorf("%s: %v", command[1], err)
			continue
		}
		var out strings.Builder
		if err := parsed.Execute(&out, secret); err != nil || out.String() != "A S\n" {
			t.Errorf("%s prints %q: %v", command[1], out.String(), err)
		}
	}
}

// wantTexts demands of everything in an object that names something that it is a text.
func wantTexts(t *testing.T, at string, value any) {
	t.Helper()
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			wantTexts(t, fmt.Sprintf("%s[%d]", at, i), element)
		}
	case map[string]any:
		for key, field := range value {
			text, deep := false, false
			switch field.(type) {
			case string:
				text = true
			case map[string]any, []any:
				deep = true
			}
			named := strings.HasSuffix(at, "abels") || strings.HasSuffix(at, "nnotations")
			for _, ending := range []string{
				"name", "Name", "namespace", "key", "bucket", "region", "endpoint", "instanceID", "path", "host", "folder",
			} {
				named = named || strings.HasSuffix(key, ending)
			}
			if named && !text && !deep {
				t.Errorf("%s.%s is %v, and no text", at, key, field)
			}
			wantTexts(t, at+"."+key, field)
		}
	}
}
