package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"assay.dev/assay/cluster/internal/image"
)

// programs writes one program for each architecture.
func programs(t *testing.T) (bin string) {
	t.Helper()
	dir := t.TempDir()
	for _, architecture := range []string{"amd64", "arm64"} {
		folder := filepath.Join(dir, architecture)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "tool"), []byte("for "+architecture), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "{arch}")
}

var row = image.Row{
	Value: "tool", Repository: "assay.dev/assay-tool", Tag: "1.2.3", Own: map[string]string{"/tool": "tool"}, Entrypoint: []string{"/tool"},
}

func local(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestPublish_ImageHasEveryPlatformUnderTheDigestOfItsLayout(t *testing.T) {
	dir, bin := t.TempDir(), programs(t)
	if err := Layouts(image.Table{row}, dir, bin, []string{"amd64", "arm64"}); err != nil {
		t.Fatal(err)
	}
	digest, err := Digest(filepath.Join(dir, "assay-tool"))
	if err != nil {
		t.Fatal(err)
	}
	repository, err := row.InRegistry(local(t) + "/team")
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := Push(t.Context(), filepath.Join(dir, "assay-tool"), repository, row.Tag, false)
	if err != nil || pushed != repository+"@"+digest {
		t.Fatalf("pushed %s, %v; want digest %s", pushed, err, digest)
	}
	reference, err := name.ParseReference(pushed)
	if err != nil {
		t.Fatal(err)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		got, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatal(err)
		}
		config, err := got.ConfigFile()
		if err != nil || config.Architecture != architecture || config.Config.Labels["org.opencontainers.image.version"] != "1.2.3" {
			t.Errorf("%s: config %+v, %v", architecture, config, err)
		}
		layers, err := got.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%s: %d layers, %v", architecture, len(layers), err)
		}
		content, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil || !bytes.Contains(text, []byte("for "+architecture)) {
			t.Errorf("%s: the layer has not the program of that architecture (%v)", architecture, err)
		}
	}

	again := t.TempDir()
	if err := Layouts(image.Table{row}, again, bin, []string{"amd64", "arm64"}); err != nil {
		t.Fatal(err)
	}
	if other, err := Digest(filepath.Join(again, "assay-tool")); err != nil || other != digest {
		t.Errorf("the same files gave %s and %s (%v)", digest, other, err)
	}
}

func TestPlatforms_OfALayout(t *testing.T) {
	for list, want := range map[string]string{
		"linux/amd64": "amd64", "linux/amd64,linux/arm64": "amd64 arm64", "linux/s390x": "error", "darwin/arm64": "error", "": "error",
		"linux/arm64,linux/arm64": "error",
	} {
		got, err := Platforms(list)
		text := strings.Join(got, " ")
		if err != nil {
			text = "error"
		}
		if text != want {
			t.Errorf("%q: got %q (%v), want %q", list, text, err, want)
		}
	}
}

func packaged(t *testing.T) string {
	t.Helper()
	var content bytes.Buffer
	zipped := gzip.NewWriter(&content)
	out := tar.NewWriter(zipped)
	text := "apiVersion: v2\nname: assay\nversion: 1.2.3\ndescription: d\nhome: https://h\n"
	if err := out.WriteHeader(&tar.Header{Name: "assay/Chart.yaml", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, text); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "assay-1.2.3.tgz")
	if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPublish_ChartIsTheOneOfHelm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "chart")
	archive := packaged(t)
	digest, err := Chart(archive, dir)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := Push(t.Context(), dir, local(t)+"/charts/assay", "1.2.3", false)
	if err != nil || !strings.HasSuffix(pushed, "@"+digest) {
		t.Fatalf("pushed %s, %v", pushed, err)
	}
	reference, err := name.ParseReference(pushed)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := got.Manifest()
	if err != nil || manifest.Config.MediaType != chartConfig || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != chartContent ||
		manifest.Annotations["org.opencontainers.image.version"] != "1.2.3" {
		t.Errorf("manifest %+v, %v", manifest, err)
	}
	if config, err := got.RawConfigFile(); err != nil || !bytes.Contains(config, []byte(`"name":"assay"`)) {
		t.Errorf("config %s, %v", config, err)
	}
	if _, err := Chart("publish_test.go", dir); err == nil {
		t.Error("a file that is no chart was taken for one")
	}
}

func TestPublish_ChartNamesTheRegistry(t *testing.T) {
	const values = "images:\n  # -- Ours.\n  tool: {repository: old, tag: x, digest: \"\"}\n  other: {repository: old, tag: x, digest: \"\"}\n"
	layouts := t.TempDir()
	if err := Layouts(image.Table{row}, layouts, programs(t), []string{"amd64"}); err != nil {
		t.Fatal(err)
	}
	digest, err := Digest(filepath.Join(layouts, "assay-tool"))
	if err != nil {
		t.Fatal(err)
	}
	table := image.Table{row, {Value: "other", Repository: "quay.io/other/tool", Tag: "v1"}, {Repository: "registry.k8s.io/pause", Tag: "3"}}
	const aboutChart = "name: assay\nversion: 0.0.1\nappVersion: 0.0.1\nannotations:\n" +
		"  artifacthub.io/images: |\n    - {name: gone, image: gone}\n    - {name: gone-too, image: gone}\n  artifacthub.io/license: Apache-2.0\n"
	for sentence, tc := range map[string]struct{ registry, layouts, want, shown string }{
		"in the tree, ours have the tag of the chart": {
			"", "", `tool: {repository: assay.dev/assay-tool, tag: "", digest: ""}`, "assay.dev/assay-tool:1.2.3",
		},
		"in a release, ours are pinned": {
			"ghcr.io/acme", layouts, `tool: {repository: ghcr.io/acme/assay-tool, tag: "", digest: "` + digest + `"}`,
			"ghcr.io/acme/assay-tool@" + digest,
		},
	} {
		chart := t.TempDir()
		for file, text := range map[string]string{"values.yaml": values, "Chart.yaml": aboutChart} {
			if err := os.WriteFile(filepath.Join(chart, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := Stamp(chart, table, "1.2.3", tc.registry, tc.layouts); err != nil {
			t.Fatalf("%s: %v", sentence, err)
		}
		got, _ := os.ReadFile(filepath.Join(chart, "values.yaml"))
		about, _ := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
		if !strings.Contains(string(got), tc.want) ||
			!strings.Contains(string(got), `other: {repository: quay.io/other/tool, tag: v1, digest: ""}`) ||
			!strings.Contains(string(about), "\nversion: 1.2.3\nappVersion: 1.2.3\n") {
			t.Errorf("%s: %s%s", sentence, got, about)
		}
		want := "images: |\n    - {name: tool, image: \"" + tc.shown + "\"}\n    - {name: other, image: \"quay.io/other/tool:v1\"}\n" +
			"  artifacthub.io/license: Apache-2.0\n"
		if !strings.HasSuffix(string(about), want) {
			t.Errorf("%s: Artifact Hub is told\n%s\nwant\n%s", sentence, about, want)
		}
	}
	if err := Stamp(t.TempDir(), table, "1.2.3", "", ""); err == nil {
		t.Error("a folder without a chart was taken for one")
	}
}
