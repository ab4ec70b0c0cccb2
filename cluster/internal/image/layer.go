package image

import (
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is an uncompressed layer: it never leaves this machine, and compressing costs more time than writing.
type layer struct {
	open   func() (io.ReadCloser, error)
	digest v1.Hash
	size   int64
}

func newLayer(open func() (io.ReadCloser, error)) (*layer, error) {
	content, err := open()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	digest, size, err := v1.SHA256(content)
	return &layer{open: open, digest: digest, size: size}, err
}

func (l *layer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return l.open() }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return l.open() }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }

// Compressed is the image as registries keep it: its layer is compressed, and the same files give the same bytes.
func (i Image) Compressed() (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(i.open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	return i.around(layer)
}
