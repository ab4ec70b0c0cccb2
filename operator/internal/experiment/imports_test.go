package experiment_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Packages that measure, judge and report read plans only. If one of them read the API, a new API version would require a new version of
// the ledger.
func TestImports_PackagesThatReadPlansDoNotImportTheAPI(t *testing.T) {
	for _, folder := range []string{
		"analysis", "compare", "design", "export", "ledger", "noise", "record", "report", "search", "format",
	} {
		files := 0
		err := filepath.WalkDir(filepath.Join("..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, one := range file.Imports {
				if strings.HasPrefix(one.Path.Value, `"assay.dev/assay/operator/api/`) {
					t.Errorf("%s imports %s: add the required fields to experiment.Plan", path, one.Path.Value)
				}
				if folder == "design" && strings.Contains(one.Path.Value, "k8s.io/") {
					t.Errorf("%s imports %s: what to measure next is decided without a cluster; when to act is for package plan", path, one.Path.Value)
				}
			}
			return nil
		})
		if err != nil || files == 0 {
			t.Errorf("%s: %d files read (%v)", folder, files, err)
		}
	}
}
