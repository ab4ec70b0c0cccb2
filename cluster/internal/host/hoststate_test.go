package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a made-up file system with some settings and folders.
func machine(t *testing.T, settings map[string]string, folders ...string) Machine {
	t.Helper()
	m := Machine{Root: t.TempDir()}
	for name, value := range settings {
		m.set(t, name, value)
	}
	for _, folder := range folders {
		if err := os.MkdirAll(m.path(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m Machine) set(t *testing.T, name, value string) {
	t.Helper()
	path := m.path(filepath.Join("/proc/sys", name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (m Machine) get(name string) string {
	data, _ := os.ReadFile(m.path(filepath.Join("/proc/sys", name)))
	return strings.TrimSpace(string(data))
}

func TestHostState_SettingsAreRestoredUnlessChanged(t *testing.T) {
	m := machine(t, map[string]string{"kernel/panic": "5", "vm/overcommit_memory": "0", "vm/panic_on_oom": "0"})
	file := filepath.Join(t.TempDir(), "snapshot")
	prepare(t, m, file)
	m.set(t, "kernel/panic", "10")
	m.set(t, "vm/overcommit_memory", "2") // not the kubelet's value
	prepare(t, m, file)                   // a second start must not remember kubelet's values
	if err := m.Restore(file); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"kernel/panic": "5", "vm/overcommit_memory": "2", "vm/panic_on_oom": "0"} {
		if got := m.get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestHostState_CreatedFoldersAreRemovedUnlessUsed(t *testing.T) {
	m := machine(t, nil, "/var/lib/kubelet")
	file := filepath.Join(t.TempDir(), "snapshot")
	prepare(t, m, file, "/var/lib/kubelet", "/var/lib/cni", "/run/a/b", "/run/busy")
	if err := os.WriteFile(m.path("/run/busy/socket"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Restore(file); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]bool{
		"/var/lib/kubelet": true, // was there before
		"/var/lib/cni":     false,
		"/run/a":           false, // made on the way
		"/run/busy":        true,
	} {
		if _, err := os.Stat(m.path(folder)); (err == nil) != want {
			t.Errorf("%s exists is %v, want %v", folder, err == nil, want)
		}
	}
	if err := m.Restore(file); err != nil {
		t.Error("a second time:", err)
	}
}

func TestHostState_WithoutSnapshotNothingChanges(t *testing.T) {
	m := machine(t, map[string]string{"kernel/panic": "10"})
	if err := m.Restore(filepath.Join(t.TempDir(), "none")); err != nil || m.get("kernel/panic") != "10" {
		t.Errorf("%v, %s", err, m.get("kernel/panic"))
	}
}

func prepare(t *testing.T, m Machine, file string, folders ...string) {
	t.Helper()
	if err := m.Prepare(file, folders); err != nil {
		t.Fatal(err)
	}
}
