package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// parentOf makes this test binary start a program that writes its number to the named file, and wait for it.
const parentOf = "EXECX_TEST_PARENT_OF"

func TestExec_ProgramEndsWithItsParent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentOf+"="+file)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	child := 0
	until(t, "the program runs", func() bool {
		raw, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		child, err = strconv.Atoi(strings.TrimSpace(string(raw)))
		return err == nil
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	until(t, "the program is gone", func() bool {
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(child), "stat"))
		// The process that adopts it may reap it later.
		return err != nil || strings.Contains(string(raw), ") Z ")
	})
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("waited 20 s until %s", what)
}

func TestExec_ErrorHasTheCallAndTheEndOfItsOutput(t *testing.T) {
	_, err := OS{}.Output(context.Background(), Command{Path: "/bin/sh", Args: []string{"-c", "echo out; echo why >&2; exit 3"}})
	if err == nil || !strings.Contains(err.Error(), "/bin/sh -c") || !strings.Contains(err.Error(), "why") {
		t.Errorf("error %v", err)
	}
}
