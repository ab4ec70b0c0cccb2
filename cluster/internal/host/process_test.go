package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func TestParseStat_AnyNameOfAProcess(t *testing.T) {
	for reason, tc := range map[string]struct {
		line  string
		ended bool
		start uint64
		fails bool
	}{
		"a plain name": {"7 (etcd) S 1 7 7 0 -1 4 1 0 0 0 1 2 0 0 20 0 9 0 4711 1 2", false, 4711, false},
		"a name that looks like the rest of the line": {"7 (a) R 1 (b) Z 1 7 7 0 -1 4 1 0 0 0 1 2 0 0 20 0 1 0 4711 1 2", true, 4711, false},
		"a first thread that ended before another":    {"7 (etcd) Z 1 7 7 0 -1 4 1 0 0 0 1 2 0 0 20 0 2 0 4711 1 2", false, 4711, false},
		"a line that is cut off":                      {"7 (etcd) S 1 7", false, 0, true},
	} {
		ended, start, err := parseStat(tc.line)
		if ended != tc.ended || start != tc.start || (err != nil) != tc.fails {
			t.Errorf("%s: got %t %d %v", reason, ended, start, err)
		}
	}
}

// becomes has the test program become another one, from a thread that is not its first.
const becomes = "ASSAY_TEST_BECOMES"

func TestMain(m *testing.M) {
	if file := os.Getenv(parentOf); file != "" {
		_, _ = OS{}.Output(context.Background(), Command{Path: "/bin/sh", Args: []string{"-c", `echo $$ > "$0"; exec sleep 300`, file}})
		os.Exit(0)
	}
	if other := os.Getenv(becomes); other != "" {
		var become func()
		become = func() {
			runtime.LockOSThread()
			if syscall.Gettid() == os.Getpid() {
				go become()
				select {}
			}
			panic(syscall.Exec(other, []string{other, "60"}, nil))
		}
		go become()
		select {}
	}
	os.Exit(m.Run())
}

// The kernel ends all threads of a process that becomes another program but the one that asked for it. The first is a zombie then, for a
// moment, and the process has not ended.
func TestProcess_IsAliveAfterExec(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{becomes + "=" + sleep}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for became := false; !became; {
			if _, ok := Identify(cmd.Process.Pid); !ok {
				t.Error("it was taken for one that has ended")
				break
			}
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			became = string(name) == "sleep\n"
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			return
		}
	}
}

func sleeper(t *testing.T) (*exec.Cmd, Identity) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait() //nolint:errcheck // killed on purpose
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	id, ok := Identify(cmd.Process.Pid)
	if !ok {
		t.Fatal("a running process must be identified")
	}
	return cmd, id
}

func TestStop_EndsExactlyTheProcess(t *testing.T) {
	_, id := sleeper(t)
	if err := id.Stop(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	if id.Alive() {
		t.Error("it is still there")
	}
	if err := id.Stop(time.Second); err != nil {
		t.Error("stopping a finished process must succeed:", err)
	}
}

func TestProcess_ReusedPidIsForeign(t *testing.T) {
	_, id := sleeper(t)
	for reason, other := range map[string]Identity{
		"it started at another time":  {PID: id.PID, Start: id.Start + 1, BootID: id.BootID},
		"it is from before a reboot":  {PID: id.PID, Start: id.Start, BootID: "another"},
		"nothing is known but a pid":  {PID: id.PID},
		"there is no such pid at all": {PID: 1 << 30, Start: id.Start, BootID: id.BootID},
	} {
		if other.Alive() {
			t.Errorf("%s: taken for ours", reason)
		}
		if err := other.Signal(9); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: signalling gave %v", reason, err)
		}
	}
	if !id.Alive() {
		t.Error("the innocent process was ended")
	}
}

func TestRecords_SurviveACrashDuringAWrite(t *testing.T) {
	records := Records{Dir: t.TempDir()}
	want := Record{Identity: Identity{PID: 7, Start: 9, BootID: "b"}, Spec: "s"}
	if err := records.Save("etcd", want); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(records.path("kubelet"), []byte(`{"pid":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := records.Load("etcd"); !ok || got != want {
		t.Errorf("got %+v %v", got, ok)
	}
	if _, ok := records.Load("kubelet"); ok {
		t.Error("half a record must count as none")
	}
	if err := errors.Join(records.Forget("etcd"), records.Forget("etcd")); err != nil {
		t.Error("forgetting twice:", err)
	}
	if got, ok := records.Load("etcd"); ok {
		t.Errorf("forgotten: %+v", got)
	}
}

func TestHash_ChangesWithEveryCauseOfARestart(t *testing.T) {
	base := Spec{Name: "x", Path: "/x", Args: []string{"a b"}, Inputs: []string{"file"}}
	for reason, other := range map[string]Spec{
		"arguments split differently": {Name: "x", Path: "/x", Args: []string{"a", "b"}, Inputs: []string{"file"}},
		"another configuration":       {Name: "x", Path: "/x", Args: []string{"a b"}, Inputs: []string{"file2"}},
		"another program":             {Name: "x", Path: "/y", Args: []string{"a b"}, Inputs: []string{"file"}},
	} {
		if other.Hash() == base.Hash() {
			t.Errorf("%s: same hash", reason)
		}
	}
}
