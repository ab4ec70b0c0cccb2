package design

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// imagesFolder is where pods mount the copies of images.
const imagesFolder = "/assay/images"

// Images are those that the arms take their programs from, in the order of the cells; none when they have none of their own.
// The same experiment has the same images in every wave.
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
