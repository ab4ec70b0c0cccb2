package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkout makes a repository with an archive and a program called assay that prints an analysis.
func checkout(t *testing.T, analysis string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"studies/a/ledger.tar.zst": "an archive",
		"bin/assay":                "#!/bin/sh\necho '" + analysis + "'\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", arguments[0], err, out)
		}
	}
	return root
}

func TestVerdicts_ComparesEverythingButTexts(t *testing.T) {
	old := checkout(t, `{"verdict": "Go", "ratio": 1.25, "warnings": ["an old text"]}`)
	for name, test := range map[string]struct {
		analysis string
		changed  float64
	}{
		"another text is no difference":   {`{"verdict": "Go", "ratio": 1.25, "warnings": ["a new text"]}`, 0},
		"another verdict is a difference": {`{"verdict": "NoGo", "ratio": 1.25, "warnings": ["a text"]}`, 1},
		"another number is a difference":  {`{"verdict": "Go", "ratio": 1.26, "warnings": ["a text"]}`, 1},
		"a further text is a difference":  {`{"verdict": "Go", "ratio": 1.25, "warnings": ["a text", "a text"]}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := run(context.Background(), []string{"-old", old, "-new", checkout(t, test.analysis), "verdicts"}, &out,
				io.Discard); err != nil {
				t.Fatal(err)
			}
			var got figure
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got.Value != test.changed || got.Samples != 1 {
				t.Errorf("got %s, want %g of 1 changed", out.String(), test.changed)
			}
		})
	}
}

func TestVerdicts_MissingArchiveFails(t *testing.T) {
	old, now := checkout(t, `{}`), checkout(t, `{}`)
	if err := os.Remove(filepath.Join(now, "studies/a/ledger.tar.zst")); err != nil {
		t.Fatal(err)
	}
	err := run(context.Background(), []string{"-old", old, "-new", now, "verdicts"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "studies/a/ledger.tar.zst") {
		t.Errorf("got %v, want an error that names the archive", err)
	}
}

func TestRatio_IsNewOverOldWithAnInterval(t *testing.T) {
	var trees [2]tree
	for i, value := range []string{"2.0", "3.0"} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "probe"), []byte("#!/bin/sh\necho '{\"figure\":\"f\",\"value\":"+value+"}'\n"),
			0o755); err != nil {
			t.Fatal(err)
		}
		trees[i] = tree{root, root}
	}
	got, err := ratio(context.Background(), trees, program{"r", "f", []string{"probe"}}, 4, io.Discard)
	if err != nil || got.Value < 1.499 || got.Value > 1.501 || *got.Low > got.Value || *got.High < got.Value || got.Samples != 4 {
		t.Errorf("got %+v, %v; want 1.5 of 4 samples", got, err)
	}
	if _, err := ratio(context.Background(), trees, program{"r", "absent", []string{"probe"}}, 2, io.Discard); err == nil {
		t.Error("a program without the figure is no error")
	}
}
