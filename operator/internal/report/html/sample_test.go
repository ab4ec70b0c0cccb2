package html

import (
	"os"
	"path/filepath"
	"testing"

	"assay.dev/assay/operator/test/golden"
)

// The sample in the docs is the output of the program.
func TestSample_ReportInDocsIsCurrent(t *testing.T) {
	page, path := simulated(t, nil, nil).page(t), filepath.Join("..", "..", "..", "..", "docs", "sample-report", "report.html")
	if *golden.Update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if on, err := os.ReadFile(path); err != nil || string(on) != page {
		t.Errorf("%s is another page (%v): run make sample-report", path, err)
	}
}
