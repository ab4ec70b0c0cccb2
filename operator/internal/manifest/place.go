package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Problem is one error in a file.
type Problem struct {
	File         string
	Line, Column int
	// Field is the path in the object, such as spec.gates[0].op. It is empty if the file is not an object.
	Field, Message string
	// key reports whether the error is in the key and not in its value.
	key bool
}

func (p Problem) Error() string {
	place := p.File + ": "
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	}
	if p.Field == "" {
		return place + p.Message
	}
	return place + p.Field + ": " + p.Message
}

// located adds the lines and columns to the problems of a document.
func located(file string, root *yaml.Node, problems []Problem) error {
	for i := range problems {
		p := &problems[i]
		p.File = file
		if p.Line == 0 {
			node := locate(root, p.Field, p.key)
			p.Line, p.Column = node.Line, node.Column
		}
	}
	return joined(problems)
}

// joined sorts the problems by file and position.
func joined(problems []Problem) error {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Field, b.Field))
	})
	errs := make([]error, 0, len(problems))
	for _, p := range slices.Compact(problems) {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// locate returns the node of a field. If it does not exist, it returns the nearest parent. For a mapping or a list as the value of a key it
// returns the key, because readers search for the word.
func locate(node *yaml.Node, path string, wantKey bool) *yaml.Node {
	shown := node
	for path != "" {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		key, value, rest := child(node, path)
		if value == nil {
			return shown
		}
		shown, node, path = value, value, rest
		if key != nil && (wantKey || value.Kind != yaml.ScalarNode || value.Value == "") {
			shown = key
		}
	}
	return shown
}

// child descends one step. A key may contain dots, so the longest match is used.
func child(node *yaml.Node, path string) (key, value *yaml.Node, rest string) {
	path = strings.TrimPrefix(path, ".")
	if node.Kind == yaml.SequenceNode {
		step, after, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			return nil, node.Content[i], after
		}
		return nil, nil, ""
	}
	if node.Kind != yaml.MappingNode {
		return nil, nil, ""
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		after, ok := strings.CutPrefix(path, "["+name+"]")
		if !ok {
			after, ok = strings.CutPrefix(path, name)
		}
		if ok && (after == "" || after[0] == '.' || after[0] == '[') && (key == nil || len(name) > len(key.Value)) {
			key, value, rest = node.Content[i], node.Content[i+1], after
		}
	}
	return key, value, rest
}

// split returns the steps of a path.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

func scalarAt(root *yaml.Node, key string) string {
	if _, value, rest := child(root, key); value != nil && rest == "" {
		return value.Value
	}
	return ""
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// unreadable locates a syntax error of the YAML library, which reports the line only.
func unreadable(file string, raw []byte, err error) error {
	p := Problem{File: file, Line: 1, Column: 1, Message: err.Error()}
	if match := syntaxLine.FindStringSubmatch(err.Error()); match != nil {
		p.Message = "invalid YAML: " + match[2]
		if line, err := strconv.Atoi(match[1]); err == nil {
			p.Line = line
		}
	}
	if lines := bytes.Split(raw, []byte("\n")); p.Line <= len(lines) {
		line := lines[p.Line-1]
		p.Column = 1 + len(line) - len(bytes.TrimLeft(line, " "))
	}
	return p
}
