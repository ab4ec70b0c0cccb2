package generate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseValues_DefaultsAndComments(t *testing.T) {
	tests := map[string]struct {
		values    string
		wantError string
		wantRow   string
	}{
		"a leaf is described by the comment above it": {
			values:  "# Not this.\n\n# -- How\n# many.\nreplicas: 2\n",
			wantRow: "| `replicas` | `2` | How many. |\n",
		},
		"a key of a section is named by its path": {
			values:  "a:\n  # -- B.\n  b: x\n",
			wantRow: "| `a.b` | `\"x\"` | B. |\n",
		},
		"a map whose keys are free is a leaf": {
			values:  "# -- Labels.\n# @schema {\"additionalProperties\": {\"type\": \"string\"}}\nlabels: {a: b}\n",
			wantRow: "| `labels` | `{\"a\":\"b\"}` | Labels. |\n",
		},
		"a leaf without a comment is refused": {
			values:    "a:\n  b: x\n",
			wantError: `a.b: has no comment that starts with "# --"`,
		},
		"keywords that are not JSON are refused": {
			values:    "# -- A.\n# @schema {minimum: 1}\na: 1\n",
			wantError: "a: # @schema: ",
		},
		"a default of null is refused": {
			values:    "# -- A.\na:\n",
			wantError: "a: a default of type !!null",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			values, err := ParseValues([]byte(tc.values))
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("error %v, want one with %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			readme, err := values.IntoReadme([]byte("before\n" + tableBegin + "old\n" + tableEnd + "after\n"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(readme), tc.wantRow) || strings.Contains(string(readme), "old") ||
				!strings.HasPrefix(string(readme), "before\n") || !strings.HasSuffix(string(readme), "after\n") {
				t.Errorf("README is\n%s\nwant a row\n%s", readme, tc.wantRow)
			}
		})
	}
}

func TestSchema_TypeFromDefaultAndKeywordsFromComment(t *testing.T) {
	values, err := ParseValues([]byte("# -- Some.\n# @schema {\"minimum\": 1}\nreplicas: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := values.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		AdditionalProperties any
		Properties           map[string]map[string]any
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	got := schema.Properties["replicas"]
	if got["type"] != "integer" || got["minimum"] != 1.0 || got["description"] != "Some." || schema.AdditionalProperties != false {
		t.Errorf("schema is %s", raw)
	}
}
