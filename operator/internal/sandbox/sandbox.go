// Package sandbox executes commands of others with bubblewrap (bwrap), in separate namespaces: they see the system's programs and the
// folders that they are given, no process, file or credential of the user, and the network only on request. The kernel ends all their
// processes with the first.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Sandbox has the files and limits of a command.
type Sandbox struct {
	// Writable and Readable are folders, at their own paths. Readable takes files as well.
	Writable, Readable []string
	// Folder is the working directory, and "" that of the system.
	Folder string
	// Network gives the network of this machine.
	Network bool
	// Environment are the variables of the command beside PATH and HOME, as NAME=VALUE. No other variable of this process is passed.
	Environment []string
}

// system are the parts of this machine that programs need: none has files that are private to the user. Folders that are missing are left
// out.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/ld.so.conf.d", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/ssl/certs", "/etc/ca-certificates",
	"/etc/pki/tls/certs", "/sys"}

// online are the files for names of hosts.
var online = []string{"/etc/resolv.conf", "/etc/hosts"}

// home is a folder in memory.
const home = "/tmp"

// Command returns the words before those of a command.
func (s *Sandbox) Command() []string {
	out := []string{"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", "--hostname", "sandbox"}
	bind := func(how string, paths []string) {
		for _, path := range paths {
			out = append(out, how, path, path)
		}
	}
	bind("--ro-bind-try", system)
	if s.Network {
		out = append(out, "--share-net")
		bind("--ro-bind-try", online)
	}
	out = append(out, "--proc", "/proc", "--dev", "/dev", "--tmpfs", home)
	bind("--ro-bind", s.Readable)
	bind("--bind", s.Writable)
	out = append(out, "--setenv", "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--setenv", "HOME", home)
	for _, variable := range s.Environment {
		name, value, _ := strings.Cut(variable, "=")
		out = append(out, "--setenv", name, value)
	}
	if s.Folder != "" {
		out = append(out, "--chdir", s.Folder)
	}
	return append(out, "--")
}

// ErrUnavailable is returned where no sandbox can be made.
var ErrUnavailable = errors.New("no sandbox: install bubblewrap (bwrap), and allow its user namespaces (on Ubuntu 24.04 " +
	"kernel.apparmor_restrict_unprivileged_userns=0, or a profile for bwrap)")

// Check returns ErrUnavailable where no sandbox can be made.
func Check(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "bwrap", append((&Sandbox{}).Command()[1:], "/bin/true")...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w: %s", ErrUnavailable, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Run executes a shell command in the sandbox for at most limit. Its output goes to log, up to most bytes.
func (s *Sandbox) Run(ctx context.Context, shell string, limit time.Duration, log io.Writer, most int64) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	argv := slices.Concat(s.Command(), []string{"/bin/sh", "-ec", shell})
	command := exec.CommandContext(limited, argv[0], argv[1:]...)
	command.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	bounded := &boundedWriter{log, most}
	command.Stdout, command.Stderr = bounded, bounded
	// Killing bwrap ends the first process of its namespace, and with it all others.
	command.WaitDelay = 5 * time.Second
	err := command.Run()
	if ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("it took longer than %s", limit)
	}
	return err
}

// boundedWriter drops the bytes beyond a number.
type boundedWriter struct {
	to   io.Writer
	left int64
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	kept := p[:min(int64(len(p)), w.left)]
	w.left -= int64(len(kept))
	if _, err := w.to.Write(kept); err != nil {
		return 0, err
	}
	return len(p), nil
}
