package manifest

import (
	"embed"
	"io/fs"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

//go:generate sh -c "rm -f shipped/*.yaml && cp ../../../charts/assay/files/benchmarktemplates/*.yaml shipped/"

//go:embed shipped/*.yaml
var shipped embed.FS

// Shipped are the templates that the chart installs. They are in the program, so that it needs no checkout to know them.
func Shipped() ([]assayv1alpha1.BenchmarkTemplate, error) {
	set := &Set{}
	err := fs.WalkDir(shipped, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := shipped.ReadFile(path)
		if err != nil {
			return err
		}
		return set.add(path, raw)
	})
	return set.Templates, err
}
