// Package recipe defines how each third-party binary is compiled: one row per binary. Most are compiled as their project releases them,
// with the dependencies of the module's go.mod. The others have a go.mod below build, because they share dependencies or replace some.
package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// format changes when the way of building changes without any recipe changing, so that old results are not reused.
const format = "1"

// Recipe is how one binary is compiled.
type Recipe struct {
	// Name is the binary's name and how a person asks for it.
	Name string
	// Module is the module whose version is the binary's version; empty for this project's own code.
	Module string
	// Release is the version of a module that is compiled with the dependencies of the module's go.mod; empty where the go.mod in Dir pins it.
	Release string
	// Dir is the folder with the go.mod that pins version and dependencies, relative to the cluster module; unused with a release.
	Dir string
	// Package is the main package; of a release, and with a dot in front, it is in the folder that the program is compiled in.
	Package string
	// Tags are build tags.
	Tags []string
	// Stamp returns the values that the linker writes into version variables.
	Stamp func(version string) []string
	// PublishedAs turns the version into the name by which the project publishes it; nil where that is the same.
	PublishedAs func(version string) string
	// Overlay, if set, means: build inside a copy of the release's source tree, with these files added.
	Overlay []Overlay
}

// Overlay is one file missing from a released module: a link to a sibling, or a text.
type Overlay struct{ Path, LinkTo, Text string }

const (
	kubernetesModule = "k8s.io/kubernetes"
	argoModule       = "github.com/argoproj/argo-workflows/v4"
	minioModule      = "github.com/minio/minio"
	prometheusModule = "github.com/prometheus/prometheus"
	registryModule   = "github.com/distribution/distribution/v3"
	versitygwModule  = "github.com/versity/versitygw"
	gofakes3Module   = "github.com/johannesboyne/gofakes3"
	// alertmanagerModule is for checking a configuration that the documentation shows.
	alertmanagerModule = "github.com/prometheus/alertmanager"
)

// argoOverlay restores files that Argo's module zip lacks: zips carry no symbolic links, and the UI bundle is not in Git.
// Users get Argo's UI from the upstream image.
var argoOverlay = []Overlay{
	{Path: "workflow/executor/osspecific/signal_linux.go", LinkTo: "signal_darwin.go"},
	{Path: "ui/dist/app/index.html", Text: "<!doctype html><title>Argo Workflows</title><p>This build serves the API only.</p>\n"},
}

// prometheusTags keep only the discovery this project uses: all of them would triple the build time.
var prometheusTags = []string{"remove_all_sd", "enable_kubernetes_sd", "enable_dns_sd"}

// All lists every binary in the order a build goes through them: dependencies come first.
func All() []Recipe {
	all := []Recipe{{Name: "etcd", Dir: "build/etcd", Module: "go.etcd.io/etcd/server/v3", Package: "go.etcd.io/etcd/server/v3"}}
	for _, name := range []string{"kube-apiserver", "kubectl", "kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		all = append(all, Recipe{
			Name: name, Dir: "build/kubernetes", Module: kubernetesModule,
			Package: kubernetesModule + "/cmd/" + name, Stamp: stampKubernetes,
		})
	}
	all = append(all,
		Recipe{Name: "pause", Dir: ".", Package: "./cmd/pause"},
		Recipe{Name: "network-policies", Dir: ".", Package: "./cmd/network-policies"},
		Recipe{Name: "coredns", Dir: "build/coredns", Module: "github.com/coredns/coredns", Package: "."},
	)
	for _, name := range []string{"workflow-controller", "argoexec", "argo"} {
		all = append(all, Recipe{
			Name: name, Module: argoModule, Release: "v4.0.2", Package: "./cmd/" + name, Stamp: stampArgo, Overlay: argoOverlay,
		})
	}
	all = append(all, Recipe{
		Name: "minio", Module: minioModule, Release: "v0.0.0-20250907161309-07c3a429bfed", Package: minioModule, Stamp: stampMinIO,
		PublishedAs: MinIORelease,
	})
	for _, name := range []string{"prometheus", "promtool"} {
		all = append(all, Recipe{
			Name: name, Dir: "build/prometheus", Module: prometheusModule,
			Package: prometheusModule + "/cmd/" + name, Tags: prometheusTags, Stamp: stampPrometheus,
			PublishedAs: PrometheusRelease,
		})
	}
	return append(all,
		Recipe{Name: "helm", Dir: "build/helm", Module: "helm.sh/helm/v4", Package: "helm.sh/helm/v4/cmd/helm", Stamp: stampHelm},
		Recipe{Name: "kind", Module: "sigs.k8s.io/kind", Release: "v0.33.0", Package: "sigs.k8s.io/kind"},
		Recipe{Name: "amtool", Module: alertmanagerModule, Release: "v0.34.0", Package: alertmanagerModule + "/cmd/amtool"},
		Recipe{Name: "registry", Module: registryModule, Release: "v3.1.1", Package: registryModule + "/cmd/registry"},
		Recipe{Name: "versitygw", Module: versitygwModule, Release: "v1.8.0", Package: versitygwModule + "/cmd/versitygw"},
		Recipe{Name: "gofakes3", Module: gofakes3Module, Release: "v1.2.0", Package: gofakes3Module + "/cmd/gofakes3"},
	)
}

// onDemand names the recipes that are built only when they are named.
var onDemand = []string{"promtool", "kind", "amtool", "registry", "versitygw", "gofakes3"}

// Select returns the recipes with the given names, in build order; no names mean all that every user needs.
func Select(names ...string) ([]Recipe, error) {
	var selected []Recipe
	known := make([]string, 0, len(All()))
	for _, recipe := range All() {
		known = append(known, recipe.Name)
		if slices.Contains(names, recipe.Name) || len(names) == 0 && !slices.Contains(onDemand, recipe.Name) {
			selected = append(selected, recipe)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown component %q: choose from %s", name, strings.Join(known, ", "))
		}
	}
	return selected, nil
}

// Version returns the release, or the version that the recipe's go.mod pins.
func (r Recipe) Version(source string) (string, error) {
	if r.Module == "" {
		return "own", nil
	}
	if r.Release != "" {
		return r.Release, nil
	}
	path := filepath.Join(source, r.Dir, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("recipe %s: %w", r.Name, err)
	}
	file, err := modfile.Parse(path, data, nil)
	if err != nil {
		return "", fmt.Errorf("recipe %s: %w", r.Name, err)
	}
	for _, require := range file.Require {
		if require.Mod.Path == r.Module {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("recipe %s: %s does not require %s", r.Name, path, r.Module)
}

// Published is the name by which the project publishes a version, as in the tag of its image.
func (r Recipe) Published(version string) string {
	if r.PublishedAs == nil {
		return version
	}
	return r.PublishedAs(version)
}

// LDFlags are the linker flags: no symbol tables, and the version where the program looks for it.
func (r Recipe) LDFlags(version string) string {
	flags := []string{"-s", "-w"}
	if r.Stamp != nil {
		for _, assignment := range r.Stamp(version) {
			flags = append(flags, "-X", assignment)
		}
	}
	return strings.Join(flags, " ")
}

// Key changes whenever the binary could: the recipe, the pinned modules, our own sources or the compiler.
func (r Recipe) Key(source, goVersion string) (string, error) {
	version, err := r.Version(source)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, format, r.Name, r.Package, r.Tags, r.LDFlags(version), r.Overlay, goVersion)
	if r.Release != "" {
		fmt.Fprintln(sum, r.Module, version)
		return hex.EncodeToString(sum.Sum(nil))[:12], nil
	}
	inputs := []string{filepath.Join(source, r.Dir, "go.mod"), filepath.Join(source, r.Dir, "go.sum")}
	if strings.HasPrefix(r.Package, ".") {
		own, err := goFiles(filepath.Join(source, r.Dir, r.Package))
		if err != nil {
			return "", fmt.Errorf("recipe %s: %w", r.Name, err)
		}
		inputs = append(inputs, own...)
	}
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			return "", fmt.Errorf("recipe %s: %w", r.Name, err)
		}
		fmt.Fprintln(sum, filepath.Base(input), len(data))
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

func goFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

func stampKubernetes(version string) []string {
	const base = "k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	stamps := []string{base + "gitVersion=" + version, base + "gitTreeState=clean", base + "gitCommit=" + version}
	if len(parts) == 3 {
		stamps = append(stamps, base+"gitMajor="+parts[0], base+"gitMinor="+parts[1])
	}
	return stamps
}

func stampArgo(version string) []string {
	// Argo reports its plain version, which is also the default tag of its executor's image, only for a clean tagged commit.
	prefix := argoModule + "."
	return []string{prefix + "version=" + version, prefix + "gitTag=" + version, prefix + "gitCommit=" + version,
		prefix + "gitTreeState=clean"}
}

func stampMinIO(version string) []string {
	const prefix = "github.com/minio/minio/cmd."
	release := MinIORelease(version)
	stamps := []string{prefix + "ReleaseTag=" + release, prefix + "Version=" + minIOTime(version, time.RFC3339)}
	if revision, err := module.PseudoVersionRev(version); err == nil {
		stamps = append(stamps, prefix+"CommitID="+revision, prefix+"ShortCommitID="+revision)
	}
	return append(stamps, prefix+"CopyrightYear="+strings.TrimPrefix(release, "RELEASE.")[:4])
}

func stampPrometheus(version string) []string {
	return []string{"github.com/prometheus/common/version.Version=" + strings.TrimPrefix(PrometheusRelease(version), "v")}
}

func stampHelm(version string) []string {
	return []string{"helm.sh/helm/v4/internal/version.version=" + version}
}

// MinIORelease turns MinIO's Go pseudo-version into the release's own name: releases are named by their commit's time.
func MinIORelease(version string) string {
	return "RELEASE." + minIOTime(version, "2006-01-02T15-04-05Z")
}

func minIOTime(version, layout string) string {
	at, err := module.PseudoVersionTime(version)
	if err != nil {
		return version
	}
	return at.UTC().Format(layout)
}

// PrometheusRelease turns Prometheus's Go module version into its release: v0.315.0 is release v3.15.0.
func PrometheusRelease(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) != 3 || len(parts[1]) != 3 {
		return version
	}
	return fmt.Sprintf("v%c.%s.%s", parts[1][0], strings.TrimPrefix(parts[1][1:], "0"), parts[2])
}
