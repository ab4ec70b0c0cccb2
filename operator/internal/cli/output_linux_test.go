package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"
)

func TestPiped_PipesOnly(t *testing.T) {
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = read.Close(), written.Close() }()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if !Piped(written) || Piped(file) || Piped(&bytes.Buffer{}) {
		t.Errorf("a pipe is one: %v, a file is one: %v", Piped(written), Piped(file))
	}
}

// A job that asks for -o /dev/stdout wants to read the report there, and its container to have a /dev/stdout afterwards.
func TestWriteFile_DeviceIsNotReplaced(t *testing.T) {
	folder := t.TempDir()
	pipe, link, file := filepath.Join(folder, "pipe"), filepath.Join(folder, "link"), filepath.Join(folder, "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{pipe, link} {
		before, err := os.Lstat(where)
		if err != nil {
			t.Fatal(err)
		}
		// Opening for reading and writing does not block.
		end, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := (Destination{Form: "md", File: where}).Write(io.Discard, io.Discard, []byte("report")); err != nil {
			t.Fatal(err)
		}
		if after, err := os.Lstat(where); err != nil || after.Mode() != before.Mode() {
			t.Fatalf("%s was %s and is %s (%v)", where, before.Mode(), after.Mode(), err)
		}
		read := make([]byte, len("report"))
		if _, err := io.ReadFull(end, read); err != nil || string(read) != "report" {
			t.Errorf("through %s came %q (%v)", where, read, err)
		}
		if err := end.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"report", "other"} {
		if err := (Destination{Form: "md", File: file}).Write(io.Discard, io.Discard, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(file); err != nil || string(raw) != text {
			t.Errorf("the file holds %q (%v)", raw, err)
		}
	}
}

// A disk that is full leaves the file that was there, or none: half of one would be read, or kept the next time.
func TestWriteFile_FullDiskLeavesNoPartialFile(t *testing.T) {
	// RLIMIT_FSIZE applies to the process, and go test writes a log in this one.
	const child = "ASSAY_TEST_FULL_DISK"
	if os.Getenv(child) == "" {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		command.Env = append(os.Environ(), child+"=1")
		if said, err := command.CombinedOutput(); err != nil || !strings.Contains(string(said), "--- PASS: "+t.Name()) {
			t.Fatalf("%v\n%s", err, said)
		}
		return
	}
	folder := t.TempDir()
	data := []byte(strings.Repeat("a line of an answer\n", 1000))
	old := filepath.Join(folder, "old")
	if err := os.WriteFile(old, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	// No file has room for more than a page, as where a disk is full.
	signal.Ignore(syscall.SIGXFSZ)
	t.Cleanup(func() { signal.Reset(syscall.SIGXFSZ) })
	full := limit
	full.Cur = 4096
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	answer := &GateAnswer{Reason: string(data)}
	errs := map[string]error{
		"a report":             Destination{Form: "md", File: old}.Write(io.Discard, io.Discard, data),
		"an answer of a gate":  answer.Save(old),
		"a new answer":         answer.Save(filepath.Join(folder, "gate.json")),
		"a run to start from":  CreateFile(filepath.Join(folder, "run.yaml"), data, io.Discard),
		"a report of its name": Destination{Form: "md", File: filepath.Join(folder, "report.md")}.Write(io.Discard, io.Discard, data),
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	for name, err := range errs {
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if raw, err := os.ReadFile(old); err != nil || string(raw) != "before" {
		t.Errorf("of the file that was there %d bytes are left (%v)", len(raw), err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("there are %v (%v)", left, err)
	}
}

// terminal returns a pseudo-terminal and a function that returns its output.
func terminal(t *testing.T) (shown, read *os.File) {
	t.Helper()
	read, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	number, err := unix.IoctlGetInt(int(read.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(read.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	shown, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { _, _ = shown.Close(), read.Close() })
	return shown, read
}

func TestDestination_EscapesForTerminalOnly(t *testing.T) {
	const hostile = "# a\x1b[2J\x1b]0;b\ac\u009bd\u202ee\n|\tf\n"
	var piped bytes.Buffer
	if err := (Destination{Form: "md"}).Write(&piped, io.Discard, []byte(hostile)); err != nil || piped.String() != hostile {
		t.Errorf("elsewhere it is %q (%v)", piped.String(), err)
	}
	shown, read := terminal(t)
	if err := (Destination{Form: "md"}).Write(shown, io.Discard, []byte(hostile)); err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 4096)
	n, err := read.Read(raw)
	text := string(raw[:n])
	if err != nil || !strings.Contains(text, `# a\x1b[2J`) || !strings.Contains(text, "f\r\n") {
		t.Fatalf("the terminal shows %q (%v)", text, err)
	}
	for _, r := range text {
		if !strings.ContainsRune("\r\n\t", r) && !unicode.IsPrint(r) {
			t.Errorf("the terminal gets %q in %q", r, text)
		}
	}
	if err := (Destination{Form: "parquet"}).Write(shown, io.Discard, []byte("PAR1")); err == nil {
		t.Error("binary output reached the terminal")
	}
}
