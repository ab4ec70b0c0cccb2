package crd

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/test/cputime"
)

// A quantity is parsed when an object is decoded, before any validation, and formatted with every copy. That takes quadratic time in
// its digits and memory by its exponent: minutes for a megabyte of zeros. The schema must therefore bound its length.
func TestCRD_QuantitiesAreShort(t *testing.T) {
	zeros := func(count int) string { return strings.Repeat("0", count) }
	checked := 0
	for name, definition := range definitions(t) {
		walk("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if !schema.XIntOrString || strings.HasPrefix(path, ".status") {
				return
			}
			checked++
			for text, want := range map[string]bool{
				"8": true, "1.5Gi": true, "+.5": true, "-2e-3": true, "1e99": true, "2E": true, "1" + zeros(63): true,
				"1" + zeros(64): false, zeros(65): false, "0." + zeros(65): false, "." + zeros(65): false, "1" + zeros(300_000) + "k": false,
				"1e100": false, "1e-2000000000": false,
			} {
				if got := takes(schema, text); got != want {
					t.Errorf("%s%s: %.80s is taken: %v, want %v", name, path, text, got, want)
				}
			}
		})
	}
	if checked < 10 {
		t.Errorf("%d quantities checked: the test finds none", checked)
	}
	used := cputime.Start()
	for _, longest := range []string{"1" + zeros(63) + "e99", "0." + zeros(63) + "1e-99", "1" + zeros(63) + "." + zeros(63) + "1E"} {
		var read resource.Quantity
		if err := json.Unmarshal([]byte(`"`+longest+`"`), &read); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(read); err != nil {
			t.Fatal(err)
		}
	}
	if took := used(); took > time.Second {
		t.Errorf("the longest quantities take %s", took)
	}
}

// takes reports whether a schema takes a text by its patterns.
func takes(schema *apiextensionsv1.JSONSchemaProps, text string) bool {
	patterns := []string{schema.Pattern}
	for _, also := range schema.AllOf {
		patterns = append(patterns, also.Pattern)
	}
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(text) {
			return false
		}
	}
	return true
}
