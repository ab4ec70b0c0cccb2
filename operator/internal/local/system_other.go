//go:build !linux

package local

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
)

// Supported reports whether trials can be executed on this system: the runner pins processes, and reads what disturbs them, as Linux
// has it.
func Supported() error {
	return fmt.Errorf("trials are executed on Linux, and this is %s: run them on a cluster (kubectl apply), or on a Linux machine",
		runtime.GOOS)
}

// Hide keeps this process's memory from trials of the same user.
func Hide() error { return Supported() }

func connection() (net.Conn, *os.File, error) { return nil, nil, Supported() }

func (e *Executor) startPinned(*exec.Cmd) error { return Supported() }
