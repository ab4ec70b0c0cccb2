package release

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

// purls are the package URLs of components, or the names of those without.
func purls(components []cyclonedx.Component) (out []string) {
	for _, component := range components {
		if component.PackageURL == "" {
			out = append(out, component.Name)
			continue
		}
		out = append(out, component.PackageURL)
	}
	return out
}

func TestModules_OfAProgram(t *testing.T) {
	for sentence, tc := range map[string]struct {
		goVersion string
		deps      []*debug.Module
		want      []string
	}{
		"a program of the standard library alone has it": {"go1.26.8", nil, []string{"pkg:golang/stdlib@1.26.8"}},
		"a suffix that a distribution appends to Go's version is dropped": {
			"go1.26.8 X:nocoverageredesign", nil, []string{"pkg:golang/stdlib@1.26.8"},
		},
		"modules are sorted, and their versions escaped": {
			"go1.26.8", []*debug.Module{{Path: "b.example/x", Version: "v2.0.0+incompatible"}, {Path: "a.example/x", Version: "v1.0.0"}},
			[]string{"pkg:golang/a.example/x@v1.0.0", "pkg:golang/b.example/x@v2.0.0%2Bincompatible", "pkg:golang/stdlib@1.26.8"},
		},
		"the replacement of a module is listed": {
			"go1.26.8", []*debug.Module{{Path: "a.example/x", Version: "v1.0.0", Replace: &debug.Module{Path: "fork.example/x", Version: "v1.0.1"}}},
			[]string{"pkg:golang/fork.example/x@v1.0.1", "pkg:golang/stdlib@1.26.8"},
		},
		"two modules that are replaced by one are it once": {
			"go1.26.8", []*debug.Module{
				{Path: "a.example/x", Version: "v1.0.0", Replace: &debug.Module{Path: "fork.example/x", Version: "v1.0.1"}},
				{Path: "b.example/x", Version: "v1.0.0", Replace: &debug.Module{Path: "fork.example/x", Version: "v1.0.1"}},
			},
			[]string{"pkg:golang/fork.example/x@v1.0.1", "pkg:golang/stdlib@1.26.8"},
		},
		"a module that a folder replaces has no package URL, and the folder's name stays here": {
			"go1.26.8", []*debug.Module{{Path: "a.example/x", Version: "v1.0.0", Replace: &debug.Module{Path: "/home/someone/x"}}},
			[]string{"a.example/x", "pkg:golang/stdlib@1.26.8"},
		},
	} {
		if got := purls(modules(&debug.BuildInfo{GoVersion: tc.goVersion, Deps: tc.deps})); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", sentence, got, tc.want)
		}
	}
}

// read parses a document with the library, which rejects other formats.
func read(t *testing.T, document []byte) *cyclonedx.BOM {
	t.Helper()
	bom := new(cyclonedx.BOM)
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(document), cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return bom
}

// TestSBOM_GoProgramHasTheModulesOfGo compares with the output of `go version -m` from the same file.
func TestSBOM_GoProgramHasTheModulesOfGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "cluster")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program,
		"assay.dev/assay/cluster/cmd/cluster")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	named, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	release := Release{Version: "1.2.3", Time: time.Unix(1, 0)}
	document, err := release.Document(program)
	if err != nil {
		t.Fatal(err)
	}
	bom := read(t, document)
	got := map[string]string{}
	for _, component := range *bom.Components {
		got[component.Name] = component.Version
	}
	want := map[string]string{}
	for line := range strings.Lines(string(named)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 3 && fields[0] == "dep":
			want[fields[1]] = fields[2]
		case strings.HasPrefix(line, program+": go"):
			want["stdlib"] = strings.TrimPrefix(fields[1], "go")
		}
	}
	if len(want) < 10 {
		t.Fatalf("go version -m names only %v:\n%s", want, named)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-go version -m, +document):\n%s", diff)
	}
	if about := bom.Metadata.Component; about.Name != "cluster" || about.Version != "1.2.3" || len(*about.Hashes) != 1 {
		t.Errorf("the program is %+v", about)
	}
	if bom.Metadata.Timestamp != "1970-01-01T00:00:01Z" {
		t.Errorf("the time is %s, which is not that of the commit", bom.Metadata.Timestamp)
	}
	if again, err := release.Document(program); err != nil || !bytes.Equal(document, again) {
		t.Errorf("the same program gave two documents (%v)", err)
	}
}

const cargoMetadata = `{
  "packages": [
    {"id": "path+file:///home/someone/kernel#0.0.0", "name": "kernel", "version": "0.0.0", "source": null, "license": "Apache-2.0",
     "targets": [{"kind": ["lib"], "name": "kernel"}, {"kind": ["bin"], "name": "scan"}]},
    {"id": "path+file:///home/someone/harness#0.0.0", "name": "harness", "version": "0.0.0", "source": null, "license": "Apache-2.0",
     "targets": [{"kind": ["lib"], "name": "harness"}]},
    {"id": "serde", "name": "serde", "version": "1.0.1", "source": "registry+https://github.com/rust-lang/crates.io-index",
     "license": "MIT/Apache-2.0", "targets": []},
    {"id": "cc", "name": "cc", "version": "1.1.0", "source": "registry+https://x", "license": null, "targets": []},
    {"id": "proptest", "name": "proptest", "version": "1.2.0", "source": "registry+https://x", "license": "MIT", "targets": []},
    {"id": "libc", "name": "libc", "version": "0.2.0", "source": "sparse+https://x", "license": "MIT", "targets": []},
    {"id": "of-another-program", "name": "other", "version": "9.0.0", "source": "registry+https://x", "license": "MIT", "targets": []},
    {"id": "fork", "name": "fork", "version": "1.0.0", "source": "git+https://x#abc", "license": "MIT", "targets": []},
    {"id": "forked", "name": "forked", "version": "0.0.0", "source": null, "targets": [{"kind": ["bin"], "name": "forked"}]}
  ],
  "resolve": {"nodes": [
    {"id": "path+file:///home/someone/kernel#0.0.0", "deps": [
      {"pkg": "path+file:///home/someone/harness#0.0.0", "dep_kinds": [{"kind": null}]},
      {"pkg": "serde", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
      {"pkg": "cc", "dep_kinds": [{"kind": "build"}]},
      {"pkg": "proptest", "dep_kinds": [{"kind": "dev"}]}]},
    {"id": "path+file:///home/someone/harness#0.0.0", "deps": [
      {"pkg": "serde", "dep_kinds": [{"kind": null}]}, {"pkg": "libc", "dep_kinds": [{"kind": null, "target": "cfg(unix)"}]}]},
    {"id": "serde", "deps": []}, {"id": "cc", "deps": []}, {"id": "proptest", "deps": []}, {"id": "libc", "deps": []},
    {"id": "of-another-program", "deps": []}, {"id": "fork", "deps": []},
    {"id": "forked", "deps": [{"pkg": "fork", "dep_kinds": [{"kind": null}]}]}
  ]}
}`

// rust writes a file of a name that is no Go program, and returns its document.
func rust(t *testing.T, name string) ([]byte, error) {
	t.Helper()
	workspace, err := ReadWorkspace([]byte(cargoMetadata))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(program, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Release{Version: "1.2.3", Crates: workspace}.Document(program)
}

func TestSBOM_RustProgramHasOnlyTheCratesItUses(t *testing.T) {
	document, err := rust(t, "scan")
	if err != nil {
		t.Fatal(err)
	}
	bom := read(t, document)
	if got, want := purls(*bom.Components), []string{"pkg:cargo/libc@0.2.0", "pkg:cargo/serde@1.0.1", "harness"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	edges := map[string][]string{}
	for _, dependency := range *bom.Dependencies {
		edges[dependency.Ref] = nil
		if dependency.Dependencies != nil {
			edges[dependency.Ref] = *dependency.Dependencies
		}
	}
	want := map[string][]string{
		"scan": {"pkg:cargo/serde@1.0.1", "workspace/harness"}, "workspace/harness": {"pkg:cargo/libc@0.2.0", "pkg:cargo/serde@1.0.1"},
		"pkg:cargo/libc@0.2.0": nil, "pkg:cargo/serde@1.0.1": nil,
	}
	if diff := cmp.Diff(want, edges); diff != "" {
		t.Errorf("which needs which (-want +got):\n%s", diff)
	}
	for _, component := range *bom.Components {
		if component.Name == "serde" && (*component.Licenses)[0].Expression != "MIT OR Apache-2.0" {
			t.Errorf("serde's licence is %v", *component.Licenses)
		}
		if component.Name == "harness" && component.Version != "1.2.3" {
			t.Errorf("a crate of the workspace has version %s, not the release's", component.Version)
		}
	}
	if bytes.Contains(document, []byte("/home/someone")) {
		t.Error("the document says where it was made")
	}
	if !json.Valid(document) {
		t.Error("it is no JSON")
	}
}

func TestSBOM_UnknownProgramsAreErrors(t *testing.T) {
	for sentence, tc := range map[string]struct{ program, want string }{
		"an unknown file":                       {"mystery", "nor a program of this name"},
		"a crate that comes from no registry":   {"forked", `found "git+https://x#abc"`},
		"a library, which is no program of any": {"harness", "nor a program of this name"},
	} {
		if document, err := rust(t, tc.program); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v\n%s", sentence, err, document)
		}
	}
}
