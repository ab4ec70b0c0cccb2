package manifest

import (
	"embed"
	"io/fs"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

//go:generate sh -c "rm -f shipped/*.yaml && cp ../../../charts/assay/files/benchmarktemplates/*.yaml shipped/"

//go:embed shipped/*.yaml
var shipped embed.FS

// AddShipped adds the templates that the chart installs, after those that were read.
func (s *Set) AddShipped() error {
	return fs.WalkDir(shipped, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := shipped.ReadFile(path)
		if err != nil {
			return err
		}
		// The name marks the embedded file, because no file of this name is on the disk.
		return s.add(strings.TrimPrefix(path, "shipped/")+" (shipped)", raw)
	})
}

// Shipped returns the templates that the chart installs. They are embedded, so that the program needs no checkout.
func Shipped() ([]assayv1alpha1.BenchmarkTemplate, error) {
	set := &Set{}
	err := set.AddShipped()
	return set.Templates, err
}
