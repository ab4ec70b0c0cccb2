package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
)

const v1Mounts = `21 1 0:19 / /sys rw - sysfs sysfs rw
30 21 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
35 30 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
`

const v2Mounts = `30 21 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate
`

func TestHierarchiesOf_Mounts(t *testing.T) {
	for reason, tc := range map[string]struct {
		mountinfo string
		want      []Hierarchy
	}{
		"version 1, with a version 2 hierarchy beside it": {v1Mounts, []Hierarchy{
			{Root: "/sys/fs/cgroup/cpu,cpuacct", Controllers: []string{"cpu", "cpuacct"}},
			{Root: "/sys/fs/cgroup/cpuset", Controllers: []string{"cpuset"}},
			{Root: "/sys/fs/cgroup/systemd", Controllers: []string{"name=systemd"}},
			{Root: "/sys/fs/cgroup/unified", V2: true},
		}},
		"version 2 alone":    {v2Mounts, []Hierarchy{{Root: "/sys/fs/cgroup", V2: true}}},
		"nothing is mounted": {"", nil},
	} {
		mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(tc.mountinfo), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, hierarchiesOf(mounts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCgroup_Version1CpusetIsFilledFromItsParent(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cpuset.cpus"), "0-1\n")
	write(t, filepath.Join(root, "cpuset.mems"), "0\n")
	// The kernel makes these files; a plain folder does not.
	write(t, filepath.Join(root, "ours", "cpuset.cpus"), "\n")
	write(t, filepath.Join(root, "ours", "cpuset.mems"), "\n")
	group := Cgroup{Name: "ours", Hierarchies: []Hierarchy{{Root: root, Controllers: []string{"cpuset"}}}}
	if err := group.Create(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(root, "ours", "cpuset.cpus")); string(got) != "0-1\n" {
		t.Errorf("cpus: %q", got)
	}
}

func TestCgroup_Version2EnablesControllersOfChildren(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cgroup.controllers"), "cpu memory\n")
	write(t, filepath.Join(root, "ours", "cgroup.controllers"), "cpu memory\n")
	group := Cgroup{Name: "ours/system", Hierarchies: []Hierarchy{{Root: root, V2: true}}}
	if err := group.Create(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, filepath.Join(root, "ours")} {
		if got, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); string(got) != "+memory" {
			t.Errorf("%s: last handed on %q", dir, got)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "ours", "system", "cgroup.subtree_control")); err == nil {
		t.Error("the last group holds processes, so it must hand nothing on")
	}
}

func TestCgroup_ProcessesOfTheSubtreeAreListedOnce(t *testing.T) {
	cpu, pids := t.TempDir(), t.TempDir()
	write(t, filepath.Join(cpu, "ours", "cgroup.procs"), "7\n")
	write(t, filepath.Join(cpu, "ours", "pod", "cgroup.procs"), "9\n8\n")
	write(t, filepath.Join(pids, "ours", "pod", "cgroup.procs"), "8\n10\n")
	write(t, filepath.Join(cpu, "theirs", "cgroup.procs"), "1\n")
	group := Cgroup{Name: "ours", Hierarchies: []Hierarchy{{Root: cpu}, {Root: pids}}}
	if diff := cmp.Diff([]int{7, 8, 9, 10}, group.Processes()); diff != "" {
		t.Error(diff)
	}
}
