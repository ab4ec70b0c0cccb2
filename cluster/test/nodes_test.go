package test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Nodes of one machine are stopped, cut off, added and deleted; each time the others go on.
func TestCluster_SeveralNodes(t *testing.T) {
	if os.Getenv("ASSAY_CLUSTER_E2E") == "" {
		t.Skip("set ASSAY_CLUSTER_E2E=1 to run the embedded cluster for real (needs root)")
	}
	m := newMachine(t)
	before := traces(t)
	t.Cleanup(func() { _, _, _ = m.try(time.Minute, m.binary, "down") })

	t.Log("story: a cluster of one node gets two more, which divides the machine anew, and starting them again changes nothing")
	m.cluster("up")
	m.cluster("up", "--nodes", "3")
	first := m.processes()
	m.cluster("up")
	m.unchanged(first, m.processes())
	if _, stderr, err := m.try(time.Minute, m.binary, "up", "--nodes", "2"); err == nil || !strings.Contains(stderr, "cluster node delete") {
		t.Errorf("fewer nodes than there are: got %v: %s", err, stderr)
	}

	t.Log("story: a pod of each node reaches the others, and a Service that is elsewhere")
	m.loadProbe()
	for _, node := range []string{"assay-node", "assay-node-1", "assay-node-2"} {
		m.startPod(node)
	}
	for _, from := range []string{"assay-node", "assay-node-1", "assay-node-2"} {
		for _, to := range []string{"assay-node", "assay-node-1", "assay-node-2"} {
			m.eventually(20*time.Second, "hello", m.kubectl, "exec", "on-"+from, "--", "/probe", "get", m.addressOf(to))
		}
		m.eventually(20*time.Second, "hello", m.kubectl, "exec", "on-"+from, "--", "/probe", "get", "http://served-by-assay-node-1")
	}

	t.Log("story: every node has its share of the machine, and together they have no more memory than it")
	m.checkShares()
	m.checkTurns()

	t.Log("story: a node is stopped, and everything on the others goes on")
	running := m.processes()
	m.cluster("node", "stop", "assay-node-2")
	m.unchanged(without(running, "@assay-node-2"), m.processes())
	m.eventually(20*time.Second, "hello", m.kubectl, "exec", "on-assay-node-1", "--", "/probe", "get", m.addressOf("assay-node"))
	m.eventually(20*time.Second, "hello", m.kubectl, "exec", "on-assay-node", "--", "/probe", "get", m.addressOf("assay-node-1"))
	m.cluster("up") // It starts no node that was stopped.
	m.unchanged(without(running, "@assay-node-2"), m.processes())
	m.eventually(2*time.Minute, "Unknown", m.kubectl, "get", "node", "assay-node-2", "-o",
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}`)

	t.Log("story: it returns")
	m.cluster("node", "start", "assay-node-2")
	m.kubectlRun("wait", "--for=condition=Ready", "pod/on-assay-node-2", "--timeout=60s")
	m.eventually(20*time.Second, "hello", m.kubectl, "exec", "on-assay-node", "--", "/probe", "get", m.addressOf("assay-node-2"))

	t.Log("story: a node is cut off, goes on by itself, and is connected again")
	running = m.processes()
	m.cluster("node", "isolate", "assay-node-1")
	target := strings.TrimPrefix(m.addressOf("assay-node-1"), "http://")
	if out, stderr, err := m.try(time.Minute, m.kubectl, "exec", "on-assay-node", "--", "/probe", "connect", target); err == nil {
		t.Errorf("a node that is cut off is reached: %s%s", out, stderr)
	}
	m.run(time.Minute, "nsenter", "--net=/run/netns/"+clusterName+".1", m.probe(), "connect", target)
	m.cluster("node", "start", "assay-node-1")
	m.unchanged(running, m.processes())
	m.eventually(20*time.Second, "hello", m.kubectl, "exec", "on-assay-node", "--", "/probe", "get", m.addressOf("assay-node-1"))

	t.Log("story: a node is deleted, another one of its name comes, and a fourth")
	m.cluster("node", "delete", "assay-node-1")
	if nodes := m.kubectlRun("get", "nodes", "-o", "name"); strings.Contains(nodes, "assay-node-1") {
		t.Errorf("a deleted node is there: %s", nodes)
	}
	for _, want := range []string{"assay-node-1", "assay-node-3"} {
		if name := strings.TrimSpace(m.cluster("node", "add")); name != want {
			t.Errorf("node %q was added, want %s", name, want)
		}
	}
	m.kubectlRun("delete", "pod", "on-assay-node-1", "--ignore-not-found")
	for _, node := range []string{"assay-node-1", "assay-node-3"} {
		m.startPod(node)
		m.eventually(20*time.Second, "hello", m.kubectl, "exec", "on-assay-node", "--", "/probe", "get", m.addressOf(node))
	}
	for _, name := range []string{"assay-node", "assay-node-9"} {
		if _, stderr, err := m.try(time.Minute, m.binary, "node", "stop", name); err == nil || !strings.Contains(stderr, name) {
			t.Errorf("stopping %s: got %v: %s", name, err, stderr)
		}
	}

	t.Log("story: nothing is left")
	m.cluster("down")
	m.compareTraces(before)
}

// processes reads the components' processes from `cluster status`, which fails unless all are healthy or of a stopped node.
func (m *machine) processes() map[string]int {
	m.Helper()
	pids := map[string]int{}
	for line := range strings.Lines(m.cluster("status")) {
		fields := strings.Fields(line)
		if pid, err := strconv.Atoi(fields[1]); err == nil {
			pids[fields[0]] = pid
		}
	}
	return pids
}

func without(pids map[string]int, suffix string) map[string]int {
	out := map[string]int{}
	for name, pid := range pids {
		if !strings.HasSuffix(name, suffix) {
			out[name] = pid
		}
	}
	return out
}

func (m *machine) unchanged(before, after map[string]int) {
	m.Helper()
	if fmt.Sprint(before) != fmt.Sprint(after) {
		m.Errorf("processes were %v and are %v", before, after)
	}
}

// startPod runs a probe on a node, with a Service.
func (m *machine) startPod(node string) {
	m.Helper()
	m.apply(strings.ReplaceAll(string(m.read("testdata/node.yaml")), "NODE", node))
	m.kubectlRun("wait", "--for=condition=Ready", "pod/on-"+node, "--timeout=60s")
}

func (m *machine) apply(manifest string) {
	m.Helper()
	file := m.TempDir() + "/manifest.yaml"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		m.Fatal(err)
	}
	m.kubectlRun("apply", "-f", file)
}

func (m *machine) addressOf(node string) string {
	m.Helper()
	return "http://" + m.kubectlRun("get", "pod", "on-"+node, "-o", "jsonpath={.status.podIP}") + ":8080"
}

func (m *machine) checkShares() {
	m.Helper()
	memory := 0
	for line := range strings.Lines(m.kubectlRun("get", "nodes", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.allocatable.memory} {.metadata.labels.assay\.dev/measure}{"\n"}{end}`)) {
		fields := strings.Fields(line)
		kib, err := strconv.Atoi(strings.TrimSuffix(fields[1], "Ki"))
		if err != nil {
			m.Fatalf("%s: %v", line, err)
		}
		memory += kib
		if measures := len(fields) == 3; measures != (fields[0] != "assay-node") {
			m.Errorf("measuring: %s", line)
		}
	}
	total := strings.Fields(string(m.read("/proc/meminfo")))[1]
	if kib, err := strconv.Atoi(total); err != nil || memory > kib || memory < kib*9/10 {
		m.Errorf("the nodes give away %d KiB of %s", memory, total)
	}
}

// checkTurns starts a pod with an exclusive CPU on each of two nodes. With CPUs for both they run side by side, else one after the other.
func (m *machine) checkTurns() {
	m.Helper()
	manifest := string(m.read("testdata/pinned.yaml"))
	for _, node := range []string{"assay-node-1", "assay-node-2"} {
		m.apply(strings.ReplaceAll(manifest, "NODE", node))
		if node == "assay-node-1" || machineCPUs(m) > 2 {
			m.kubectlRun("wait", "--for=condition=Ready", "pod/pinned-"+node, "--timeout=60s")
		}
	}
	if machineCPUs(m) == 2 {
		m.eventually(time.Minute, "waiting for pod default/pinned-assay-node-1 of node assay-node-1", m.kubectl, "get", "events",
			"--field-selector", "involvedObject.name=pinned-assay-node-2")
		m.checkPinned("assay-node-1", "1")
		m.kubectlRun("delete", "pod", "pinned-assay-node-1")
		m.kubectlRun("wait", "--for=condition=Ready", "pod/pinned-assay-node-2", "--timeout=60s")
		m.checkPinned("assay-node-2", "1")
	} else {
		first, second := m.pinned("assay-node-1"), m.pinned("assay-node-2")
		if first == second || strings.ContainsAny(first+second, ",-") {
			m.Errorf("pods with exclusive CPUs run on %s and %s", first, second)
		}
	}
	m.kubectlRun("delete", "pod", "-l", "app=pinned")
}

func (m *machine) pinned(node string) string {
	m.Helper()
	return strings.TrimSpace(m.kubectlRun("exec", "pinned-"+node, "--", "/probe", "cpus"))
}

func (m *machine) checkPinned(node, want string) {
	m.Helper()
	if got := m.pinned(node); got != want {
		m.Errorf("the pod with an exclusive CPU on %s may run on CPUs %s, want %s", node, got, want)
	}
}

func machineCPUs(m *machine) int {
	return strings.Count(string(m.read("/proc/cpuinfo")), "processor\t")
}

func (m *machine) read(path string) []byte {
	m.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		m.Fatal(err)
	}
	return data
}
