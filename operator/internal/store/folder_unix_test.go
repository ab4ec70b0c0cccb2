//go:build unix

package store

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFolder_PipeIsNoObjectAndDoesNotBlock(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(root, "experiment.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := Open(t.Context(), FolderURL(root), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), "experiment.json"); !errors.Is(err, ErrNotFound) {
		t.Errorf("read %q, %v", got, err)
	}
}
