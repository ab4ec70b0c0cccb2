package instrument

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/why"
	"assay.dev/assay/operator/internal/why/recording"
)

// The test program is its own trial: a runner starts it, as assay-runner does.
func TestMain(m *testing.M) {
	switch os.Getenv("WHY_TEST_ROLE") {
	case "runner":
		command := exec.Command("/proc/self/exe")
		command.Env = append(os.Environ(), "WHY_TEST_ROLE=trial")
		if err := command.Run(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case "trial":
		time.Sleep(40 * time.Millisecond)
		spend(30_000_000)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var sink uint64

// spend does a fixed amount of work, because a busy machine gives a fixed time any amount of CPU time.
//
//go:noinline
func spend(rounds int) {
	for range rounds {
		sink = sink*6364136223846793005 + 1442695040888963407
	}
}

// profiled runs the test program under an instrument, or skips the test with the reason.
func profiled(t *testing.T, with Instrument) ([]byte, recording.Window) {
	t.Helper()
	if _, err := with.Check(); err != nil {
		t.Skipf("%s is not available: %v", with.Name(), err)
	}
	command := exec.Command("/proc/self/exe")
	command.Env = append(os.Environ(), "WHY_TEST_ROLE=runner")
	began := time.Now()
	session, err := with.Start(func() (int, error) {
		err := command.Start()
		if err != nil {
			return 0, err
		}
		return command.Process.Pid, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	raw, err := session.Stop()
	if err != nil {
		t.Fatal(err)
	}
	return raw, recording.Window{ID: "trial", Start: began.UnixNano(), End: ended.UnixNano()}
}

func TestProfiler_TimeOfATrial(t *testing.T) {
	profiler := NewProfiler(nil)
	raw, window := profiled(t, profiler)
	readings, err := profiler.Read(raw, []recording.Window{window})
	if err != nil || len(readings.Trials) != 1 {
		t.Fatalf("readings %+v, %v", readings, err)
	}
	of := readings.Trials[0]
	var spent, slept, whole float64
	for _, cost := range of.Wall {
		whole += cost.Seconds
		switch {
		case cost.Stack[0] == why.UserCode && strings.Contains(strings.Join(cost.Stack, ";")+";", ".spend;"):
			spent += cost.Seconds
		case strings.HasPrefix(cost.Stack[0], "waiting") && cost.Stack[0] != why.WaitCPU:
			slept += cost.Seconds
		}
	}
	// A busy machine makes a trial wait for a CPU, which is neither.
	if slept < 0.035 {
		t.Errorf("%.4f s of waiting, want at least 0.035 s: %+v", slept, of.Wall)
	}
	if spent <= 0 {
		t.Errorf("no time in spend: %+v", of.Wall)
	}
	if whole < 0.99*of.WallSeconds || whole > 1.01*of.WallSeconds {
		t.Errorf("costs add up to %v s of %v s", whole, of.WallSeconds)
	}
	if update := os.Getenv("WHY_UPDATE_FIXTURE"); update != "" {
		writeFixture(t, filepath.Join(update, "go-sleep-and-spend"), raw, window)
	}
}

// lookups records the symbols of a fixture.
type lookups struct {
	*Symbols
	Functions map[string]string
	Kernels   map[uint64]string
}

func (l *lookups) Function(file string, offset uint64) string {
	name := l.Symbols.Function(file, offset)
	l.Functions[fmt.Sprintf("%s@%d", file, offset)] = name
	return name
}

func (l *lookups) Kernel(address uint64) string {
	name := l.Symbols.Kernel(address)
	l.Kernels[address] = name
	return name
}

// writeFixture writes a recording with its window and its symbols, for tests without the right to profile.
func writeFixture(t *testing.T, path string, raw []byte, window recording.Window) {
	t.Helper()
	of, err := recording.Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	symbols := &lookups{NewSymbols(nil), map[string]string{}, map[uint64]string{}}
	of.Fold([]recording.Window{window}, symbols)
	described, err := json.Marshal(map[string]any{"window": window, "functions": symbols.Functions, "kernel": symbols.Kernels})
	if err := errors.Join(err, os.WriteFile(path, raw, 0o644), os.WriteFile(path+".json", described, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestSymbols_DamagedFilesAreNotes(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"empty": "", "text": "#!/bin/sh\n", "elf": "\x7fELF\x02\x01\x01" + strings.Repeat("\xff", 200),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		symbols := NewSymbols(nil)
		if got := symbols.Function(filepath.Join(folder, name), 0x1000); got != "("+name+", without symbols)" || len(symbols.Notes()) != 1 {
			t.Errorf("%s: %q, notes %q", name, got, symbols.Notes())
		}
	}
	symbols := NewSymbols(nil)
	if got := symbols.Function("/dev/zero", 0); got != "(zero, without symbols)" {
		t.Errorf("a device is %q", got)
	}
}

func TestSymbols_PerfMapIsNotReadThroughALink(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	if err := os.WriteFile(target, []byte("1000 10 jitted one\nbroken\n1010 ffffffffffffffff overflow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	symbols := NewSymbols(nil)
	if got := symbols.readMap(target).find(0x1008); got != "jitted one" {
		t.Errorf("got %q", got)
	}
	if got := symbols.readMap(target).find(0x1010); got != "" {
		t.Errorf("a size that overflows gives %q", got)
	}
	if got := symbols.readMap(link).find(0x1008); got != "" {
		t.Errorf("a link gives %q", got)
	}
}

func TestPrintable_NamesOfPrograms(t *testing.T) {
	if got := Printable("a\x1b[31m;b\xff\n"); got != "a_[31m_b__" {
		t.Errorf("got %q", got)
	}
	if got := []rune(Printable(strings.Repeat("x", 10_000))); len(got) != longestName+1 {
		t.Errorf("%d letters", len(got))
	}
}

func TestSymbols_NullCopyHasTheSymbolsOfTheBaseline(t *testing.T) {
	symbols := NewSymbols([]string{"/usr/bin/sort", "/opt/k"})
	for file, want := range map[string]string{
		"/tmp/.assay-null-1-2/k": "/opt/k", "/tmp/k": "/tmp/k", "/tmp/.assay-null-1-2/other": "/tmp/.assay-null-1-2/other",
	} {
		if got := symbols.original(file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}
