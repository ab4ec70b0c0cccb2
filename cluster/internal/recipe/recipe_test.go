package recipe

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const source = "../.."

func TestRecipe_HasAPinnedVersionAndAKey(t *testing.T) {
	keys := map[string]string{}
	for _, recipe := range All() {
		version, err := recipe.Version(source)
		if err != nil || version == "" {
			t.Errorf("%s: version %q, %v", recipe.Name, version, err)
		}
		key, err := recipe.Key(source, "go1.26.0")
		if err != nil {
			t.Errorf("%s: %v", recipe.Name, err)
		}
		if other, taken := keys[key]; taken {
			t.Errorf("%s and %s share the key %s", recipe.Name, other, key)
		}
		keys[key] = recipe.Name
	}
}

func TestKey_ChangesWithTheCompiler(t *testing.T) {
	one, _ := All()[0].Key(source, "go1.26.0")
	other, _ := All()[0].Key(source, "go1.26.1")
	if one == other {
		t.Error("a new compiler must compile again")
	}
}

func TestKey_OfARelease_ChangesWithItsVersion(t *testing.T) {
	recipe := Recipe{Name: "store", Module: "example.com/store", Release: "v1.2.3", Package: "example.com/store"}
	one, err := recipe.Key(source, "go1.26.0")
	if err != nil {
		t.Fatal(err)
	}
	recipe.Release = "v1.2.4"
	if other, err := recipe.Key(source, "go1.26.0"); err != nil || other == one {
		t.Errorf("v1.2.4 has the key %s of v1.2.3: %v", other, err)
	}
}

func TestKey_ChangesWithAMainPackageOfThisTree(t *testing.T) {
	tree := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\nrequire example.com/dns v1.2.3\n", "go.sum": "", "main.go": "package main",
	} {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recipe := Recipe{Name: "dns", Dir: ".", Module: "example.com/dns", Package: "."}
	before, err := recipe.Key(tree, "go1.26.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "main.go"), []byte("package main // Changed."), 0o644); err != nil {
		t.Fatal(err)
	}
	if after, err := recipe.Key(tree, "go1.26.0"); err != nil || after == before {
		t.Errorf("a changed program has the key %s of the one before: %v", after, err)
	}
}

// plugin is a line of a Corefile that a plugin reads.
var plugin = regexp.MustCompile(`(?m)^ {8}([a-z_]+)( |$)`)

// A directive without its plugin ends CoreDNS when it starts.
func TestRecipe_DNSServerHasThePluginsOfItsCorefile(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join(source, "internal", "component", "files", "coredns.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile(filepath.Join(source, "build", "coredns", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, corefile, _ := strings.Cut(string(manifest), "Corefile: |\n")
	corefile, _, _ = strings.Cut(corefile, "\n---\n")
	names := plugin.FindAllStringSubmatch(corefile, -1)
	if len(names) < 5 {
		t.Fatalf("the Corefile names the plugins %v", names)
	}
	for _, name := range names {
		if !strings.Contains(string(main), `"github.com/coredns/coredns/plugin/`+name[1]+`"`) {
			t.Errorf("build/coredns/main.go lacks the plugin %s of the Corefile", name[1])
		}
	}
}

// families are modules whose programs compile the same libraries of Kubernetes, which Go's cache shares as long as these and all that
// they import are the same versions.
var families = [][]string{{"../operator", "build/kubernetes"}, {"build/coredns", "build/helm", "build/prometheus"}}

func TestRecipe_SharedLibrariesHaveOneVersion(t *testing.T) {
	for _, family := range families {
		newest := map[string]string{}
		required := map[string]map[string]string{}
		for _, dir := range family {
			path := filepath.Join(source, dir, "go.mod")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file, err := modfile.Parse(path, data, nil)
			if err != nil {
				t.Fatal(err)
			}
			required[dir] = map[string]string{}
			for _, require := range file.Require {
				required[dir][require.Mod.Path] = require.Mod.Version
				if semver.Compare(require.Mod.Version, newest[require.Mod.Path]) > 0 {
					newest[require.Mod.Path] = require.Mod.Version
				}
			}
		}
		for _, dir := range family {
			var older []string
			for module, version := range required[dir] {
				if version != newest[module] {
					older = append(older, module+"@"+newest[module])
				}
			}
			if slices.Sort(older); len(older) > 0 {
				t.Errorf("%s has older libraries than others of %q, and both are compiled: run\n\tcd cluster/%s && go get %s && go mod tidy",
					dir, family, dir, strings.Join(older, " "))
			}
		}
	}
}

func TestSelect_ByName(t *testing.T) {
	for reason, tc := range map[string]struct {
		names []string
		want  string
	}{
		"names come back in build order":             {[]string{"kubectl", "etcd"}, "etcd kubectl"},
		"rarely used recipes are built only by name": {[]string{"kind"}, "kind"},
		"recipes for tests are built only by name":   {[]string{"promtool"}, "promtool"},
		"an unknown name lists the known ones":       {[]string{"kubeadm"}, "error: unknown component"},
		"no name means all that everyone needs":      {nil, "etcd kube-apiserver kubectl kubelet kube-controller-manager kube-scheduler kube-proxy pause network-policies coredns workflow-controller argoexec argo minio prometheus helm"},
	} {
		selected, err := Select(tc.names...)
		var names []string
		for _, recipe := range selected {
			names = append(names, recipe.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, tc.want) || err == nil && got != tc.want {
			t.Errorf("%s: got %q, want %q", reason, got, tc.want)
		}
	}
}

func TestReleaseNames_ByPlatform(t *testing.T) {
	for got, want := range map[string]string{
		MinIORelease("v0.0.0-20250907161309-07c3a429bfed"): "RELEASE.2025-09-07T16-13-09Z",
		PrometheusRelease("v0.315.0"):                      "v3.15.0",
		PrometheusRelease("v0.305.2"):                      "v3.5.2",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if stamps := strings.Join(stampKubernetes("v1.34.4"), " "); !strings.Contains(stamps, "gitMinor=34") {
		t.Errorf("Kubernetes stamps: %s", stamps)
	}
}

func TestBuild_CompilesOnceAndRetainsNoPartialResult(t *testing.T) {
	builder := Builder{Source: source, Cache: t.TempDir(), Progress: io.Discard}
	var modified [2]int64
	for i := range modified {
		built, err := builder.Build(context.Background(), "pause")
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(built[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		modified[i] = info.ModTime().UnixNano()
		dir, err := builder.NamedDir(built)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "pause")); err != nil {
			t.Error("the folder of plain names must lead to the binary:", err)
		}
	}
	if !builder.Has(context.Background(), "pause") || builder.Has(context.Background(), "pause", "etcd") {
		t.Error("the cache holds pause, and nothing else")
	}
	if modified[0] != modified[1] {
		t.Error("the second build compiled again")
	}

	broken := Recipe{Name: "broken", Dir: ".", Package: "./cmd/no-such-command"}
	if _, err := builder.one(context.Background(), broken, ""); err == nil {
		t.Error("a package that does not exist: want an error")
	}
	left, _ := filepath.Glob(filepath.Join(builder.Cache, "bin", "broken-*", "*"))
	if len(left) > 0 {
		t.Errorf("a failed build left %v", left)
	}
}

func TestBuild_AllProgramsHaveAFolder(t *testing.T) {
	builder := Builder{Cache: t.TempDir()}
	var built []Built
	for _, recipe := range All() {
		built = append(built, Built{Recipe: recipe, Key: "0123456789ab", Path: filepath.Join(builder.Cache, "bin", recipe.Name)})
	}
	all, err := builder.NamedDir(built)
	if err != nil {
		t.Fatal(err)
	}
	if fewer, err := builder.NamedDir(built[1:]); err != nil || fewer == all {
		t.Errorf("fewer programs have the folder %s, and all have %s (%v)", fewer, all, err)
	}
	if links, err := os.ReadDir(all); err != nil || len(links) != len(built) {
		t.Errorf("it holds %d of %d programs (%v)", len(links), len(built), err)
	}
}

func TestOverlay_RestoresFilesMissingFromAModuleZip(t *testing.T) {
	tree := t.TempDir()
	if err := os.MkdirAll(filepath.Join(tree, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "a", "x.go"), []byte("package a"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []Overlay{{Path: "a/y.go", LinkTo: "x.go"}, {Path: "ui/dist/index.html", Text: "page"}} {
		if err := overlay.write(tree); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"a/y.go": "package a", "ui/dist/index.html": "page"} {
		if got, err := os.ReadFile(filepath.Join(tree, path)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
}

// The page on object stores says which versions were tested: those that are pinned.
func TestObjectStores_PageNamesThePinnedVersions(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(source, "..", "docs", "reference", "object-stores.md"))
	if err != nil {
		t.Fatal(err)
	}
	stores, err := Select("minio", "versitygw", "gofakes3")
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range stores {
		version, err := store.Version(source)
		if err != nil {
			t.Fatal(err)
		}
		if row := "| " + store.Name + " | " + version + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/reference/object-stores.md has no row %q: run make test-stores", row)
		}
	}
}
