package host

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Spec is one long-running program.
type Spec struct {
	Name string
	Path string
	Args []string
	Env  []string
	// Inputs are texts (configuration files, say) whose change also calls for a restart.
	Inputs []string
	// Cgroup is the cgroup the program starts in, relative to every hierarchy's root.
	Cgroup string
	// NetNS is the name of the network namespace it runs in; empty for the machine's own.
	NetNS string
	// MountNS is the file of the mount namespace it runs in; empty for the machine's own.
	MountNS string
}

// Hash changes when the program would be started differently.
func (s Spec) Hash() string {
	described := fmt.Appendf(nil, "%q", []any{s.Name, s.Path, s.Args, s.Env, s.Inputs, s.Cgroup, s.NetNS, s.MountNS})
	return fmt.Sprintf("%x", sha256.Sum256(described))[:16]
}

// Launcher starts programs through this program's own `enter` command, which joins cgroup and namespace and then becomes
// the program: none of its instructions runs outside the namespaces and groups that tear-down cleans.
type Launcher struct {
	// Self is the path of this program's binary.
	Self    string
	LogDir  string
	Records Records
}

// SearchPath is where programs started by us look for the machine's own tools.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// EnterCommand is the hidden command of this program that Launcher relies on.
const EnterCommand = "enter"

// LogPath is where a program's output goes.
func (l Launcher) LogPath(name string) string { return filepath.Join(l.LogDir, name+".log") }

// Start starts the program in the background and remembers it.
func (l Launcher) Start(spec Spec) error {
	if err := os.MkdirAll(l.LogDir, 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(l.LogPath(spec.Name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{EnterCommand, "--cgroup", spec.Cgroup, "--netns", spec.NetNS, "--mountns", spec.MountNS, "--", spec.Path}
	cmd := exec.Command(l.Self, append(args, spec.Args...)...)
	// Nothing of the caller's environment: etcd and Go's own libraries take settings from it.
	cmd.Env = append([]string{"PATH=" + SearchPath, "HOME=/root"}, spec.Env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	// Its own session: the terminal's Ctrl-C is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	// Collects the child should it end while we still run; init does so later.
	go cmd.Wait() //nolint:errcheck // its end is noticed through its health
	id, ok := Identify(cmd.Process.Pid)
	if !ok {
		return fmt.Errorf("starting %s: it ended at once; see %s", spec.Name, l.LogPath(spec.Name))
	}
	if err := l.Records.Save(spec.Name, Record{Identity: id, Spec: spec.Hash()}); err != nil {
		return errors.Join(fmt.Errorf("remembering %s: %w", spec.Name, err), id.Signal(syscall.SIGKILL))
	}
	return nil
}

// Running reports whether the program runs, and whether it runs as specified.
func (l Launcher) Running(spec Spec) (record Record, alive, current bool) {
	record, ok := l.Records.Load(spec.Name)
	if !ok || !record.Alive() {
		return record, false, false
	}
	return record, true, record.Spec == spec.Hash()
}
