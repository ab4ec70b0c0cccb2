package preflight

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func good() Machine {
	return Machine{
		Platform: "linux/amd64", CacheDir: "/c", StateDir: "/s", CacheFree: 30 * GiB, StateFree: 30 * GiB, SameDisk: true,
		MemoryAvailable: 8 * GiB, Port: 16443, Controllers: []string{"cpu", "cpuset", "memory", "pids", "io"},
	}
}

func TestCheck_ReportsProblems(t *testing.T) {
	for reason, tc := range map[string]struct {
		change func(*Machine)
		want   []string // a part of each problem
	}{
		"a good machine": {func(*Machine) {}, nil},
		"another platform says so and nothing else":   {func(m *Machine) { m.Platform, m.UID = "darwin/arm64", 501 }, []string{"darwin/arm64"}},
		"an ordinary user":                            {func(m *Machine) { m.UID = 1000 }, []string{"not root"}},
		"too little disk for compiling":               {func(m *Machine) { m.CacheFree = 10 * GiB }, []string{"10.0 GiB left and 20.0 GiB are needed"}},
		"the same disk is enough when all is built":   {func(m *Machine) { m.CacheFree, m.Compiled = 10*GiB, true }, nil},
		"each of two disks is looked at":              {func(m *Machine) { m.SameDisk, m.CacheFree, m.StateFree = false, GiB, GiB }, []string{"ASSAY_CACHE", "ASSAY_CLUSTER_STATE"}},
		"too little memory":                           {func(m *Machine) { m.MemoryAvailable = GiB }, []string{"memory"}},
		"little memory because our cluster runs":      {func(m *Machine) { m.MemoryAvailable, m.ClusterRuns = GiB, true }, nil},
		"the port is taken":                           {func(m *Machine) { m.PortHolder = "process 7 (nginx)" }, []string{"process 7 (nginx)"}},
		"a foreign state folder and namespace":        {func(m *Machine) { m.Owner, m.Namespace = errors.New("folder"), errors.New("namespace") }, []string{"folder", "namespace"}},
		"missing kernel features are named":           {func(m *Machine) { m.Missing = []string{"veth is missing"} }, []string{"veth"}},
		"a controller that is switched off":           {func(m *Machine) { m.Controllers = []string{"cpu", "cpuset", "pids"} }, []string{"cgroup controllers memory"}},
		"no cgroup at all hides missing controllers":  {func(m *Machine) { m.Controllers, m.CgroupError = nil, errors.New("no cgroup") }, []string{"no cgroup"}},
		"everything that is wrong is told in one go,": {func(m *Machine) { m.UID, m.PortHolder = 1, "x" }, []string{"not root", "taken by x"}},
	} {
		m := good()
		tc.change(&m)
		problems := Check(m)
		if len(problems) != len(tc.want) {
			t.Errorf("%s: got %v, want %q", reason, problems, tc.want)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(problems[i].Error(), want) {
				t.Errorf("%s: got %q, want %q in it", reason, problems[i], want)
			}
		}
		if err := Join(problems); (err == nil) != (len(tc.want) == 0) {
			t.Errorf("%s: joined: %v", reason, err)
		}
	}
}

func TestPortHolder_NamesThisProcess(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if holder := portHolder(port); !strings.Contains(holder, "preflight.test") {
		t.Errorf("got %q, want this test's own name", holder)
	}
	listener.Close()
	if holder := portHolder(port); holder != "" {
		t.Errorf("a free port is held by %q", holder)
	}
}

func TestListenerInodes_IgnoresConnections(t *testing.T) {
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:403B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1
   1: 0100007F:403B 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 222 1
   2: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1
`
	got := listenerInodes(table, 0x403B)
	if len(got) != 1 || got[0] != "111" {
		t.Errorf("got %v, want [111]", got)
	}
}
