package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who reads a figure reads beside it what it is not.
func TestThePageSaysWhatAnAnalysisWasMeasuredWithout(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "methodology", "calibration.md"))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(string(page)), " "); !strings.Contains(text, analyzedWithout) {
		t.Errorf("docs/methodology/calibration.md does not say of analyze.*: %s", analyzedWithout)
	}
}
