package host

// This file manages one control group, under the same name in each mounted hierarchy (version 1) or in the single one (version 2).

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
)

// Hierarchy is one mounted cgroup file system.
type Hierarchy struct {
	Root string
	// Controllers are the version 1 controllers, for example cpuset; empty for version 2.
	Controllers []string
	V2          bool
}

// DetectCgroups lists the hierarchies mounted under /sys/fs/cgroup.
func DetectCgroups() ([]Hierarchy, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter("/sys/fs/cgroup"))
	if err != nil {
		return nil, err
	}
	hierarchies := hierarchiesOf(mounts)
	if len(hierarchies) == 0 {
		return nil, errors.New("no cgroup file system is mounted under /sys/fs/cgroup: mount cgroup2 there, or one cgroup v1 hierarchy per " +
			"controller")
	}
	return hierarchies, nil
}

// hierarchiesOf returns the control group hierarchies among mounts. A folder with several mounts counts once.
func hierarchiesOf(mounts []*mountinfo.Info) []Hierarchy {
	var hierarchies []Hierarchy
	seen := map[string]bool{}
	for _, mount := range mounts {
		version2 := mount.FSType == "cgroup2"
		if !version2 && mount.FSType != "cgroup" || seen[mount.Mountpoint] {
			continue
		}
		seen[mount.Mountpoint] = true
		hierarchy := Hierarchy{Root: mount.Mountpoint, V2: version2}
		if !version2 {
			hierarchy.Controllers = controllers(mount.VFSOptions)
		}
		hierarchies = append(hierarchies, hierarchy)
	}
	return hierarchies
}

// controllers picks the controllers out of a version 1 mount's options.
func controllers(options string) []string {
	var names []string
	for _, option := range strings.Split(options, ",") {
		if !slices.Contains([]string{"rw", "ro", "xattr", "clone_children", "noprefix"}, option) {
			names = append(names, option)
		}
	}
	return names
}

// Cgroup is one control group in all hierarchies.
type Cgroup struct {
	Name        string // relative, without a leading slash
	Hierarchies []Hierarchy
}

// Create makes the group in every hierarchy, ready for processes and children.
func (g Cgroup) Create() error {
	for _, hierarchy := range g.Hierarchies {
		if err := hierarchy.create(g.Name); err != nil {
			return fmt.Errorf("cgroup %s: %w", filepath.Join(hierarchy.Root, g.Name), err)
		}
	}
	return nil
}

func (h Hierarchy) create(name string) error {
	dir := h.Root
	for _, part := range strings.Split(name, "/") {
		if h.V2 {
			if err := delegate(dir); err != nil {
				return err
			}
		}
		parent := dir
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if slices.Contains(h.Controllers, "cpuset") {
			if err := inheritCpuset(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// inheritCpuset fills a version 1 cpuset, which starts empty and accepts no process until it is filled.
func inheritCpuset(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		current, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(current)) != "" {
			continue
		}
		inherited, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), inherited, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// delegate hands every controller of a version 2 group to its children.
func delegate(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(available)) {
		// One at a time: a controller that cannot be handed on (say, rt) must not hold back the others.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
	return nil
}

// Join moves this process into the group.
func (g Cgroup) Join() error {
	for _, hierarchy := range g.Hierarchies {
		file := filepath.Join(hierarchy.Root, g.Name, "cgroup.procs")
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return fmt.Errorf("joining cgroup %s: %w", g.Name, err)
		}
	}
	return nil
}

// Dirs lists the group's folders that exist, children first.
func (g Cgroup) Dirs() []string {
	var dirs []string
	for _, hierarchy := range g.Hierarchies {
		root := filepath.Join(hierarchy.Root, g.Name)
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			// Groups may disappear during the walk, which is no error.
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	slices.Reverse(dirs)
	return dirs
}

// Processes lists every process in the group or below it.
func (g Cgroup) Processes() []int {
	var pids []int
	for _, dir := range g.Dirs() {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// Kill ends every process in the group and below it, and returns when none is left.
func (g Cgroup) Kill(within time.Duration) error {
	for deadline := time.Now().Add(within); ; time.Sleep(25 * time.Millisecond) {
		pids := g.Processes()
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cgroup %s: processes %v are still there %s after SIGKILL: they probably hang in the kernel (see /proc/PID/stack)",
				g.Name, pids, within)
		}
		g.thaw()
		for _, pid := range pids {
			if pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// thaw wakes frozen groups, because a frozen process does not die.
func (g Cgroup) thaw() {
	for _, dir := range g.Dirs() {
		for file, text := range map[string]string{"freezer.state": "THAWED", "cgroup.freeze": "0"} {
			path := filepath.Join(dir, file)
			if state, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(state)) != text {
				_ = os.WriteFile(path, []byte(text), 0o644)
			}
		}
	}
}

// Remove deletes the group and its children, which must hold no process any more.
func (g Cgroup) Remove(within time.Duration) error {
	for deadline := time.Now().Add(within); ; time.Sleep(25 * time.Millisecond) {
		var failed error
		for _, dir := range g.Dirs() {
			if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
				failed = &os.PathError{Op: "rmdir", Path: dir, Err: err}
			}
		}
		if failed == nil {
			return nil
		}
		// Dead processes leave their group a moment after their last sign of life.
		if time.Now().After(deadline) {
			return fmt.Errorf("removing cgroup %s: %w", g.Name, failed)
		}
	}
}

// Available lists the controllers the hierarchy offers.
func (h Hierarchy) Available() []string {
	if !h.V2 {
		return h.Controllers
	}
	data, err := os.ReadFile(filepath.Join(h.Root, "cgroup.controllers"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}
