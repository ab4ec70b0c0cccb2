package release

// This file writes the components of programs as CycloneDX documents (https://cyclonedx.org/specification/overview/). The modules of a Go
// program are read from its build information, the crates of a Rust program from the output of cargo metadata.

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// format is the newest version of CycloneDX that the scanners in use all read.
const format = cyclonedx.SpecVersion1_6

// Release holds the values that the documents of all programs of a release share.
type Release struct {
	Version string
	// Time is that of the commit: the same tree gives the same documents.
	Time time.Time
	// Crates are those of the Rust workspace for the platform of the programs.
	Crates Workspace
}

// Document returns the bill of materials of a program of the release as JSON.
func (r Release) Document(program string) ([]byte, error) {
	bom, err := r.describe(program)
	if err != nil {
		return nil, err
	}
	info, notGo := buildinfo.ReadFile(program)
	root := r.Crates.program(filepath.Base(program))
	switch {
	case notGo == nil:
		bom.Components = new(modules(info))
	case root != "":
		err = r.addCrates(bom, root)
	default:
		err = fmt.Errorf("invalid program %s: found neither Go build information (%w) nor a program of this name in the Rust workspace",
			program, notGo)
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, format)
	return out.Bytes(), err
}

// describe begins the document of a program with the program itself, which it identifies by its digest.
func (r Release) describe(program string) (*cyclonedx.BOM, error) {
	file, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return nil, err
	}
	name := filepath.Base(program)
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.Time.UTC().Format(time.RFC3339),
		Tools: &cyclonedx.ToolsChoice{Components: &[]cyclonedx.Component{
			{Type: cyclonedx.ComponentTypeApplication, Group: "assay.dev", Name: "cluster sbom", Version: r.Version},
		}},
		Component: &cyclonedx.Component{
			BOMRef: name, Type: cyclonedx.ComponentTypeApplication, Group: "assay.dev", Name: name, Version: r.Version,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest.Sum(nil))}},
		},
	}
	return bom, nil
}

// modules are the components of a Go program, with the standard library. Which module needs which is not in a program.
func modules(info *debug.BuildInfo) []cyclonedx.Component {
	// A distribution may append to the version: "go1.26.8 X:nocoverageredesign".
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	components := []cyclonedx.Component{library("golang", "stdlib", version)}
	for _, module := range info.Deps {
		if module.Replace != nil && module.Replace.Version == "" {
			// A folder of this tree, which no registry has.
			components = append(components, cyclonedx.Component{BOMRef: module.Path, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path})
			continue
		}
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, library("golang", module.Path, module.Version))
	}
	return sorted(components)
}

// library is a component that a registry has, under its package URL: https://github.com/package-url/purl-spec.
func library(registry, name, version string) cyclonedx.Component {
	// The plus of +incompatible would be a blank to some.
	purl := "pkg:" + registry + "/" + name + "@" + url.QueryEscape(version)
	return cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl}
}

// sorted has each component once: two modules may be replaced by one.
func sorted(components []cyclonedx.Component) []cyclonedx.Component {
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	return slices.CompactFunc(components, func(a, b cyclonedx.Component) bool { return a.BOMRef == b.BOMRef })
}
