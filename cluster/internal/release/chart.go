package release

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/cluster/internal/image"
)

// Media types of charts in registries: https://helm.sh/docs/topics/registries/.
const (
	chartConfig  = "application/vnd.cncf.helm.config.v1+json"
	chartContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Stamp writes the images into the chart's folder: in values.yaml where each comes from, in Chart.yaml the version, and the
// images once more for Artifact Hub. With a registry, ours come from there; with layouts, ours are pinned to their digests.
func Stamp(chart string, table image.Table, version, registry, layouts string) error {
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	shown := strings.Builder{}
	for _, row := range table {
		if row.Value == "" {
			continue
		}
		from, err := originOf(row, registry, layouts)
		if err != nil {
			return err
		}
		if values, err = replaceLine(values, `  `+row.Value+`: \{repository: .*\}`, from.value(row)); err != nil {
			return fmt.Errorf("%s/values.yaml: images.%s: %w", chart, row.Value, err)
		}
		fmt.Fprintf(&shown, "    - {name: %s, image: %q}\n", row.Value, from.reference(version))
	}
	about, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	for _, key := range []string{"version", "appVersion"} {
		if about, err = replaceLine(about, key+`: .*`, key+": "+version); err != nil {
			return fmt.Errorf("%s/Chart.yaml: %w", chart, err)
		}
	}
	if about, err = replaceBlock(about, "  artifacthub.io/images: |\n", shown.String()); err != nil {
		return fmt.Errorf("%s/Chart.yaml: %w", chart, err)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(chart, "values.yaml"), values, 0o644),
		os.WriteFile(filepath.Join(chart, "Chart.yaml"), about, 0o644),
	)
}

// origin is the reference of an image. Without a tag it has the chart's version.
type origin struct{ repository, tag, digest string }

func originOf(row image.Row, registry, layouts string) (origin, error) {
	if len(row.Own) == 0 {
		return origin{row.Repository, row.Tag, ""}, nil
	}
	repository, err := row.InRegistry(registry)
	if err != nil || layouts == "" {
		return origin{repository, "", ""}, err
	}
	digest, err := Digest(filepath.Join(layouts, row.Name()))
	return origin{repository, "", digest}, err
}

// value is the image's line in values.yaml.
func (o origin) value(row image.Row) string {
	return fmt.Sprintf(`  %s: {repository: %s, tag: %s, digest: "%s"}`, row.Value, o.repository, cmp.Or(o.tag, `""`), o.digest)
}

// reference is the image's full name, as the chart makes it.
func (o origin) reference(version string) string {
	if o.digest != "" {
		return o.repository + "@" + o.digest
	}
	return o.repository + ":" + cmp.Or(o.tag, version)
}

// replaceBlock replaces the lines below the only line that begins a block of text, as far as they are indented deeper.
func replaceBlock(text []byte, begin, lines string) ([]byte, error) {
	before, after, ok := strings.Cut(string(text), begin)
	if !ok || strings.Contains(after, begin) {
		return nil, fmt.Errorf("there has to be one line %q", strings.TrimSpace(begin))
	}
	for strings.HasPrefix(after, "    ") {
		_, after, _ = strings.Cut(after, "\n")
	}
	return []byte(before + begin + lines + after), nil
}

// replaceLine replaces the only line that matches a pattern as a whole.
func replaceLine(text []byte, pattern, line string) ([]byte, error) {
	expression := regexp.MustCompile(`(?m)^` + pattern + `$`)
	if matches := len(expression.FindAllIndex(text, -1)); matches != 1 {
		return nil, fmt.Errorf("%d lines match %q: there has to be one", matches, pattern)
	}
	return expression.ReplaceAllLiteral(text, []byte(line)), nil
}

// Chart writes the OCI layout of a packaged chart, as `helm push` would send it, and returns its digest.
func Chart(archive, dir string) (string, error) {
	content, err := os.ReadFile(archive)
	if err != nil {
		return "", err
	}
	about, err := metadata(content)
	if err != nil {
		return "", fmt.Errorf("invalid packaged chart %s: %w", archive, err)
	}
	made, err := newArtifact(about, static.NewLayer(content, chartContent))
	if err != nil {
		return "", err
	}
	whole, err := partial.CompressedToImage(made)
	if err != nil {
		return "", err
	}
	if err := write(dir, whole, strings.TrimSuffix(filepath.Base(archive), ".tgz")); err != nil {
		return "", err
	}
	return Digest(dir)
}

// metadata reads Chart.yaml out of a packaged chart.
func metadata(content []byte) (map[string]any, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	for in := tar.NewReader(unzipped); ; {
		header, err := in.Next()
		if err != nil {
			return nil, fmt.Errorf("read Chart.yaml of the chart: %w", err)
		}
		if strings.Count(header.Name, "/") != 1 || filepath.Base(header.Name) != "Chart.yaml" {
			continue
		}
		raw, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		var about map[string]any
		err = yaml.Unmarshal(raw, &about)
		return about, err
	}
}

// artifact is an image whose configuration is that of a chart.
type artifact struct {
	config, manifest []byte
	layer            v1.Layer
}

func newArtifact(about map[string]any, layer v1.Layer) (*artifact, error) {
	config, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	configDigest, configSize, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	of, err := partial.Descriptor(layer)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{}
	for annotation, key := range map[string]string{"title": "name", "version": "version", "description": "description", "url": "home"} {
		if text, ok := about[key].(string); ok {
			annotations["org.opencontainers.image."+annotation] = text
		}
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: chartConfig, Digest: configDigest, Size: configSize},
		Layers: []v1.Descriptor{*of}, Annotations: annotations,
	})
	return &artifact{config, manifest, layer}, err
}

func (a *artifact) RawConfigFile() ([]byte, error)                         { return a.config, nil }
func (a *artifact) RawManifest() ([]byte, error)                           { return a.manifest, nil }
func (a *artifact) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (a *artifact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }
