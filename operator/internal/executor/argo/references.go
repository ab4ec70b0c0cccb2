package argo

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Argo replaces text between double braces in every string of a Workflow, and evaluates it as an expression if it begins with an equals
// sign, in the controller that all tenants share. Therefore a Workflow has no braces except the references below, each in its field. Single
// braces are rejected as well, because Argo may join two texts with one brace each.

// references lists the fields that have references, as regular expressions of their paths.
var references = []struct {
	place *regexp.Regexp
	known []string
}{
	{regexp.MustCompile(`^spec\.templates\[block\]\.annotations\.workflows\.argoproj\.io/display-name$`), []string{displayReference}},
	{regexp.MustCompile(`^spec\.templates\[block\]\.affinity\.nodeAffinity\.[A-Za-z]+\.nodeSelectorTerms\[0\]\.matchFields\[0\]\.values\[0\]$`), []string{nodeReference}},
	{regexp.MustCompile(`^spec\.templates\[block\]\.(container|initContainers\[keeper\])\.command\[[0-9]+\]$`),
		[]string{blockReference, podReference}},
}

// patchPlace matches the fields with JSON in a string. The strings in the JSON are checked instead of the field.
var patchPlace = regexp.MustCompile(`^spec\.(templates\[[^\]]*\]\.)?podSpecPatch$`)

// checkReferences returns an error that names a field of a Workflow with braces other than the references above.
func checkReferences(built *Workflow) error {
	raw, err := json.Marshal(built)
	if err != nil {
		return err
	}
	var content any
	if err := json.Unmarshal(raw, &content); err != nil {
		return err
	}
	if err := walk("", content); err != nil {
		return fmt.Errorf("workflow %q cannot be built: %w", built.Name, err)
	}
	return nil
}

// walk checks every string, including keys of objects, and stops at the first error.
func walk(path string, content any) error {
	switch content := content.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(content)) {
			if err := checkText(path, key, nil); err != nil {
				return err
			}
			if err := walk(strings.TrimPrefix(path+"."+key, "."), content[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range content {
			if err := walk(fmt.Sprintf("%s[%s]", path, label(i, element)), element); err != nil {
				return err
			}
		}
	case string:
		return checkString(path, content)
	}
	return nil
}

// label returns the name of an element, or its index if it has no name.
func label(i int, element any) string {
	object, _ := element.(map[string]any)
	if name, ok := object["name"].(string); ok {
		return name
	}
	return fmt.Sprint(i)
}

func checkString(path, text string) error {
	if patchPlace.MatchString(path) {
		var inner any
		if err := json.Unmarshal([]byte(text), &inner); err != nil || strings.Contains(text, "{{") {
			return refused(path, text)
		}
		return walk(path, inner)
	}
	for _, reference := range references {
		if reference.place.MatchString(path) {
			return checkText(path, text, reference.known)
		}
	}
	return checkText(path, text, nil)
}

// checkText returns an error for braces outside of the known references.
func checkText(path, text string, known []string) error {
	rest := text
	for _, reference := range known {
		rest = strings.ReplaceAll(rest, reference, "\x00")
	}
	if strings.ContainsAny(rest, "{}") {
		return refused(path, text)
	}
	return nil
}

func refused(path, text string) error {
	const shown = 80
	if runes := []rune(text); len(runes) > shown {
		text = string(runes[:shown]) + "…"
	}
	return fmt.Errorf("%s is %q: Argo would replace text between braces; remove { and }", path, text)
}
