// Package release makes OCI layouts of the images and the chart, pushes them to registries, and writes their CycloneDX and provenance
// documents.
package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"assay.dev/assay/cluster/internal/image"
)

// Platforms reads a list such as linux/amd64,linux/arm64 and returns the architectures.
func Platforms(list string) ([]string, error) {
	var architectures []string
	seen := map[string]bool{}
	for platform := range strings.SplitSeq(list, ",") {
		architecture, ok := strings.CutPrefix(strings.TrimSpace(platform), "linux/")
		if !ok || architecture != "amd64" && architecture != "arm64" {
			return nil, fmt.Errorf("invalid platform %q: images are made for linux/amd64 and linux/arm64", platform)
		}
		if seen[architecture] {
			return nil, fmt.Errorf("platform %s is given twice: once is enough", platform)
		}
		seen[architecture] = true
		architectures = append(architectures, architecture)
	}
	return architectures, nil
}

// Layouts writes an OCI layout of every row into a folder of its name: an index with an image for each platform, whose programs are in
// bin, where {arch} stands for the architecture. Existing layouts are replaced.
func Layouts(rows image.Table, dir, bin string, architectures []string) error {
	for _, row := range rows {
		index, err := indexOf(row, bin, architectures)
		if err != nil {
			return fmt.Errorf("image %s: %w", row.Ref(), err)
		}
		if err := write(filepath.Join(dir, row.Name()), index, row.Ref()); err != nil {
			return fmt.Errorf("image %s: %w", row.Ref(), err)
		}
	}
	return nil
}

func indexOf(row image.Row, bin string, architectures []string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures {
		made := row.Assemble(strings.ReplaceAll(bin, "{arch}", architecture), architecture)
		if err := made.Validate(); err != nil {
			return nil, err
		}
		compressed, err := made.Compressed()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: compressed, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index, nil
}

// write makes a layout that holds one thing, under one name.
func write(dir string, only mutate.Appendable, ref string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": ref})
	switch only := only.(type) {
	case v1.ImageIndex:
		return path.AppendIndex(only, named)
	case v1.Image:
		return path.AppendImage(only, named)
	}
	return fmt.Errorf("%T can be in no layout", only)
}

// open reads an archive of the cache, or a layout that holds one thing.
func open(dir string) (v1.Descriptor, remote.Taggable, error) {
	if info, err := os.Stat(dir); err == nil && info.Mode().IsRegular() {
		archived, err := tarball.ImageFromPath(dir, nil)
		if err != nil {
			return v1.Descriptor{}, nil, fmt.Errorf("invalid image archive %s: %w", dir, err)
		}
		only, err := partial.Descriptor(archived)
		if err != nil {
			return v1.Descriptor{}, nil, fmt.Errorf("%s: %w", dir, err)
		}
		return *only, archived, nil
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return v1.Descriptor{}, nil, fmt.Errorf("%s is no OCI layout (make images writes them): %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return v1.Descriptor{}, nil, fmt.Errorf("%s: %w", dir, err)
	}
	if len(manifest.Manifests) != 1 {
		return v1.Descriptor{}, nil, fmt.Errorf("%s holds %d images: one layout holds one", dir, len(manifest.Manifests))
	}
	only := manifest.Manifests[0]
	if only.MediaType.IsIndex() {
		inner, err := index.ImageIndex(only.Digest)
		return only, inner, err
	}
	inner, err := index.Image(only.Digest)
	return only, inner, err
}

// Digest returns the digest of a layout's content.
func Digest(dir string) (string, error) {
	only, _, err := open(dir)
	return only.Digest.String(), err
}

// Push pushes the content of a layout to a registry and returns its reference by digest.
func Push(ctx context.Context, dir, repository, tag string, insecure bool) (string, error) {
	only, content, err := open(dir)
	if err != nil {
		return "", err
	}
	options := []name.Option{name.StrictValidation}
	if insecure {
		options = append(options, name.Insecure)
	}
	reference, err := name.NewTag(repository+":"+tag, options...)
	if err != nil {
		return "", err
	}
	if err := remote.Push(reference, content, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push %s: %w", reference, err)
	}
	return reference.Context().Name() + "@" + only.Digest.String(), nil
}
