package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"assay.dev/assay/charts/test/generate"
)

func TestGenerated_FilesAreCurrent(t *testing.T) {
	files, err := generate.Files(repository)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Errorf("%v: run make generate", err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s differs from its source: run make generate", name)
		}
	}
	stale, err := generate.Stale(repository, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stale {
		t.Errorf("%s is made from nothing: run make generate", name)
	}
}
