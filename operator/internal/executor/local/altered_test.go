package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// speaking is a runner that sends one attempt over its file descriptor.
const speaking = `
read hello <&3
frame='{"attempt":{"id":"here/w000-b0000-s00000","trial":"w000-b0000-s00000","block":"w000-b0000","arm":"a","point":""}}'
echo "$frame" >&3
read kept <&3
echo '{"done":true}' >&3
`

// Trials run as the same user and can write to the ledger, so that modifications are detected instead of prevented.
func TestCheckUnaltered_ModifiedFilesAreAnError(t *testing.T) {
	key := ledger.AttemptKey("w000-b0000", "here", "w000-b0000-s00000")
	cases := map[string]struct {
		attack func(t *testing.T, file string)
		want   string // Empty for no error.
	}{
		"unmodified": {func(*testing.T, string) {}, ""},
		"one was rewritten in place": {func(t *testing.T, file string) {
			must(t, os.Chmod(file, 0o644))
			must(t, os.WriteFile(file, []byte("{}\n"), 0o644))
		}, key + " was written with sha256"},
		"one was replaced": {func(t *testing.T, file string) {
			must(t, os.WriteFile(file+".new", []byte("{}\n"), 0o644))
			must(t, os.Rename(file+".new", file))
		}, key + " was written with sha256"},
		"one is a link to another file": {func(t *testing.T, file string) {
			must(t, os.WriteFile(file+".json", []byte("{}\n"), 0o644))
			must(t, os.Remove(file))
			must(t, os.Symlink(file+".json", file))
		}, key + " was written with sha256"},
		"one is a folder": {func(t *testing.T, file string) {
			must(t, os.Remove(file))
			must(t, os.Mkdir(file, 0o755))
		}, key + " was deleted"},
		"one was deleted": {func(t *testing.T, file string) { must(t, os.Remove(file)) }, key + " was deleted"},
		"one was added": {func(t *testing.T, file string) {
			must(t, os.WriteFile(strings.Replace(file, "s00000.json", "s00009.json", 1), []byte("{}\n"), 0o644))
		}, "s00009.json was added"},
		"the plan of the wave was rewritten": {func(t *testing.T, file string) {
			plan := filepath.Join(filepath.Dir(file), "..", "..", "..", filepath.FromSlash(ledger.WaveKey(0)))
			must(t, os.Rename(plan, plan+".old"))
			must(t, os.WriteFile(plan, []byte(`{"wave": 0}`), 0o444))
		}, ledger.WaveKey(0) + " was written with sha256"},
		"the experiment was deleted": {func(t *testing.T, file string) {
			must(t, os.Remove(filepath.Join(filepath.Dir(file), "..", "..", "..", ledger.ExperimentKey)))
		}, ledger.ExperimentKey + " was written with sha256"},
		"all were deleted": {func(t *testing.T, file string) {
			must(t, os.RemoveAll(filepath.Dir(filepath.Dir(filepath.Dir(file)))))
		}, key + " was deleted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			executor := &Executor{Runner: fakeRunner(t, speaking), Folder: folder, Name: "here", Log: &bytes.Buffer{}}
			wave := &record.Wave{Blocks: []record.Block{{ID: "w000-b0000", Order: []int{0}}}}
			planned(t, executor)
			if err := executor.Run(context.Background(), wave, nil); err != nil {
				t.Fatal(err, executor.Log)
			}
			file := filepath.Join(folder, filepath.FromSlash(key))
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o444 {
				t.Errorf("the attempt is %v, %v; want it write-protected", info, err)
			}
			tc.attack(t, file)
			store, err := store.Open(context.Background(), store.FolderURL(folder), store.Options{})
			must(t, err)
			err = executor.CheckUnaltered(context.Background(), store)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (!errors.Is(err, ErrAltered) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// planned writes the plan of a run with one wave.
func planned(t *testing.T, executor *Executor) {
	t.Helper()
	store, err := store.OpenFolder(t.Context(), executor.Folder)
	must(t, err)
	for _, key := range []string{ledger.ExperimentKey, ledger.WaveKey(0)} {
		must(t, executor.Plan(t.Context(), store, key, []byte(`{"format": 1}`)))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRun_ModifiedProgramEndsTheRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(program, []byte("one"), 0o755))
	for name, tc := range map[string]struct {
		script string
		want   string
	}{
		"it was replaced by a slower one": {"echo two > " + program + ".new; mv " + program + ".new " + program,
			"program " + program + " had sha256"},
		"it was deleted":                        {"rm " + program, "no such file"},
		"unmodified":                            {"true", ""},
		"the runner was replaced":               {`echo true > "$0.new"; mv "$0.new" "$0"`, "assay-runner had sha256"},
		"the plan of later blocks was modified": {`echo slower > "$3.new"; mv -f "$3.new" "$3"`, ledger.WaveKey(0) + " was written with"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(program, []byte("one"), 0o755))
			executor := &Executor{Runner: fakeRunner(t, tc.script), Folder: t.TempDir(), Name: "here", Log: &bytes.Buffer{}}
			planned(t, executor)
			wave := twoBlocks()
			wave.Cells = []record.Cell{{Argv: []string{program}}}
			var done int
			err := executor.Run(context.Background(), wave, func(record.Block) { done++ })
			switch {
			case tc.want == "" && (err != nil || done != 2):
				t.Errorf("%d blocks, %v", done, err)
			case tc.want != "" && (!errors.Is(err, ErrAltered) || !strings.Contains(err.Error(), tc.want) || done != 1):
				t.Errorf("%d blocks, %v, want %q", done, err, tc.want)
			}
		})
	}
}
