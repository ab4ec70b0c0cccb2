package design

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// imagesFolder is where pods mount the copies of images.
const imagesFolder = "/assay/images"

// Images returns the images that the programs of the arms are copied from, in the order of the cells; nil if the arms have none. They are
// the same in every wave of an experiment.
func Images(exp *experiment.Experiment) []record.Image {
	var out []record.Image
	for _, cell := range exp.Cells {
		image := exp.Image(cell)
		known := slices.ContainsFunc(out, func(i record.Image) bool { return i.Reference == image })
		if image == "" || known {
			continue
		}
		out = append(out, record.Image{
			Reference: image, Root: fmt.Sprintf("%s/%d", imagesFolder, len(out)), Files: exp.Files(image),
		})
	}
	return out
}
