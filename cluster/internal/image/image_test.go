package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func tool(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func example(t *testing.T) Image {
	return Image{
		Ref: "assay.dev/tool:1.0", Files: map[string]string{"/bin/tool": tool(t, "program")}, Entrypoint: []string{"tool"},
		User: "65532", Dirs: []string{"/data"},
	}
}

func entries(t *testing.T, reader io.Reader) map[string]*tar.Header {
	t.Helper()
	headers := map[string]*tar.Header{}
	for in := tar.NewReader(reader); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return headers
		}
		if err != nil {
			t.Fatal(err)
		}
		if headers[header.Name] != nil {
			t.Errorf("%s is there twice", header.Name)
		}
		headers[header.Name] = header
	}
}

func TestImage_ContainsTheFilesThatProgramsExpect(t *testing.T) {
	image := example(t)
	content, err := image.open()
	if err != nil {
		t.Fatal(err)
	}
	headers := entries(t, content)
	for name, want := range map[string]struct {
		mode int64
		uid  int
	}{
		"tmp/": {0o1777, 0}, "bin/tool": {0o755, 0}, "data/": {0o755, 65532}, "etc/passwd": {0o644, 0}, "bin/": {0o755, 0},
	} {
		header := headers[name]
		if header == nil || header.Mode != want.mode || header.Uid != want.uid {
			t.Errorf("%s: got %+v, want %+v", name, header, want)
		}
	}

	built, _, err := image.build()
	if err != nil {
		t.Fatal(err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "tool" || config.OS != "linux" || config.Architecture != "amd64" {
		t.Errorf("config: %+v", config)
	}
	if len(config.RootFS.DiffIDs) != 1 {
		t.Errorf("layers: %v", config.RootFS.DiffIDs)
	}
}

func TestArchive_IsWrittenOnceWithItsName(t *testing.T) {
	image, dir := example(t), t.TempDir()
	first, cached, err := image.Archive(dir, nil)
	if err != nil || cached {
		t.Fatalf("first: cached %v, %v", cached, err)
	}
	second, cached, err := image.Archive(dir, nil)
	if err != nil || !cached || second != first {
		t.Errorf("again: %s, cached %v, %v; want %s", second, cached, err, first)
	}
	ref, digest, err := Digest(first)
	if err != nil || ref != image.Ref || !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("archive says %q %q, %v", ref, digest, err)
	}

	image.Files["/bin/tool"] = tool(t, "another program")
	third, cached, err := image.Archive(dir, nil)
	if err != nil || cached || third == first {
		t.Errorf("changed file: %s, cached %v, %v", third, cached, err)
	}
}

func TestArchive_IsACompleteOCILayout(t *testing.T) {
	path, _, err := example(t).Archive(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	headers := entries(t, file)
	manifest := blobs(t, path)
	for _, descriptor := range append(manifest.Layers, manifest.Config) {
		name := "blobs/sha256/" + descriptor.Digest.Hex
		if headers[name] == nil || headers[name].Size != descriptor.Size {
			t.Errorf("%s: got %+v, want size %d", name, headers[name], descriptor.Size)
		}
	}
	for _, name := range []string{"index.json", "oci-layout", "manifest.json"} {
		if headers[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func blobs(t *testing.T, path string) v1.Manifest {
	t.Helper()
	_, digest, err := Digest(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for in := tar.NewReader(file); ; {
		header, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == "blobs/sha256/"+strings.TrimPrefix(digest, "sha256:") {
			var manifest v1.Manifest
			if err := json.NewDecoder(in).Decode(&manifest); err != nil {
				t.Fatal(err)
			}
			return manifest
		}
	}
}

func TestValidate_ProgramsThatWouldFailInAPod(t *testing.T) {
	for reason, change := range map[string]func(*Image){
		"a name without a registry":         func(i *Image) { i.Ref = "tool:1.0" },
		"a name without a tag":              func(i *Image) { i.Ref = "assay.dev/tool" },
		"a user that is a name":             func(i *Image) { i.User = "nobody" },
		"a relative path in the image":      func(i *Image) { i.Files = map[string]string{"tool": "x"} },
		"a path that climbs":                func(i *Image) { i.Files = map[string]string{"/../tool": "x"} },
		"a file that is not on the machine": func(i *Image) { i.Files = map[string]string{"/tool": "/no/such/file"} },
	} {
		image := example(t)
		change(&image)
		if _, _, err := image.Archive(t.TempDir(), nil); err == nil {
			t.Errorf("%s: want an error", reason)
		}
	}
}

func TestDigest_InvalidArchiveIsAnError(t *testing.T) {
	if _, _, err := Digest(tool(t,
		"no tar at all, but long enough to look like a header of one, if only it were that long: "+strings.Repeat("x", 512))); err == nil {
		t.Error("want an error")
	}
}
