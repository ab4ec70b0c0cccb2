package host

// This file manages a private mount namespace for programs that mount file systems and write to fixed folders. Their mounts are
// invisible to the machine, and each fixed folder is a bind mount of a folder of the cluster.

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// MountNamespace is a mount namespace kept alive by a file.
type MountNamespace struct {
	// File keeps it alive. Its folder becomes a separate private mount, because the kernel allows no namespace file in a shared one.
	File string
	// Covers maps folders of the machine, which must exist, to the folders seen there inside.
	Covers map[string]string
	// Files does the same for files. Both must exist.
	Files map[string]string
}

// Exists reports whether the namespace is there and alive.
func (n MountNamespace) Exists() bool {
	var stat unix.Statfs_t
	return unix.Statfs(n.File, &stat) == nil && stat.Type == unix.NSFS_MAGIC
}

// Create makes the namespace.
func (n MountNamespace) Create() error {
	dir := filepath.Dir(n.File)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount namespace: %s: %w", dir, err)
	}
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount namespace: %s: %w", dir, err)
	}
	if err := os.WriteFile(n.File, nil, 0o400); err != nil {
		return err
	}
	ready, kept, result := make(chan string), make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := n.enterNew()
		if err == nil {
			ready <- fmt.Sprintf("/proc/%d/task/%d/ns/mnt", os.Getpid(), unix.Gettid())
			<-kept
		}
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case path := <-ready:
		err := unix.Mount(path, n.File, "", unix.MS_BIND, "")
		close(kept)
		if err := errors.Join(err, <-result); err != nil {
			return fmt.Errorf("keeping mount namespace %s: %w", n.File, err)
		}
		return nil
	}
}

// enterNew puts this thread into a new namespace with the folders covered.
func (n MountNamespace) enterNew() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	// Mounts of the machine still arrive here, ours do not arrive there; inside, containers may share in both directions.
	for _, propagation := range []uintptr{unix.MS_SLAVE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", propagation|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("separating the mount namespace: %w", err)
		}
	}
	for target, source := range n.Covers {
		if err := os.MkdirAll(source, 0o711); err != nil {
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("covering %s with %s: %w", target, source, err)
		}
	}
	for target, source := range n.Files {
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("covering %s with %s: %w", target, source, err)
		}
	}
	return nil
}

// EnterMountNamespace moves this thread into the namespace kept by a file, for good. Call it with the thread locked.
func EnterMountNamespace(file string) error {
	handle, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mount namespace %s: %w", file, err)
	}
	defer unix.Close(handle)
	// The kernel lets only a thread with its own root and working folder change its mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("entering mount namespace %s: %w", file, err)
	}
	if err := unix.Setns(handle, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering mount namespace %s: %w", file, err)
	}
	return nil
}

// Targets lists the folders of the machine that are covered, parents first.
func (n MountNamespace) Targets() []string {
	return slices.Sorted(maps.Keys(n.Covers))
}
