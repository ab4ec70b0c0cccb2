package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who reads a figure reads beside it what it is not.
func TestTheFigureOfDecisionsSaysWhatItLeavesOut(t *testing.T) {
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
		t.Errorf("docs/methodology/calibration.md does not say of %s: %q", figure.Figure, figure.Note)
	}
}
