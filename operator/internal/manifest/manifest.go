// Package manifest reads the runs and templates a person wrote, as strictly as the API server would.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Set is what was found in some files.
type Set struct {
	Runs      []assayv1alpha1.BenchmarkRun
	Templates []assayv1alpha1.BenchmarkTemplate
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
			if err := set.add(raw); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
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
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := filepath.Glob(filepath.Join(path, "*.yaml"))
	slices.Sort(files)
	return files, err
}

func (s *Set) add(raw []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", number, err)
		}
		if err := s.addDocument(document); err != nil {
			return fmt.Errorf("document %d: %w", number, err)
		}
	}
}

func (s *Set) addDocument(document []byte) error {
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	if kind.Kind == "" && len(bytes.TrimSpace(stripComments(document))) == 0 {
		return nil
	}
	if kind.APIVersion != assayv1alpha1.GroupVersion.String() {
		return fmt.Errorf("apiVersion is %q: only %s can be read", kind.APIVersion, assayv1alpha1.GroupVersion)
	}
	switch kind.Kind {
	case "BenchmarkRun":
		var run assayv1alpha1.BenchmarkRun
		if err := decode(document, &run); err != nil {
			return fmt.Errorf("BenchmarkRun: %w", err)
		}
		s.Runs = append(s.Runs, run)
	case "BenchmarkTemplate":
		var template assayv1alpha1.BenchmarkTemplate
		if err := decode(document, &template); err != nil {
			return fmt.Errorf("BenchmarkTemplate: %w", err)
		}
		s.Templates = append(s.Templates, template)
	default:
		return fmt.Errorf("kind is %q: only BenchmarkRun and BenchmarkTemplate can be read", kind.Kind)
	}
	return nil
}

// decode refuses what the API server refuses: unknown fields, and numbers where a string belongs, which a plain YAML
// decoder would turn into one.
func decode(document []byte, into any) error {
	raw, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(raw, into)
	return errors.Join(append(unknown, err)...)
}

// Template finds the workload of a run: its inline template, or the named one among those read.
func (s *Set) Template(run *assayv1alpha1.BenchmarkRun) (*assayv1alpha1.BenchmarkTemplateSpec, error) {
	switch {
	case run.Spec.Template != nil && run.Spec.TemplateRef != nil:
		return nil, fmt.Errorf("BenchmarkRun %s: spec has both template and templateRef: keep one", run.Name)
	case run.Spec.Template != nil:
		return run.Spec.Template, nil
	case run.Spec.TemplateRef == nil:
		return nil, fmt.Errorf("BenchmarkRun %s: spec has neither template nor templateRef", run.Name)
	}
	var known []string
	for i := range s.Templates {
		if s.Templates[i].Name == run.Spec.TemplateRef.Name {
			return &s.Templates[i].Spec, nil
		}
		known = append(known, s.Templates[i].Name)
	}
	return nil, fmt.Errorf("BenchmarkRun %s: spec.templateRef.name: no BenchmarkTemplate %q among those read (%v): name its file with --templates", run.Name, run.Spec.TemplateRef.Name, known)
}

func stripComments(document []byte) []byte {
	var out []byte
	for line := range bytes.Lines(document) {
		trimmed := bytes.TrimSpace(line)
		if !bytes.HasPrefix(trimmed, []byte("#")) && !bytes.Equal(trimmed, []byte("---")) {
			out = append(out, line...)
		}
	}
	return out
}
