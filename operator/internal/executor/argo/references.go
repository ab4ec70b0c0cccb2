package argo

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Argo replaces what stands between double braces in every string of a Workflow, and evaluates what begins with an equals
// sign there, in the controller that all tenants share. So nothing in a Workflow has a brace but the references below, each at
// its place. That one opening brace is too many, and not only two, is because a text may end in what the next one goes on with.

// references are the places where a Workflow has any, as regular expressions of their paths.
var references = []struct {
	place *regexp.Regexp
	known []string
}{
	{regexp.MustCompile(`^spec\.templates\[block\]\.annotations\.workflows\.argoproj\.io/display-name$`), []string{displayReference}},
	{regexp.MustCompile(`^spec\.templates\[block\]\.affinity\.nodeAffinity\.[A-Za-z]+\.nodeSelectorTerms\[0\]\.matchFields\[0\]\.values\[0\]$`), []string{nodeReference}},
	{regexp.MustCompile(`^spec\.templates\[block\]\.(container|initContainers\[keeper\])\.command\[[0-9]+\]$`),
		[]string{blockReference, podReference}},
}

// patchPlace is where a Workflow has JSON in a string, whose own strings are looked at in its place.
var patchPlace = regexp.MustCompile(`^spec\.(templates\[[^\]]*\]\.)?podSpecPatch$`)

// checkReferences finds which field of a Workflow has something that Argo would replace and Assay did not put there.
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

// walk visits every string, keys of objects too, and stops at the first that is refused.
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

// label is the name of an element that has one, else its number.
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

// checkText refuses braces other than those of known references.
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
	return fmt.Errorf("%s is %q: Argo would replace what is between braces, and only Assay's own references may stand there; write it "+
		"without { and }", path, text)
}
