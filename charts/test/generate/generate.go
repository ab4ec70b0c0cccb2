// Package generate makes the files of charts/assay that follow from other files (copies of the operator's and Argo's manifests,
// the schema of the values and their table in the README), and those of operator/config that follow from the chart.
package generate

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

const (
	chart      = "charts/assay"
	valuesFile = chart + "/values.yaml"
	readmeFile = chart + "/README.md"
)

// copies names where copied manifests come from. Everything that matches into is generated.
type copies struct{ from, into string }

// manifests are those of this tree, argoManifests those of Argo's module.
var (
	manifests = []copies{
		{"operator/config/crd/assay.dev_*.yaml", chart + "/crds/*.yaml"},
		{"operator/config/rbac/*role.yaml", chart + "/files/rbac/*.yaml"},
		{"operator/config/rbac/*_policy.yaml", chart + "/files/rbac/*.yaml"},
		{"dashboards/rules/*.yaml", chart + "/files/rules/*.yaml"},
		{"workflows/templates/*.yaml", chart + "/files/workflowtemplates/*.yaml"},
	}
	argoManifests = copies{"manifests/base/crds/minimal/argoproj.io_*.yaml", argo + "/*.yaml"}
)

// Files returns every generated file by its path from the repository's root.
func Files(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, c := range manifests {
		if err := c.add(root, files); err != nil {
			return nil, err
		}
	}
	if err := addArgo(root, files); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(root, valuesFile))
	if err != nil {
		return nil, err
	}
	values, err := ParseValues(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", valuesFile, err)
	}
	if files[chart+"/values.schema.json"], err = values.Schema(); err != nil {
		return nil, fmt.Errorf("%s: %w", valuesFile, err)
	}
	readme, err := os.ReadFile(filepath.Join(root, readmeFile))
	if err != nil {
		return nil, err
	}
	if files[readmeFile], err = values.IntoReadme(readme); err != nil {
		return nil, fmt.Errorf("%s: %w", readmeFile, err)
	}
	// Last, because the chart is rendered with the new schema.
	installs, err := Kustomize(root, files)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, installs)
	return files, nil
}

func (c copies) add(root string, files map[string][]byte) error {
	pattern := filepath.Join(root, c.from)
	sources, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("no file matches %s", pattern)
	}
	for _, source := range sources {
		raw, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		files[path.Join(path.Dir(c.into), filepath.Base(source))] = raw
	}
	return nil
}

// Stale returns the files that are where only generated files are, and that Files does not make.
func Stale(root string, files map[string][]byte) ([]string, error) {
	var stale []string
	for _, c := range append(manifests, argoManifests) {
		there, err := filepath.Glob(filepath.Join(root, c.into))
		if err != nil {
			return nil, err
		}
		for _, file := range there {
			name := path.Join(path.Dir(c.into), filepath.Base(file))
			if _, made := files[name]; !made {
				stale = append(stale, name)
			}
		}
	}
	slices.Sort(stale)
	return stale, nil
}

// Write makes the tree as Files says.
func Write(root string) error {
	files, err := Files(root)
	if err != nil {
		return err
	}
	stale, err := Stale(root, files)
	if err != nil {
		return err
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	for name, content := range files {
		target := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
