package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The document must state the limitation of the figures.
func TestScale_DocumentStatesTheLimitations(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "methodology", "calibration.md"))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(string(page)), " "); !strings.Contains(text, analyzedWithout) {
		t.Errorf("docs/methodology/calibration.md lacks the note of analyze.*: %s", analyzedWithout)
	}
}
