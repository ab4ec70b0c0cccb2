package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

var imageKeys = map[string]any{
	"repository": map[string]any{"type": "string", "minLength": 1, "pattern": `^[A-Za-z0-9][-A-Za-z0-9._:/]*$`},
	"tag":        map[string]any{"type": "string", "pattern": `^[A-Za-z0-9_.-]*$`},
	"digest":     map[string]any{"type": "string", "pattern": `^(sha256:[0-9a-f]{64})?$`},
}

// definitions are the parts of the schema that values.yaml refers to as #/$defs/….
var definitions = map[string]any{
	"mode": map[string]any{"type": "string", "enum": []string{"bundled", "external"}},
	"quantity": map[string]any{
		"type": []string{"string", "number"}, "pattern": `^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$`, "minimum": 0,
	},
	"quantities": map[string]any{
		"type": "object", "additionalProperties": map[string]any{"$ref": "#/$defs/quantity"},
	},
	"resources": map[string]any{
		"type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"requests": map[string]any{"$ref": "#/$defs/quantities"},
			"limits":   map[string]any{"$ref": "#/$defs/quantities"},
		},
	},
	"duration": map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`},
	// The operator checks the other limits of a policy when it starts.
	"limits": map[string]any{
		"type": "object", "properties": map[string]any{"history": map[string]any{
			"type": "object", "additionalProperties": false, "properties": map[string]any{
				"full":    map[string]any{"$ref": "#/$defs/duration"},
				"every":   map[string]any{"$ref": "#/$defs/duration"},
				"thinned": map[string]any{"$ref": "#/$defs/duration"},
			},
			"dependentRequired": map[string]any{"full": []string{"every"}, "thinned": []string{"full"}},
		}},
	},
	"ingress": map[string]any{
		"type": "object", "additionalProperties": false, "properties": map[string]any{
			"enabled": map[string]any{"type": "boolean"}, "className": map[string]any{"type": "string"},
			"host":      map[string]any{"type": "string", "pattern": `^(([*]\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`},
			"tlsSecret": map[string]any{"type": "string", "maxLength": 253},
			"annotations": map[string]any{
				"type": "object", "additionalProperties": map[string]any{"type": "string"},
			},
		},
		"if":   map[string]any{"properties": map[string]any{"enabled": map[string]any{"const": true}}, "required": []string{"enabled"}},
		"then": map[string]any{"properties": map[string]any{"host": map[string]any{"minLength": 1}}, "required": []string{"host"}},
	},
	"ownImage": map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"repository"}, "properties": imageKeys,
	},
	"image": map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"repository"}, "properties": imageKeys,
		"anyOf": []any{
			map[string]any{"properties": map[string]any{"tag": map[string]any{"minLength": 1}}, "required": []string{"tag"}},
			map[string]any{"properties": map[string]any{"digest": map[string]any{"minLength": 1}}, "required": []string{"digest"}},
		},
	},
}

// Value is one key of values.yaml. It is a section with further keys, or a leaf with a default.
type Value struct {
	Path        string
	Description string
	Type        string
	Default     string
	Keys        []Value

	// schema holds the keywords of the comment's "# @schema".
	schema map[string]any
}

// ParseValues reads values.yaml and the comments in it.
func ParseValues(raw []byte) (*Value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("not a YAML map")
	}
	root := &Value{Type: "object"}
	return root, root.readKeys(document.Content[0])
}

func (v *Value) readKeys(node *yaml.Node) error {
	var failures []error
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := Value{Path: strings.TrimPrefix(v.Path+"."+node.Content[i].Value, ".")}
		if err := key.read(node.Content[i].HeadComment, node.Content[i+1]); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", key.Path, err))
			continue
		}
		v.Keys = append(v.Keys, key)
	}
	return errors.Join(failures...)
}

func (v *Value) read(comment string, node *yaml.Node) error {
	if err := v.readComment(comment); err != nil {
		return err
	}
	types := map[string]string{"!!str": "string", "!!bool": "boolean", "!!int": "integer", "!!float": "number", "!!seq": "array",
		"!!map": "object"}
	var known bool
	if v.Type, known = types[node.Tag]; !known {
		return fmt.Errorf("a default of type %s has no type in the schema", node.Tag)
	}
	_, free := v.schema["additionalProperties"]
	if _, refers := v.schema["$ref"]; v.Type == "object" && !free && !refers {
		return v.readKeys(node)
	}
	if v.Description == "" {
		return errors.New(`has no comment that starts with "# --"`)
	}
	return v.readDefault(node)
}

// readComment takes the block that starts with "# --": its text, up to the keywords after "# @schema".
func (v *Value) readComment(comment string) error {
	_, block, found := strings.Cut("\n"+comment, "\n# -- ")
	if !found {
		return nil
	}
	text, schema, _ := strings.Cut(block, "\n# @schema ")
	v.Description = strings.ReplaceAll(text, "\n# ", " ")
	if schema == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(schema), &v.schema); err != nil {
		return fmt.Errorf("# @schema: %w", err)
	}
	return nil
}

func (v *Value) readDefault(node *yaml.Node) error {
	var value any
	if err := node.Decode(&value); err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	v.Default = strings.TrimSpace(out.String())
	return err
}

// Schema is the JSON Schema of the values. Keys that are not in values.yaml are refused.
func (v *Value) Schema() ([]byte, error) {
	schema := v.schemaOf()
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["$defs"] = definitions
	// Values of a parent chart and of its other dependencies are passed through.
	if global, ok := schema["properties"].(map[string]any)["global"].(map[string]any); ok {
		delete(global, "additionalProperties")
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(schema)
	return out.Bytes(), err
}

func (v *Value) schemaOf() map[string]any {
	schema := maps.Clone(v.schema)
	if schema == nil {
		schema = map[string]any{}
	}
	if v.Description != "" {
		schema["description"] = v.Description
	}
	if _, refers := schema["$ref"]; !refers {
		schema["type"] = v.Type
	}
	if len(v.Keys) == 0 {
		return schema
	}
	properties := map[string]any{}
	for i := range v.Keys {
		name := v.Keys[i].Path[strings.LastIndex(v.Keys[i].Path, ".")+1:]
		properties[name] = v.Keys[i].schemaOf()
	}
	schema["properties"] = properties
	schema["additionalProperties"] = false
	return schema
}

const (
	tableBegin = "<!-- Begin of values, made by make generate from values.yaml. -->\n"
	tableEnd   = "<!-- End of values. -->\n"
)

// IntoReadme replaces the table of values in a README.
func (v *Value) IntoReadme(readme []byte) ([]byte, error) {
	before, rest, found := strings.Cut(string(readme), tableBegin)
	if !found {
		return nil, fmt.Errorf("has no line %q", tableBegin)
	}
	_, after, found := strings.Cut(rest, tableEnd)
	if !found {
		return nil, fmt.Errorf("has no line %q", tableEnd)
	}
	var table strings.Builder
	table.WriteString("| Value | Default | Effect |\n| --- | --- | --- |\n")
	v.writeRows(&table)
	return []byte(before + tableBegin + "\n" + table.String() + "\n" + tableEnd + after), nil
}

func (v *Value) writeRows(table *strings.Builder) {
	if len(v.Keys) == 0 {
		fmt.Fprintf(table, "| `%s` | `%s` | %s |\n", v.Path, v.Default, strings.ReplaceAll(v.Description, "|", `\|`))
		return
	}
	for i := range v.Keys {
		v.Keys[i].writeRows(table)
	}
}
