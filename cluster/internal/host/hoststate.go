package host

// This file restores the settings that the cluster changes on the machine outside its folders and namespaces.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// kubeletSysctls are the settings that the kubelet writes, with their values. They belong to no namespace, so they affect the machine.
var kubeletSysctls = map[string]string{
	"vm/overcommit_memory":     "1",
	"vm/panic_on_oom":          "0",
	"kernel/panic":             "10",
	"kernel/panic_on_oops":     "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// Snapshot is the state of the machine before the first start.
type Snapshot struct {
	Sysctls map[string]string `json:"sysctls"`
	// Made are the folders that were not there, and are made to be covered in the cluster's mount namespace.
	Made []string `json:"made"`
}

// Machine is the file system the snapshot is about; tests give another root.
type Machine struct{ Root string }

func (m Machine) path(path string) string { return filepath.Join(m.Root, path) }

// Prepare writes a snapshot to a file unless it exists, since a later call would record changes of the first. Then it makes the
// folders.
func (m Machine) Prepare(file string, folders []string) error {
	_, err := readSnapshot(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = writeSnapshot(file, m.look(folders))
	}
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.MkdirAll(m.path(folder), 0o711); err != nil {
			return err
		}
	}
	return nil
}

func (m Machine) look(folders []string) Snapshot {
	snapshot := Snapshot{Sysctls: map[string]string{}}
	for name := range kubeletSysctls {
		if value, err := os.ReadFile(m.path(filepath.Join("/proc/sys", name))); err == nil {
			snapshot.Sysctls[name] = strings.TrimSpace(string(value))
		}
	}
	for _, folder := range folders {
		for ; folder != "/"; folder = filepath.Dir(folder) {
			if _, err := os.Stat(m.path(folder)); err == nil {
				break
			}
			snapshot.Made = append(snapshot.Made, folder)
		}
	}
	return snapshot
}

// Restore removes the folders that were made, and restores the settings that still have the kubelet's values.
func (m Machine) Restore(file string) error {
	snapshot, err := readSnapshot(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	errs := []error{m.restoreSysctls(snapshot)}
	slices.Sort(snapshot.Made)
	for _, folder := range slices.Backward(snapshot.Made) {
		// A folder that is not empty is in use by another program.
		err := syscall.Rmdir(m.path(folder))
		if err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTEMPTY) {
			errs = append(errs, fmt.Errorf("removing %s: %w", folder, err))
		}
	}
	return errors.Join(errs...)
}

func (m Machine) restoreSysctls(snapshot Snapshot) error {
	var errs []error
	for name, before := range snapshot.Sysctls {
		path := m.path(filepath.Join("/proc/sys", name))
		now, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(now)) != kubeletSysctls[name] || before == kubeletSysctls[name] {
			continue
		}
		if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("putting back %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func readSnapshot(file string) (snapshot Snapshot, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return snapshot, err
	}
	if err := json.Unmarshal(data, &snapshot); err != nil {
		return snapshot, fmt.Errorf("%s: %w", file, err)
	}
	return snapshot, nil
}

func writeSnapshot(file string, snapshot Snapshot) error {
	data, err := json.Marshal(snapshot)
	if err != nil {
		return err
	}
	// In one step: half a snapshot would put nothing back.
	return ReplaceFile(file, data, 0o600)
}
