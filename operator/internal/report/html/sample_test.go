package html

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the sample report of the docs")

// The sample in the docs is what the program writes.
func TestTheSampleReportIsOnView(t *testing.T) {
	page, path := simulated(t, nil, nil).page(t), filepath.Join("..", "..", "..", "..", "docs", "sample-report", "report.html")
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if on, err := os.ReadFile(path); err != nil || string(on) != page {
		t.Errorf("%s is another page (%v): run make sample-report", path, err)
	}
}
