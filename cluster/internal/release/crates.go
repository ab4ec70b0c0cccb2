package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// Workspace is a Rust workspace as `cargo metadata --format-version 1` describes it:
// https://doc.rust-lang.org/cargo/commands/cargo-metadata.html.
type Workspace struct {
	Packages []crate `json:"packages"`
	Resolve  struct {
		Nodes []node `json:"nodes"`
	} `json:"resolve"`
}

type crate struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Source is absent in a member of the workspace.
	Source  string `json:"source"`
	License string `json:"license"`
	Targets []struct {
		Kind []string `json:"kind"`
		Name string   `json:"name"`
	} `json:"targets"`
}

type node struct {
	ID   string `json:"id"`
	Deps []struct {
		Package string `json:"pkg"`
		Kinds   []struct {
			// Kind is "dev" or "build", and absent for dependencies of the program itself.
			Kind string `json:"kind"`
		} `json:"dep_kinds"`
	} `json:"deps"`
}

// ReadWorkspace parses the output of cargo metadata.
func ReadWorkspace(metadata []byte) (Workspace, error) {
	var workspace Workspace
	if err := json.Unmarshal(metadata, &workspace); err != nil {
		return workspace, fmt.Errorf("invalid output of cargo metadata: %w", err)
	}
	return workspace, nil
}

// program is the ID of the crate that makes a program, and empty if none does.
func (w Workspace) program(name string) string {
	for _, one := range w.Packages {
		for _, target := range one.Targets {
			if target.Name == name && slices.Contains(target.Kind, "bin") {
				return one.ID
			}
		}
	}
	return ""
}

// addCrates adds the crates that are in a Rust program, and which of them needs which. Crates that only its tests or its build scripts use
// are not in it. Features are those of the whole workspace, so that a crate may be named that only another program of it uses.
func (r Release) addCrates(bom *cyclonedx.BOM, root string) error {
	packages, nodes := map[string]crate{}, map[string]node{}
	for _, one := range r.Crates.Packages {
		packages[one.ID] = one
	}
	for _, one := range r.Crates.Resolve.Nodes {
		nodes[one.ID] = one
	}

	refs := map[string]string{root: bom.Metadata.Component.BOMRef}
	components := []cyclonedx.Component{}
	needs := map[string][]string{}
	for open := []string{root}; len(open) > 0; {
		id := open[0]
		open = open[1:]
		for _, dep := range nodes[id].Deps {
			used := false
			for _, kind := range dep.Kinds {
				used = used || kind.Kind == ""
			}
			if !used {
				continue
			}
			if refs[dep.Package] == "" {
				component, err := r.component(packages[dep.Package])
				if err != nil {
					return err
				}
				refs[dep.Package] = component.BOMRef
				components = append(components, component)
				open = append(open, dep.Package)
			}
			needs[refs[id]] = append(needs[refs[id]], refs[dep.Package])
		}
	}
	dependencies := []cyclonedx.Dependency{}
	for _, ref := range refs {
		slices.Sort(needs[ref])
		dependency := cyclonedx.Dependency{Ref: ref}
		if len(needs[ref]) > 0 {
			dependency.Dependencies = new(slices.Compact(needs[ref]))
		}
		dependencies = append(dependencies, dependency)
	}
	slices.SortFunc(dependencies, func(a, b cyclonedx.Dependency) int { return strings.Compare(a.Ref, b.Ref) })
	bom.Components, bom.Dependencies = new(sorted(components)), &dependencies
	return nil
}

// component is a crate in the document. One of this workspace has the release's version, and no registry has it.
func (r Release) component(one crate) (cyclonedx.Component, error) {
	var component cyclonedx.Component
	switch {
	case one.Name == "":
		return component, errors.New("cargo metadata resolves a crate that it does not describe")
	case one.Source == "":
		component = cyclonedx.Component{BOMRef: "workspace/" + one.Name, Type: cyclonedx.ComponentTypeLibrary, Group: "assay.dev",
			Name: one.Name, Version: r.Version}
	case strings.HasPrefix(one.Source, "registry+"), strings.HasPrefix(one.Source, "sparse+"):
		component = library("cargo", one.Name, one.Version)
	default:
		return component, fmt.Errorf("invalid source of crate %s %s: found %q, allowed are a registry and this workspace",
			one.Name, one.Version, one.Source)
	}
	if one.License != "" {
		// Cargo once took a slash for OR, and crates still have it.
		component.Licenses = &cyclonedx.Licenses{{Expression: strings.ReplaceAll(one.License, "/", " OR ")}}
	}
	return component, nil
}
