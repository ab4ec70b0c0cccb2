package release

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Build describes how the files of a release were built.
type Build struct {
	// Commit is the tree's, in full; Dirty says that the tree had changes beside it.
	Commit string
	Dirty  bool
	// Builder is the URL of the builder.
	Builder string
	// Parameters are the variables that make was given, Tools the compilers with their versions.
	Parameters, Tools map[string]string
}

// buildType names the meaning of the parameters, which docs/install/README.md describes.
const buildType = "https://assay.dev/make-release/v1"

// statement is in-toto's, with SLSA's predicate: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md and
// https://slsa.dev/spec/v1.0/provenance.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type resource struct {
	Name        string            `json:"name,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]bool   `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// Provenance returns the provenance statement of all files in a folder. A file without provenance is an error.
func Provenance(dir string, build Build) ([]byte, error) {
	if !commitForm.MatchString(build.Commit) {
		return nil, fmt.Errorf("invalid commit %q: give it in full, as git rev-parse HEAD prints it", build.Commit)
	}
	if !strings.Contains(build.Builder, "://") {
		return nil, fmt.Errorf("invalid builder %q: give a URL, such as that of the CI's run", build.Builder)
	}
	subjects, err := digests(dir)
	if err != nil {
		return nil, err
	}
	if len(subjects) == 0 {
		return nil, errors.New(dir + " has no files: run make release, which fills it")
	}
	made := statement{Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1"}
	definition := &made.Predicate.BuildDefinition
	definition.BuildType = buildType
	definition.ExternalParameters = build.Parameters
	definition.InternalParameters = map[string]bool{"uncommittedChanges": build.Dirty}
	definition.ResolvedDependencies = []resource{{URI: "git+https://assay.dev/assay", Digest: map[string]string{"gitCommit": build.Commit}}}
	for _, tool := range slices.Sorted(maps.Keys(build.Tools)) {
		definition.ResolvedDependencies = append(definition.ResolvedDependencies,
			resource{Name: tool, Annotations: map[string]string{"version": build.Tools[tool]}})
	}
	made.Predicate.RunDetails.Builder.ID = build.Builder
	return json.Marshal(made)
}

// digests are the files below a folder, sorted by their paths.
func digests(dir string) ([]resource, error) {
	var out []resource
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		out = append(out, resource{Name: path, Digest: map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(content))}})
		return nil
	})
	return out, err
}
