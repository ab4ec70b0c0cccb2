package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mostTracked is the size of a tracked file at most, in bytes: the largest is a CRD of Argo's.
const mostTracked = 1 << 20

// A program that was built in the tree is large, or begins as programs do, and belongs to bin/ and out/, which git ignores.
func TestTracked_NoFileIsAProgramOrLarge(t *testing.T) {
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // It is deleted and not committed yet, or a link to a folder.
		}
		if len(content) > mostTracked {
			t.Errorf("%s has %d bytes, at most %d are allowed: untrack it (git rm --cached)", name, len(content), mostTracked)
		}
		if bytes.HasPrefix(content, []byte("\x7fELF")) {
			t.Errorf("%s is a program: untrack it (git rm --cached)", name)
		}
	}
}
