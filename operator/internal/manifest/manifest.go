// Package manifest reads runs and templates from YAML files and reports the errors that the API server would, with file, line and column.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// Set holds the objects read from files.
type Set struct {
	Runs      []assayv1alpha1.BenchmarkRun
	Templates []assayv1alpha1.BenchmarkTemplate
	// runOrigins and templateOrigins are the documents of Runs and Templates, in the same order.
	runOrigins, templateOrigins []origin
}

// origin is the document that an object was read from.
type origin struct {
	file string
	root *yaml.Node
}

// Read reads YAML files, each with one document or more, and the .yaml files of folders; "-" is standard input.
func Read(paths ...string) (*Set, error) {
	set := &Set{}
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			raw, err := readFile(file)
			if err != nil {
				return nil, err
			}
			if err := set.add(file, raw); err != nil {
				return nil, err
			}
		}
	}
	return set, nil
}

func readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(path)
}

func expand(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	// Sort by name. A folder's name may contain the special characters of patterns, so no glob is used.
	entries, err := os.ReadDir(path)
	var files []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".yaml") {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, err
}

func (s *Set) add(file string, raw []byte) error {
	documents := yaml.NewDecoder(bytes.NewReader(raw))
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(file, raw, err)
		}
		root := document.Content[0]
		if root.Tag == "!!null" {
			continue // Only comments.
		}
		if problems := s.addDocument(origin{file, root}); len(problems) > 0 {
			return located(file, root, problems)
		}
	}
}

// kinds are the supported kinds.
var kinds = slices.Sorted(maps.Keys(definitions))

func (s *Set) addDocument(from origin) []Problem {
	root := from.root
	if root.Kind != yaml.MappingNode {
		return []Problem{{Message: "invalid document: not a mapping; it begins with apiVersion and kind"}}
	}
	apiVersion, kind := scalarAt(root, "apiVersion"), scalarAt(root, "kind")
	if only := assayv1alpha1.GroupVersion.String(); apiVersion != only {
		return []Problem{{Field: "apiVersion", Message: fmt.Sprintf("invalid apiVersion %q: allowed is %s", apiVersion, only)}}
	}
	if !slices.Contains(kinds, kind) {
		message := fmt.Sprintf("invalid kind %q: %s", kind, suggest.Allowed(kind, kinds))
		return []Problem{{Field: "kind", Message: message}}
	}
	definition := definitions[kind]()
	reader := reading{within: map[*yaml.Node]bool{}}
	object, _ := reader.value(root, definition.read, "").(map[string]any)
	if len(reader.problems) > 0 {
		return reader.problems
	}
	written, err := json.Marshal(object)
	if err != nil {
		return []Problem{{Message: err.Error()}}
	}
	if problems := definition.check(object); len(problems) > 0 {
		return problems
	}
	// The following checks accept the same files as the API server; see
	// TestFiles_ReadAcceptsTheSameAsAPIServer.
	switch kind {
	case "BenchmarkRun":
		var run assayv1alpha1.BenchmarkRun
		err = record.Strictly(written, &run)
		s.Runs, s.runOrigins = append(s.Runs, run), append(s.runOrigins, from)
	case "BenchmarkTemplate":
		var template assayv1alpha1.BenchmarkTemplate
		err = record.Strictly(written, &template)
		s.Templates, s.templateOrigins = append(s.Templates, template), append(s.templateOrigins, from)
	}
	if err != nil {
		return []Problem{{Message: err.Error()}}
	}
	return nil
}

// Template returns the workload of a run: its inline template, or the named one of the set.
func (s *Set) Template(run *assayv1alpha1.BenchmarkRun) (*assayv1alpha1.BenchmarkTemplateSpec, error) {
	if run.Spec.Template != nil {
		return run.Spec.Template, nil
	}
	if i := s.named(run.Spec.TemplateRef.Name); i >= 0 {
		return &s.Templates[i].Spec, nil
	}
	known := experiment.NamesOf(s.Templates, func(t assayv1alpha1.BenchmarkTemplate) string { return t.Name })
	return nil, s.place(run, experiment.Problem{Field: "spec.templateRef.name", Message: fmt.Sprintf(
		"no BenchmarkTemplate %q was read (name its file with --templates): %s", run.Spec.TemplateRef.Name,
		suggest.Allowed(run.Spec.TemplateRef.Name, known))})
}

// named returns the index of the first template of a name, or -1.
func (s *Set) named(name string) int {
	return slices.IndexFunc(s.Templates, func(is assayv1alpha1.BenchmarkTemplate) bool { return is.Name == name })
}
