package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The document must state the limitation of each figure.
func TestWaiting_DocumentStatesTheLimitations(t *testing.T) {
	figure, err := decideWaiting()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "methodology", "calibration.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	if figure.Note == "" || !strings.Contains(text, "`"+figure.Figure+"`") || !strings.Contains(text, figure.Note) {
		t.Errorf("docs/methodology/calibration.md lacks the note of %s: %q", figure.Figure, figure.Note)
	}
}
