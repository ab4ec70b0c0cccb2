package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// process is one process of the cluster under test. Its start time tells it from a later one with its number.
type process struct {
	pid   int
	start uint64
}

// node holds the processes of the embedded cluster on this machine, the only ones that this suite may kill.
type node struct {
	// name of the cluster's cgroup and network namespace, and the folder that dies with it.
	name, state string
	// tool is the cluster's command, which restarts dead components.
	tool string
}

func startOf(pid int) (uint64, error) {
	now, err := statOf(pid)
	return now.start, err
}

// stat holds the fields of a process's stat file.
type stat struct {
	state   string
	parent  int
	threads int
	start   uint64
}

// statOf reads fields 3, 4, 20 and 22 of a /proc/PID/stat line, whose second field may hold anything.
func statOf(pid int) (stat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("unexpected /proc/%d/stat: %q", pid, raw)
	}
	parent, parentErr := strconv.Atoi(fields[1])
	threads, threadsErr := strconv.Atoi(fields[17])
	start, startErr := strconv.ParseUint(fields[19], 10, 64)
	return stat{fields[0], parent, threads, start}, errors.Join(parentErr, threadsErr, startErr)
}

// signal reaches exactly this process; one that is gone needs none.
func (p process) signal(signal syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if start, err := startOf(p.pid); err != nil || start != p.start {
		return nil
	}
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to process %d: %w", signal, p.pid, err)
	}
	return nil
}

func signalAll(processes []process, signal syscall.Signal) error {
	var failed error
	for _, one := range processes {
		failed = errors.Join(failed, one.signal(signal))
	}
	return failed
}

// stillThere names the first of some processes that has not ended. A zombie has ended and waits to be reaped, unless other threads of the
// process still run.
func stillThere(processes []process) error {
	for _, one := range processes {
		if now, err := statOf(one.pid); err == nil && now.start == one.start && (now.state != "Z" || now.threads > 1) {
			return fmt.Errorf("process %d is there, in state %s", one.pid, now.state)
		}
	}
	return nil
}

// component is one of the programs that the cluster's command started, as it remembers it.
func (n node) component(name string) ([]process, error) {
	raw, err := os.ReadFile(filepath.Join(n.state, "processes", name+".json"))
	if err != nil {
		return nil, err
	}
	var known struct {
		PID   int    `json:"pid"`
		Start uint64 `json:"startTicks"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return nil, err
	}
	if start, err := startOf(known.PID); err != nil || start != known.Start {
		return nil, fmt.Errorf("%s does not run", name)
	}
	return []process{{known.PID, known.Start}}, nil
}

// members are the cluster's processes that a test picks by their cgroups and their parent.
func (n node) members(pick func(pid int, cgroups string) bool) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		// Processes outside the cluster's cgroup do not belong to it.
		if err != nil || !strings.Contains(string(raw), ":/"+n.name+"/") || !pick(pid, string(raw)) {
			continue
		}
		if start, err := startOf(pid); err == nil {
			out = append(out, process{pid, start})
		}
	}
	return out, nil
}

// container finds the processes of a container by its id, as the pod's status has it.
func (n node) container(id string) ([]process, error) {
	_, id, _ = strings.Cut(id, "://")
	if id == "" {
		return nil, errNoVictim
	}
	processes, err := n.members(func(_ int, cgroups string) bool { return strings.Contains(cgroups, id) })
	if err == nil && len(processes) == 0 {
		err = errNoVictim
	}
	return processes, err
}

// shimOf is the shim that a container's first process was started by: the parent of one that is outside of the container.
func (n node) shimOf(container []process) ([]process, error) {
	inside := map[int]bool{}
	for _, one := range container {
		inside[one.pid] = true
	}
	for _, one := range container {
		stat, err := statOf(one.pid)
		if err != nil || inside[stat.parent] {
			continue
		}
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", stat.parent))
		if err != nil || !strings.Contains(string(command), "containerd-shim") ||
			!strings.Contains(string(command), n.state+"/run/containerd.sock") {
			continue
		}
		if start, err := startOf(stat.parent); err == nil {
			return []process{{stat.parent, start}}, nil
		}
	}
	return nil, errNoVictim
}

// memoryLimit is the file that bounds the memory of a process's cgroup, and the one that says how much is used.
func memoryLimit(pid int) (limit, usage string, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) == 3 && parts[1] == "memory":
			folder := filepath.Join("/sys/fs/cgroup/memory", parts[2])
			return filepath.Join(folder, "memory.limit_in_bytes"), filepath.Join(folder, "memory.usage_in_bytes"), nil
		case len(parts) == 3 && parts[0] == "0" && parts[1] == "":
			folder := filepath.Join("/sys/fs/cgroup", parts[2])
			limit, usage = filepath.Join(folder, "memory.max"), filepath.Join(folder, "memory.current")
		}
	}
	if _, err := os.Stat(limit); err != nil {
		return "", "", fmt.Errorf("no memory cgroup of process %d", pid)
	}
	return limit, usage, nil
}
