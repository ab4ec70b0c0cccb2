package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// texts are the values that may be any text, by their paths.
func texts(schema map[string]any, path string) (out []string) {
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := properties[name].(map[string]any)
		at := strings.TrimPrefix(path+"."+name, ".")
		_, listed := property["enum"]
		_, formed := property["pattern"]
		_, either := property["anyOf"]
		switch {
		case property["$ref"] == "#/$defs/ingress":
			out = append(out, at+".className", at+".tlsSecret")
		case property["type"] == "string" && !listed && !formed && !either:
			out = append(out, at)
		default:
			out = append(out, texts(property, at)...)
		}
	}
	return out
}

// set gives a value at a path.
func set(values map[string]any, path, text string) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		if values[name] == nil {
			values[name] = map[string]any{}
		}
		values = values[name].(map[string]any)
	}
	values[names[len(names)-1]] = text
}

// replaced returns a value with some texts replaced, also within texts that hold YAML.
func replaced(value any, texts *strings.Replacer) any {
	switch value := value.(type) {
	case string:
		var inside any
		if strings.Contains(value, "\n") && yaml.Unmarshal([]byte(value), &inside) == nil {
			return replaced(inside, texts)
		}
		return texts.Replace(value)
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = replaced(value[i], texts)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, field := range value {
			if key != "checksum/config" {
				out[texts.Replace(key)] = replaced(field, texts)
			}
		}
		return out
	}
	return value
}

// A free-text value is rendered as exactly that text everywhere, and never as other YAML.
func TestQuoted_TextsStayTexts(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	const certificate = `ca: "-----BEGIN CERTIFICATE-----"`
	ingress := `ingress: {enabled: true, host: example.com}`
	keys := `auth: {accessKey: root, secretKey: rootrootroot, userKeySeed: "` + strings.Repeat("s", 32) + `"}`
	common := `networkPolicies: {interfacesFrom: [{podSelector: {}}]}, `
	for name, tc := range map[string]struct {
		values string
		// not are the paths that these values cannot be with.
		not []string
	}{
		"all bundled": {`{` + common + `objectStore: {tls: {enabled: true, ` + certificate + `}, ` + ingress + `, ` + keys + `},
			prometheus: {` + ingress + `}, grafana: {` + ingress + `, admin: {password: password}}}`, []string{"objectStore.external."}},
		"nothing there": {`{objectStore: {tls: {enabled: false}, ` + keys + `}, argo: {server: {tls: {enabled: false}}}, grafana: {admin: {password: password}}}`, []string{
			"objectStore.external.", "objectStore.tls.", "argo.server.tls.", "objectStore.existingSecret", "grafana.admin.existingSecret",
			"objectStore.persistence.existingClaim", "prometheus.persistence.existingClaim"}},
		"all external": {`{argo: {mode: external, external: {namespace: argo}}, prometheus: {mode: external, operator: {enabled: true}},
			grafana: {mode: external}, objectStore: {mode: external, external: {endpoint: s3.example.com}}}`,
			[]string{"objectStore.tls.", "argo.server.tls.", "objectStore.external.ca.existingConfigMap"}},
	} {
		t.Run(name, func(t *testing.T) {
			plain, odd, back := parseValues(t, tc.values), parseValues(t, tc.values), []string{}
			paths := slices.DeleteFunc(texts(schema, ""), func(path string) bool {
				return slices.ContainsFunc(tc.not, func(not string) bool { return strings.HasPrefix(path, not) })
			})
			for i, path := range paths {
				short := fmt.Sprintf("text-%d-", i)
				long := short + `'": #{x}[y], *&!|>%@`
				set(plain, path, short)
				set(odd, path, long)
				asJSON, err := json.Marshal(long)
				if err != nil {
					t.Fatal(err)
				}
				back = append(back, long, short, string(asJSON), fmt.Sprintf("%q", short))
			}
			want, got := renderAs(t, "assay", releaseNamespace, plain), renderAs(t, "assay", releaseNamespace, odd)
			if len(want) != len(got) || len(paths) < 10 {
				t.Fatalf("%d objects with %d odd texts, and %d with plain ones", len(got), len(paths), len(want))
			}
			for i := range want {
				if id := identity(want[i]); want[i].GetKind() == "CustomResourceDefinition" || id == "Secret/assay-system/assay-grafana" {
					continue // The last has the value of grafana.admin.user in base64.
				}
				nothing := strings.NewReplacer()
				a, b := replaced(want[i].Object, nothing), replaced(got[i].Object, strings.NewReplacer(back...))
				if !reflect.DeepEqual(a, b) {
					t.Errorf("%s is something else:\n%s", identity(want[i]), differences("", a, b))
				}
			}
		})
	}
}

// differences are the paths at which two values differ.
func differences(at string, a, b any) string {
	left, isMap := a.(map[string]any)
	right, alike := b.(map[string]any)
	if isMap && alike {
		out := ""
		for _, key := range slices.Sorted(maps.Keys(left)) {
			if !reflect.DeepEqual(left[key], right[key]) {
				out += differences(at+"."+key, left[key], right[key])
			}
		}
		if out != "" {
			return out
		}
	}
	return fmt.Sprintf("%s: %v, want %v\n", at, b, a)
}
