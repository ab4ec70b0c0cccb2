// Package image assembles container images from files, with neither an engine nor a registry.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image lists the contents of an image.
type Image struct {
	// Ref is the image's full name with its tag.
	Ref string
	// Files maps paths in the image to files of this machine. A file that may be executed here may be so there.
	Files map[string]string
	// Texts maps paths in the image to contents.
	Texts map[string]string
	// Dirs are empty folders that belong to User.
	Dirs       []string
	Entrypoint []string
	Cmd        []string
	// User is a numeric user, which is also the group; empty is root.
	User    string
	WorkDir string
	// Architecture of the programs, as Go names it; empty is amd64.
	Architecture string            `json:",omitempty"`
	Labels       map[string]string `json:",omitempty"`
}

func (i Image) architecture() string { return cmp.Or(i.Architecture, "amd64") }

// base holds the files that programs expect in any root file system.
var base = map[string]string{
	"/etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n" +
		"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
	"/etc/group": "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n",
	// Without it, names in /etc/hosts are asked of DNS first.
	"/etc/nsswitch.conf": "hosts: files dns\n",
}

// searchPath lets an entrypoint be given by its plain name, as the upstream images do.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

var numeric = regexp.MustCompile(`^[0-9]{1,9}$`)

// Validate rejects errors that would otherwise appear when a pod starts.
func (i Image) Validate() error {
	reference, err := name.NewTag(i.Ref, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("image name %q: give it in full, as in registry.example.com/team/tool:1.0: %w", i.Ref, err)
	}
	// The library spells out the host that Docker Hub answers on; Kubernetes keeps the one that people write.
	if whole := strings.Replace(reference.Name(), "index.docker.io/", "docker.io/", 1); whole != i.Ref {
		return fmt.Errorf("image name %q: Kubernetes would read it as %q: give that", i.Ref, whole)
	}
	if i.User != "" && !numeric.MatchString(i.User) {
		return fmt.Errorf("image %s: user %q: give a number, because Kubernetes cannot tell whether a name is root", i.Ref, i.User)
	}
	for inside := range i.Files {
		if !path.IsAbs(inside) || path.Clean(inside) != inside {
			return fmt.Errorf("image %s: path %q in the image: give a clean absolute path", i.Ref, inside)
		}
	}
	return nil
}

// Archive writes the image to a folder, as an archive that containerd, kind and Docker load, and returns its path.
// The file's name is a digest of the inputs, so that an unchanged image is not written again. `inputs` stand for the contents of
// Files where the caller knows a cheaper name for them; nil means: read the files.
func (i Image) Archive(dir string, inputs []string) (archive string, cached bool, err error) {
	if err := i.Validate(); err != nil {
		return "", false, err
	}
	key, err := i.key(inputs)
	if err != nil {
		return "", false, fmt.Errorf("image %s: %w", i.Ref, err)
	}
	archive = filepath.Join(dir, fmt.Sprintf("%s-%s.tar", strings.NewReplacer("/", "_", ":", "_").Replace(i.Ref), key))
	if _, err := os.Stat(archive); err == nil {
		return archive, true, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", false, err
	}
	// Under a temporary name first: an interrupted write must not look finished.
	unfinished := fmt.Sprintf("%s.%d", archive, os.Getpid())
	defer os.Remove(unfinished)
	if err := i.write(unfinished); err != nil {
		return "", false, fmt.Errorf("image %s: %w", i.Ref, err)
	}
	return archive, false, os.Rename(unfinished, archive)
}

// format changes when the way of assembling does.
const format = "3"

func (i Image) key(inputs []string) (string, error) {
	sum := sha256.New()
	described, err := json.Marshal(struct {
		Image
		Files  []string
		Format string
		Inputs []string
	}{i, slices.Sorted(maps.Keys(i.Files)), format, inputs})
	if err != nil {
		return "", err
	}
	sum.Write(described)
	if inputs == nil {
		for _, inside := range slices.Sorted(maps.Keys(i.Files)) {
			if err := hashFile(sum, i.Files[inside]); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

func hashFile(sum io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	fmt.Fprintln(sum, path, info.Size(), info.Mode().Perm()&0o111 != 0)
	_, err = io.Copy(sum, file)
	return err
}

func (i Image) write(file string) error {
	img, layer, err := i.build()
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(writeArchive(out, i, img, layer), out.Close())
}

// build is the image with its only layer.
func (i Image) build() (v1.Image, *layer, error) {
	only, err := newLayer(i.open)
	if err != nil {
		return nil, nil, err
	}
	img, err := i.around(only)
	return img, only, err
}

// around is the image that has this layer.
func (i Image) around(layer v1.Layer) (v1.Image, error) {
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		layer)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = i.architecture(), "linux"
	config.Config = v1.Config{Entrypoint: i.Entrypoint, Cmd: i.Cmd, WorkingDir: i.WorkDir, Env: []string{searchPath}, Labels: i.Labels}
	if i.User != "" {
		config.Config.User = i.User + ":" + i.User
	}
	return mutate.ConfigFile(img, config)
}

// open streams the only layer. It says nothing of when and by whom it was made, so that equal contents give equal digests.
func (i Image) open() (io.ReadCloser, error) {
	reader, writer := io.Pipe()
	go func() {
		out := tar.NewWriter(writer)
		writer.CloseWithError(errors.Join(i.entries(out), out.Close()))
	}()
	return reader, nil
}

func (i Image) entries(out *tar.Writer) error {
	texts := maps.Clone(base)
	maps.Copy(texts, i.Texts)
	if err := i.folders(out, texts); err != nil {
		return err
	}
	for _, inside := range slices.Sorted(maps.Keys(texts)) {
		if err := add(out, inside[1:], 0o644, int64(len(texts[inside])), strings.NewReader(texts[inside])); err != nil {
			return err
		}
	}
	for _, inside := range slices.Sorted(maps.Keys(i.Files)) {
		if err := addFile(out, inside, i.Files[inside]); err != nil {
			return err
		}
	}
	return nil
}

func (i Image) folders(out *tar.Writer, texts map[string]string) error {
	var owner int
	if i.User != "" {
		if _, err := fmt.Sscan(i.User, &owner); err != nil {
			return err
		}
	}
	type folder struct {
		mode  int64
		owner int
	}
	all := map[string]folder{"/tmp": {0o1777, 0}, "/root": {0o700, 0}}
	for _, dir := range i.Dirs {
		all[dir] = folder{0o755, owner}
	}
	for _, inside := range slices.Concat(slices.Sorted(maps.Keys(i.Files)), slices.Sorted(maps.Keys(texts)), i.Dirs) {
		for dir := path.Dir(inside); dir != "/"; dir = path.Dir(dir) {
			if _, known := all[dir]; !known {
				all[dir] = folder{0o755, 0}
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		header := &tar.Header{
			Name: dir[1:] + "/", Typeflag: tar.TypeDir, Mode: all[dir].mode, Uid: all[dir].owner, Gid: all[dir].owner, ModTime: time.Unix(0, 0),
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
	}
	return nil
}

func addFile(out *tar.Writer, inside, outside string) error {
	file, err := os.Open(outside)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode().Perm()&0o111 != 0 {
		mode = 0o755
	}
	return add(out, inside[1:], mode, info.Size(), file)
}

// add says nothing of when a file was made, so that equal contents give equal archives.
func add(out *tar.Writer, name string, mode, size int64, data io.Reader) error {
	header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: size, ModTime: time.Unix(0, 0)}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(out, data)
	return err
}

// writeArchive writes an OCI layout, which keeps the digest, with the index that older Docker engines look for beside it.
func writeArchive(out io.Writer, i Image, img v1.Image, only *layer) error {
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	configName, err := img.ConfigName()
	if err != nil {
		return err
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{{
		MediaType: types.OCIManifestSchema1, Digest: digest, Size: int64(len(manifest)),
		Platform:    &v1.Platform{Architecture: i.architecture(), OS: "linux"},
		Annotations: map[string]string{"io.containerd.image.name": i.Ref, "org.opencontainers.image.ref.name": i.Ref},
	}}})
	if err != nil {
		return err
	}
	blob := func(hash v1.Hash) string { return "blobs/" + hash.Algorithm + "/" + hash.Hex }
	docker, err := json.Marshal(tarball.Manifest{{
		Config: blob(configName), RepoTags: []string{i.Ref}, Layers: []string{blob(only.digest)},
	}})
	if err != nil {
		return err
	}
	archive := tar.NewWriter(out)
	for _, small := range []struct {
		name string
		data []byte
	}{
		// The index comes first, so that Digest need not read the rest.
		{"index.json", index}, {"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"manifest.json", docker},
		{blob(digest), manifest}, {blob(configName), config},
	} {
		if err := add(archive, small.name, 0o644, int64(len(small.data)), bytes.NewReader(small.data)); err != nil {
			return err
		}
	}
	data, err := only.open()
	if err != nil {
		return err
	}
	if err := errors.Join(add(archive, blob(only.digest), 0o644, only.size, data), data.Close()); err != nil {
		return err
	}
	return archive.Close()
}

// Digest reads an archive's image name and digest without reading its layers. Archives of other tools may have none first.
func Digest(archive string) (ref, digest string, err error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", "", err
	}
	defer file.Close()
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return "", "", fmt.Errorf("%s holds no index.json: make it with `cluster images add`, or as an OCI archive", archive)
		}
		if err != nil {
			return "", "", fmt.Errorf("%s is not an image archive: %w", archive, err)
		}
		if header.Name != "index.json" {
			continue
		}
		var index v1.IndexManifest
		if err := json.NewDecoder(reader).Decode(&index); err != nil {
			return "", "", fmt.Errorf("%s: index.json: %w", archive, err)
		}
		if len(index.Manifests) != 1 {
			return "", "", fmt.Errorf("%s holds %d images: give one per archive", archive, len(index.Manifests))
		}
		only := index.Manifests[0]
		return only.Annotations["io.containerd.image.name"], only.Digest.String(), nil
	}
}
