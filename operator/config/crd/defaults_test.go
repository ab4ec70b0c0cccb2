package crd

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// defaulted returns the paths of the scalar fields with a default.
func defaulted(path string, schema *apiextensionsv1.JSONSchemaProps) (out []string) {
	if schema.Default != nil && len(schema.Properties) == 0 {
		out = append(out, path)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		out = append(out, defaulted(strings.TrimPrefix(path+"."+name, "."), &property)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, defaulted(path, schema.Items.Schema)...)
	}
	return out
}

// No API server fills in the fields of a ledger that is written by hand.
func TestDefaults_AreListedForHandwrittenLedgers(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "ledger.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(raw), "Written by hand, these must be filled in")
	section, _, found := strings.Cut(section, "\n\n")
	if !found {
		t.Fatal("docs/reference/ledger.md has no paragraph for ledgers that are written by hand")
	}
	for _, kind := range []string{"benchmarktemplates", "benchmarkruns"} {
		raw, err := os.ReadFile("assay.dev_" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &definition); err != nil {
			t.Fatal(err)
		}
		spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for _, field := range defaulted("", &spec) {
			name := field[strings.LastIndex(field, ".")+1:]
			if !strings.Contains(section, "`"+name+"`") && !strings.Contains(section, "."+name+"`") {
				t.Errorf("%s: the field %s has a default, and the paragraph does not name it", kind, field)
			}
		}
	}
}
