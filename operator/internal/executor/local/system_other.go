//go:build !linux

package local

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
)

// Supported returns an error on systems where trials cannot be executed: the runner needs Linux's affinity, cgroups and /proc.
func Supported() error {
	return fmt.Errorf("trials are executed on Linux, and this is %s: run them on a cluster (kubectl apply), or on a Linux machine",
		runtime.GOOS)
}

// Hide protects this process's memory from trials of the same user.
func Hide() error { return Supported() }

func connection() (net.Conn, *os.File, error) { return nil, nil, Supported() }

func (e *Executor) startPinned(*exec.Cmd) error { return Supported() }

// CheckCPUs returns an error, because trials are not executed here.
func (e *Executor) CheckCPUs() error { return Supported() }
