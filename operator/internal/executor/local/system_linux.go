package local

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Supported reports whether trials can be executed on this system.
func Supported() error { return nil }

// Hide protects this process's memory, which has the digests of the attempts, from trials of the same user. It does not from root.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process from trials: %w", err)
	}
	return nil
}

// connection returns a pair of connected sockets: this process's and the runner's.
func connection() (net.Conn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("connect with the runner: %w", err)
	}
	own, runners := os.NewFile(uintptr(pair[0]), "keeper"), os.NewFile(uintptr(pair[1]), "runner")
	conn, err := net.FileConn(own)
	if err = errors.Join(err, own.Close()); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("connect with the runner: %w", err), runners.Close())
	}
	return conn, runners, nil
}

// startPinned starts the command on the last of the allowed CPUs, because the first usually serves interrupts. A child inherits the
// affinity of the thread that starts it.
func (e *Executor) startPinned(command *exec.Cmd) error {
	if e.CPUs == 0 {
		return command.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, pinned unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read CPU affinity: %w", err)
	}
	if err := e.enough(before.Count()); err != nil {
		return err
	}
	for cpu := len(before)*64 - 1; pinned.Count() < e.CPUs; cpu-- {
		if before.IsSet(cpu) {
			pinned.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &pinned); err != nil {
		return fmt.Errorf("set CPU affinity: %w", err)
	}
	err := command.Start()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}

// CheckCPUs returns an error if this process may use fewer CPUs than a block needs.
func (e *Executor) CheckCPUs() error {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("read CPU affinity: %w", err)
	}
	return e.enough(allowed.Count())
}

func (e *Executor) enough(allowed int) error {
	if allowed < e.CPUs {
		return fmt.Errorf("spec.placement.cpus is %d and this process may use %d CPUs: lower it, or use a machine with more", e.CPUs, allowed)
	}
	return nil
}
