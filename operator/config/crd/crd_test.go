package crd

import (
	"io/fs"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions are the kinds as the API server gets them, by the names of their files.
func definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	names, err := fs.Glob(Files, "*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	out := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, name := range names {
		raw, _ := Files.ReadFile(name)
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &definition); err != nil {
			t.Fatal(err)
		}
		out[name] = definition
	}
	return out
}

// A Go client omits an empty string, and a client that sends a file unchanged does not. A rule about the presence of a string must treat
// both alike: the string has a minimum length, or the rule checks its length.
func TestCRD_RulesTreatEmptyAndAbsentStringsAlike(t *testing.T) {
	asked := regexp.MustCompile(`has\((self|[a-z])\.((?:\w+\.)*)(\w+)\)`)
	checked := 0
	for name, definition := range definitions(t) {
		walk("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if strings.HasPrefix(path, ".status") {
				return // Written by the operator alone.
			}
			for _, rule := range schema.XValidations {
				for _, match := range asked.FindAllStringSubmatch(rule.Rule, -1) {
					for _, field := range textsOf(schema, match[1] == "self", match[2]+match[3]) {
						checked++
						if field.Format != "" || strings.Contains(rule.Rule, "size("+match[1]+"."+match[2]+match[3]+")") ||
							(field.MinLength != nil && *field.MinLength > 0) || len(field.Enum) > 0 ||
							field.Pattern != "" && !regexp.MustCompile(field.Pattern).MatchString("") {
							continue
						}
						t.Errorf("%s%s: rule %q asks whether %s is there, which may be empty: give it MinLength=1, or ask for its size", name, path,
							rule.Message, match[2]+match[3])
					}
				}
			}
		})
	}
	if checked < 10 {
		t.Errorf("%d strings checked: the test does not find them", checked)
	}
}

// Every string and list needs a maximum size. Otherwise the API server would accept a share of a megabyte of digits.
func TestCRD_StringsAndListsAreBounded(t *testing.T) {
	durations := []string{".status.remaining", ".status.suspendedTime"} // The operator's own.
	checked := 0
	for name, definition := range definitions(t) {
		// ruled are fields whose length or values are bounded by a rule of their list.
		ruled := map[string]bool{}
		walk("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			rules := ""
			for _, rule := range schema.XValidations {
				rules += rule.Rule + "\n"
			}
			ends := true
			switch {
			case path == ".apiVersion" || path == ".kind" || strings.HasSuffix(path, "{}") || slices.Contains(durations, path):
				return
			case schema.Type == "array":
				ends = schema.MaxItems != nil
				for field := range schema.Items.Schema.Properties {
					ruled[path+"[]."+field] = strings.Contains(rules, "size(t."+field+") <=") || strings.Contains(rules, "t."+field+" in [")
				}
			case schema.AdditionalProperties != nil:
				ends = schema.MaxProperties != nil && (strings.Contains(rules, "size(k) <=") || strings.Contains(rules, "k.matches(")) &&
					strings.Contains(rules, "size(self[k]) <=")
			case schema.Type == "string":
				ends = schema.MaxLength != nil || len(schema.Enum) > 0 || schema.Format == "date-time" || ruled[path] || ended(schema.Pattern)
			}
			if checked++; !ends {
				t.Errorf("%s%s has no end: give it MaxLength, MaxItems or MaxProperties", name, path)
			}
		})
	}
	if checked < 500 {
		t.Errorf("%d fields checked: the test does not find them", checked)
	}
}

// ended reports whether a pattern bounds the length of the texts that it matches.
func ended(pattern string) bool {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || !strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") {
		return false
	}
	var repeats func(of *syntax.Regexp) bool
	repeats = func(of *syntax.Regexp) bool {
		return of.Op == syntax.OpStar || of.Op == syntax.OpPlus || of.Op == syntax.OpRepeat && of.Max < 0 || slices.ContainsFunc(of.Sub, repeats)
	}
	return !repeats(parsed)
}

func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for name, field := range schema.Properties {
		walk(path+"."+name, &field, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(path+"{}", schema.AdditionalProperties.Schema, visit)
	}
}

// textsOf returns the strings that a rule of a schema may refer to: below itself, or below the items of any of its lists.
func textsOf(schema *apiextensionsv1.JSONSchemaProps, self bool, field string) []*apiextensionsv1.JSONSchemaProps {
	roots := []*apiextensionsv1.JSONSchemaProps{schema}
	if !self {
		roots = nil
		walk("", schema, func(_ string, below *apiextensionsv1.JSONSchemaProps) {
			if below.Items != nil && below.Items.Schema != nil {
				roots = append(roots, below.Items.Schema)
			}
		})
	}
	var out []*apiextensionsv1.JSONSchemaProps
	for _, root := range roots {
		for _, name := range strings.Split(field, ".") {
			if root != nil {
				next, ok := root.Properties[name]
				if root = &next; !ok {
					root = nil
				}
			}
		}
		if root != nil && root.Type == "string" {
			out = append(out, root)
		}
	}
	return out
}
