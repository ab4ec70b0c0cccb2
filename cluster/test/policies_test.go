package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	outside  = "203.0.113.7"
	metadata = "169.254.169.254"
)

func TestCluster_EnforcesNetworkPolicies(t *testing.T) {
	if os.Getenv("ASSAY_CLUSTER_E2E") == "" {
		t.Skip("set ASSAY_CLUSTER_E2E=1 to run the embedded cluster for real (needs root)")
	}
	m := newMachine(t)
	t.Cleanup(func() { _, _, _ = m.try(time.Minute, m.binary, "down") })
	m.cluster("up")
	m.loadProbe()
	m.startWorld()
	m.kubectlRun("apply", "-f", "testdata/policies.yaml")
	m.kubectlRun("wait", "--for=condition=Ready", "pod", "--all", "-n", "here", "--timeout=60s")
	m.kubectlRun("wait", "--for=condition=Ready", "pod", "--all", "-n", "there", "--timeout=60s")

	address := map[string]string{
		"outside": outside + ":8080", "metadata": metadata + ":8080", "API server": "10.202.0.1:443", "node": "10.201.0.1:6443",
	}
	for name, namespace := range map[string]string{"isolated": "here", "friend": "here", "free": "here", "other": "there"} {
		address[name] = m.kubectlRun("get", "pod", name, "-n", namespace, "-o", "jsonpath={.status.podIP}") + ":8080"
	}
	address["friend's Service"] = m.kubectlRun("get", "service", "friend", "-n", "here", "-o", "jsonpath={.spec.clusterIP}") + ":80"

	t.Log("story: an isolated pod and its allowed peer reach each other, through a Service or not, and no other pod")
	story := func() {
		t.Helper()
		for _, to := range []string{"friend", "friend's Service", "isolated"} {
			m.reaches("isolated", address[to])
		}
		m.reaches("friend", address["isolated"])
		for _, to := range []string{"friend", "other", "API server", "node", "outside", "metadata"} {
			m.reaches("free", address[to])
		}
		for _, to := range []string{"free", "other", "API server", "node", "outside", "metadata"} {
			m.isCutOff("isolated", address[to])
		}
		m.isCutOff("free", address["isolated"])
	}
	story()

	t.Log("story: the first packet of a pod is judged already")
	m.runOnce("eager", "isolated", address["free"], "Failed")
	if logs := m.kubectlRun("logs", "eager", "-n", "here"); !strings.Contains(logs, "i/o timeout") {
		t.Errorf("eager was isolated before it began, and said %q", logs)
	}
	m.runOnce("eager-but-free", "free", address["free"], "Succeeded")

	t.Log("story: a policy comes and goes while the pod runs")
	m.kubectlRun("label", "pod", "free", "-n", "here", "app=isolated", "--overwrite")
	m.eventuallyCutOff("free", address["other"])
	m.kubectlRun("label", "pod", "free", "-n", "here", "app=free", "--overwrite")
	m.reaches("free", address["other"])

	t.Log("story: the enforcer is killed: isolated pods stay isolated, no pod starts, `status` reports it and `up` restarts it")
	m.kill("network-policies")
	m.isCutOff("isolated", address["free"])
	if out, _, err := m.try(time.Minute, m.binary, "status"); err == nil || !strings.Contains(line(out, "network-policies"), "not running") {
		t.Errorf("status says %q, %v", line(out, "network-policies"), err)
	}
	m.create("late", "isolated", address["friend"])
	m.eventually(60*time.Second, "network policies: ", m.kubectl, "get", "events", "-n", "here",
		"--field-selector", "involvedObject.name=late")
	m.cluster("up")
	m.eventually(60*time.Second, "Succeeded", m.kubectl, "get", "pod", "late", "-n", "here", "-o", "jsonpath={.status.phase}")
	story()
	m.Logf("arguments: %s", m.cost("network-policies"))
}

// line returns the line that begins with a word.
func line(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, word) {
			return line
		}
	}
	return ""
}

// startWorld puts a network beyond the cluster's: an address of it, and the one at which clouds give out credentials. It is
// the network namespace of a server, without a name, and ends with it.
func (m *machine) startWorld() {
	m.Helper()
	server := exec.Command(filepath.Join(filepath.Dir(m.binary), "probe"), "serve", ":8080")
	server.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the server dies with the thread that started it, also when this test is killed
	if err := server.Start(); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	world := strconv.Itoa(server.Process.Pid)
	for _, args := range [][]string{
		{"link", "add", "world0", "type", "veth", "peer", "name", "eth0", "netns", world},
		{"address", "add", "198.51.100.1/30", "dev", "world0"},
		{"link", "set", "world0", "up"},
		{"route", "add", outside, "via", "198.51.100.2"},
		{"route", "add", metadata, "via", "198.51.100.2"},
	} {
		m.run(time.Minute, "nsenter", append([]string{"--net=/run/netns/" + clusterName, "ip"}, args...)...)
	}
	for _, args := range [][]string{
		{"address", "add", "198.51.100.2/30", "dev", "eth0"},
		{"address", "add", outside + "/32", "dev", "lo"},
		{"address", "add", metadata + "/32", "dev", "lo"},
		{"link", "set", "lo", "up"},
		{"link", "set", "eth0", "up"},
		{"route", "add", "default", "via", "198.51.100.1"},
	} {
		m.run(time.Minute, "nsenter", append([]string{"--target", world, "--net", "ip"}, args...)...)
	}
}

func (m *machine) connect(from, address string) (stdout, stderr string, err error) {
	m.Helper()
	return m.try(time.Minute, m.kubectl, "exec", from, "-n", "here", "--", "/probe", "connect", address)
}

// reaches waits, because a connection may be allowed shortly after the pod starts.
func (m *machine) reaches(from, address string) {
	m.Helper()
	m.eventually(20*time.Second, "connected", m.kubectl, "exec", from, "-n", "here", "--", "/probe", "connect", address)
}

// isCutOff tries once, because a forbidden connection is refused from the pod's start.
func (m *machine) isCutOff(from, address string) {
	m.Helper()
	if stdout, stderr, err := m.connect(from, address); err == nil || !strings.Contains(stderr, "i/o timeout") {
		m.Errorf("%s to %s: want no answer at all, got %v: %s%s", from, address, err, stdout, stderr)
	}
}

func (m *machine) eventuallyCutOff(from, address string) {
	m.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		stdout, stderr, err := m.connect(from, address)
		if err != nil && strings.Contains(stderr, "i/o timeout") {
			return
		}
		if time.Now().After(deadline) {
			m.Fatalf("%s still reaches %s: %v: %s%s", from, address, err, stdout, stderr)
		}
	}
}

// create makes a pod that connects to an address as its first deed, and ends.
func (m *machine) create(name, app, address string) {
	m.Helper()
	pod, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": "here", "labels": map[string]string{"app": app}},
		"spec": map[string]any{"restartPolicy": "Never", "containers": []any{
			map[string]any{"name": "p", "image": probeImage, "args": []string{"connect", address}},
		}},
	})
	if err != nil {
		m.Fatal(err)
	}
	path := filepath.Join(m.TempDir(), "pod.json")
	if err := os.WriteFile(path, pod, 0o600); err != nil {
		m.Fatal(err)
	}
	m.kubectlRun("apply", "-f", path)
}

func (m *machine) runOnce(name, app, address, phase string) {
	m.Helper()
	m.create(name, app, address)
	m.kubectlRun("wait", "--for=jsonpath={.status.phase}="+phase, "pod/"+name, "-n", "here", "--timeout=60s")
}

// cost reports how much memory and CPU time a component has used so far.
func (m *machine) cost(name string) string {
	m.Helper()
	pid := m.pids()[name]
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		m.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		m.Fatal(err)
	}
	fields := strings.Fields(string(stat))
	memory := strings.Join(strings.Fields(line(string(status), "VmHWM:")), " ")
	return fmt.Sprintf("%s, %s and %s ticks of user and system time", memory, fields[13], fields[14])
}
