package manifest

import (
	"fmt"
	"maps"

	"go.yaml.in/yaml/v3"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"
)

// maxValues limits the values that aliases may repeat, maxDepth the nesting and maxKey the bytes of a key, because every value has a path.
// No valid object reaches these limits.
const (
	maxValues = 200_000
	maxDepth  = 64
	maxKey    = 1024
)

// reading converts the nodes of a document to the values that the API server would receive.
type reading struct {
	problems []Problem
	values   int
	depth    int
	// within are the anchors that are being expanded, to detect cycles.
	within map[*yaml.Node]bool
}

func (r *reading) add(node *yaml.Node, field, format string, args ...any) {
	r.problems = append(r.problems, Problem{Line: node.Line, Column: node.Column, Field: field, Message: fmt.Sprintf(format, args...)})
}

// value converts a node. Where the schema has a string, an unquoted scalar is its literal text; elsewhere it is converted as by kubectl.
func (r *reading) value(node *yaml.Node, schema *structural.Structural, path string) any {
	if r.values++; r.values > maxValues {
		if r.values == maxValues+1 {
			r.add(node, path, "aliases expand the document to more than %d values: replace them by their values", maxValues)
		}
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxDepth {
		r.add(node, path, "the value is nested more than %d deep, which no object is: reduce the nesting", maxDepth)
		return nil
	}
	switch node.Kind {
	case yaml.AliasNode:
		if r.within[node.Alias] {
			r.add(node, path, "anchor %s contains itself: replace the alias by a value", node.Value)
			return nil
		}
		r.within[node.Alias] = true
		defer delete(r.within, node.Alias)
		return r.value(node.Alias, schema, path)
	case yaml.MappingNode:
		return r.mapping(node, schema, path)
	case yaml.SequenceNode:
		out := make([]any, 0, len(node.Content))
		for i, item := range node.Content {
			out = append(out, r.element(item, schema, "", fmt.Sprintf("%s[%d]", path, i)))
		}
		return out
	default:
		return r.scalar(node, schema, path)
	}
}

// element converts a value of a mapping or a list. In a collection of strings, such as parameters, null is a string, because its values
// are not optional.
func (r *reading) element(node *yaml.Node, parent *structural.Structural, key, path string) any {
	if inText(parent) && node.Kind == yaml.ScalarNode && node.Style == 0 && absent(node.Value) {
		return node.Value
	}
	return r.value(node, below(parent, key), path)
}

func (r *reading) mapping(node *yaml.Node, schema *structural.Structural, path string) any {
	out := map[string]any{}
	written := map[string]*yaml.Node{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			r.add(key, path, "a key of a mapping must be a scalar: quote it if it contains braces")
			continue
		}
		if len(key.Value) > maxKey {
			r.add(key, path, "a key has %d bytes and at most %d are allowed: shorten it", len(key.Value), maxKey)
			continue
		}
		child := join(path, key.Value)
		if first := written[key.Value]; first != nil {
			r.add(key, child, "duplicate key: line %d has it too; keep one", first.Line)
			continue
		}
		written[key.Value] = key
		if inText(schema) && empty(value) {
			r.add(key, child, `has no value: write one, or "" for an empty text`)
			continue
		}
		out[key.Value] = r.element(value, schema, key.Value, child)
	}
	for _, value := range merged {
		r.merge(value, schema, path, out)
	}
	// The API server treats a field without a value as absent and applies its default.
	maps.DeleteFunc(out, func(_ string, value any) bool { return value == nil })
	return out
}

// merge adds the mappings that << refers to. Explicit keys take precedence.
func (r *reading) merge(node *yaml.Node, schema *structural.Structural, path string, into map[string]any) {
	if node.Kind == yaml.SequenceNode {
		for _, item := range node.Content {
			r.merge(item, schema, path, into)
		}
		return
	}
	from, ok := r.value(node, schema, path).(map[string]any)
	if !ok {
		r.add(node, path, "<< takes a mapping, or a list of them")
	}
	for key, value := range from {
		if _, there := into[key]; !there {
			into[key] = value
		}
	}
}

// scalar returns literal text for a string. Other scalars are converted by kubectl's library, which implements YAML 1.1: yes is true.
func (r *reading) scalar(node *yaml.Node, schema *structural.Structural, path string) any {
	if node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 && node.Style&yaml.TaggedStyle == 0 {
		return node.Value
	}
	text := node.Value
	if node.Style&yaml.TaggedStyle != 0 {
		raw, err := yaml.Marshal(node)
		if err != nil {
			r.add(node, path, "%s", err)
			return nil
		}
		text = string(raw)
	} else if isString(schema) && !empty(node) && !absent(node.Value) {
		return node.Value
	}
	var out any
	raw, err := kyaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &out)
	}
	if err != nil {
		r.add(node, path, "invalid value %q: %s", node.Value, err)
		return nil
	}
	if _, fraction := out.(float64); fraction && schema != nil && schema.XIntOrString {
		return node.Value // A quantity such as 0.5.
	}
	return out
}

// isString reports whether a schema accepts only strings.
func isString(schema *structural.Structural) bool { return schema != nil && schema.Type == "string" }

// inText reports whether a schema is a list of strings, or a mapping with arbitrary keys and string values.
func inText(schema *structural.Structural) bool {
	if schema == nil {
		return false
	}
	return isString(schema.Items) || schema.AdditionalProperties != nil && isString(schema.AdditionalProperties.Structural)
}

// empty reports whether a node has no content.
func empty(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Style == 0 && node.Value == ""
}

// absent reports whether a word is YAML's null. The API server treats such a field as absent.
func absent(word string) bool {
	return word == "~" || word == "null" || word == "Null" || word == "NULL"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
