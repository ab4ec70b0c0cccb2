package local

import (
	"crypto/sha256"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const buildsScript = "../../../../hack/builds.sh"

// tiny is the source of a program whose functions the linker can reorder.
const tiny = `package main

//go:noinline
func first(x int) int { return x * 3 }

//go:noinline
func second(x int) int { return x ^ 7 }

func main() { println(first(second(5))) }
`

func TestLayoutScript_BuildsDifferInLayoutOnly(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"main.go": tiny, "go.mod": "module tiny\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs(buildsScript)
	if err != nil {
		t.Fatal(err)
	}
	make := exec.Command(script, "go", "out", "3", "tiny", ".")
	make.Dir = folder
	made, err := make.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	digests, places := map[[32]byte]bool{}, map[uint64]bool{}
	for _, path := range strings.Fields(string(made)) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		digests[sha256.Sum256(raw)] = true
		if said, err := exec.Command(path).CombinedOutput(); err != nil || string(said) != "6\n" {
			t.Errorf("%s says %q (%v)", path, said, err)
		}
		places[address(t, path, "main.first")] = true
	}
	if len(digests) != 3 || len(places) < 2 {
		t.Errorf("%d different files, %d different places of a function", len(digests), len(places))
	}
}

func address(t *testing.T, path, function string) uint64 {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, symbol := range symbols {
		if symbol.Name == function {
			return symbol.Value
		}
	}
	t.Fatalf("%s has no function %s", path, function)
	return 0
}

func TestLayoutScript_EqualBuildsAreRejected(t *testing.T) {
	folder := t.TempDir()
	// A linker that ignores the order.
	linker := filepath.Join(folder, "linker")
	if err := os.WriteFile(linker, []byte("#!/bin/sh\nfor last; do :; done; cp /bin/true \"$last\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(buildsScript, "link", filepath.Join(folder, "out"), "2", "tiny", linker).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "two builds are the same file") {
		t.Errorf("%v: %s", err, said)
	}
}

func TestPrepare_BuildsNeedDifferentPrograms(t *testing.T) {
	folder := builds(t)
	wave := twoImages()
	wave.Arms[1].Image, wave.Cells = "lab/kv:1", wave.Cells[:2]
	for i, build := range []string{"b1", "b2"} {
		wave.Cells[i].Arm, wave.Cells[i].Build, wave.Cells[i].Roles = 1, build, nil
	}
	// Both builds have a program of the same name, and this machine has one file of that name.
	_, err := Prepare(wave, Programs{Folders: []string{folder + "/bin"}})
	if err == nil || !strings.Contains(err.Error(), `builds "b1" and "b2" of arm "new" are both `+folder+`/bin/kv on this machine`) {
		t.Errorf("got %v", err)
	}
	programs, err := ParseArmPrograms([]string{"new/b1=" + folder + "/old/kv", "new/b2=" + folder + "/new/kv"})
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := Prepare(wave, Programs{Arms: programs})
	if err != nil {
		t.Fatal(err)
	}
	if got := prepared.Cells[0].Argv[0] + " " + prepared.Cells[1].Argv[0]; got != folder+"/old/kv "+folder+"/new/kv" {
		t.Errorf("programs %s", got)
	}
}
