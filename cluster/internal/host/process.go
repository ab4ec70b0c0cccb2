package host

// This file starts long-running programs in the namespace and control group of the cluster, and identifies them in later calls.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Identity names one process for good: a pid alone is reused, its start time on one boot is not.
type Identity struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"startTicks"`
	BootID string `json:"bootID"`
}

// Record identifies a process that the cluster started.
type Record struct {
	Identity
	// Spec changes when the process would be started differently today.
	Spec string `json:"spec"`
}

// Identify reads a running process's identity; ok is false when there is no such process or it is only a zombie.
func Identify(pid int) (id Identity, ok bool) {
	start, ok := started(pid)
	if !ok {
		// Its first thread may have been replaced by another of its threads while it was read.
		start, ok = started(pid)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if !ok || err != nil {
		return Identity{}, false
	}
	return Identity{PID: pid, Start: start, BootID: strings.TrimSpace(string(boot))}, true
}

// started is when a process started, in ticks, unless it has ended.
func started(pid int) (ticks uint64, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	ended, ticks, err := parseStat(string(data))
	return ticks, err == nil && !ended
}

// parseStat reads from a /proc/PID/stat line, whose second field may hold spaces and parentheses, whether all threads of the process have
// ended, and its start time. The first thread alone is a zombie while another one makes the process another program.
func parseStat(line string) (ended bool, start uint64, err error) {
	_, after, ok := strings.Cut(line[max(0, strings.LastIndexByte(line, ')')):], ") ")
	fields := strings.Fields(after)
	// The start time is field 22 of the line, the number of threads field 20, and field 3 is the first after the name.
	if !ok || len(fields) < 20 {
		return false, 0, fmt.Errorf("unexpected /proc/PID/stat line %q", line)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return (fields[0] == "Z" || fields[0] == "X") && (fields[17] == "0" || fields[17] == "1"), start, err
}

// Alive reports whether exactly this process still runs.
func (id Identity) Alive() bool {
	now, ok := Identify(id.PID)
	return ok && now == id
}

// ticksPerSecond is the unit of start times in /proc; the kernel fixes it for all programs.
const ticksPerSecond = 100

// Age is how long ago the process started.
func (id Identity) Age() time.Duration {
	data, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	var uptime float64
	if _, err := fmt.Sscan(string(data), &uptime); err != nil {
		return 0
	}
	return time.Duration((uptime - float64(id.Start)/ticksPerSecond) * float64(time.Second))
}

// Signal sends a signal to this process, never to another one with the same number.
func (id Identity) Signal(signal syscall.Signal) error {
	// The handle is taken first: a process that is still the right one after that cannot be replaced behind it.
	handle, err := os.FindProcess(id.PID)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if !id.Alive() {
		return os.ErrProcessDone
	}
	return handle.Signal(signal)
}

// Stop ends the process: politely first, then not, and returns when it is gone.
func (id Identity) Stop(grace time.Duration) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, 10 * time.Second}} {
		if err := id.Signal(step.signal); errors.Is(err, os.ErrProcessDone) {
			return nil
		} else if err != nil {
			return fmt.Errorf("stopping process %d: %w", id.PID, err)
		}
		for deadline := time.Now().Add(step.wait); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if !id.Alive() {
				return nil
			}
		}
	}
	return fmt.Errorf("process %d is still there 10 s after SIGKILL: it probably hangs in the kernel (see /proc/%d/stack)", id.PID, id.PID)
}

// Records is a folder with one file per process we started.
type Records struct{ Dir string }

func (r Records) path(name string) string { return filepath.Join(r.Dir, name+".json") }

// Load returns the record of a process; ok is false without a usable record.
func (r Records) Load(name string) (record Record, ok bool) {
	data, err := os.ReadFile(r.path(name))
	if err != nil || json.Unmarshal(data, &record) != nil {
		return Record{}, false
	}
	return record, true
}

// Save remembers a process. It replaces the file in one step, so that a crash leaves the old or the new one.
func (r Records) Save(name string, record Record) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	return ReplaceFile(r.path(name), data, 0o600)
}

// Forget drops the memory of a process.
func (r Records) Forget(name string) error { return RemoveFile(r.path(name)) }
