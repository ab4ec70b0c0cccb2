// Package test runs the embedded cluster for real: start, use, crash, recover, tear down, and look for traces.
//
// It needs root and everything compiled, takes four minutes, and runs only with ASSAY_CLUSTER_E2E=1. It uses its own state
// folder, name and port, so that it goes beside a cluster that is up.
package test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	clusterName = "assay-cluster-test"
	port        = "16499"
	probeImage  = "assay.dev/cluster-probe:test"
)

// machine is one built `cluster` program with its settings.
type machine struct {
	*testing.T
	binary, state string
	env           []string
	kubectl       string
}

func TestCluster_StartsAndLeavesNoTrace(t *testing.T) {
	if os.Getenv("ASSAY_CLUSTER_E2E") == "" {
		t.Skip("set ASSAY_CLUSTER_E2E=1 to run the embedded cluster for real (needs root)")
	}
	m := newMachine(t)
	before := traces(t)
	t.Cleanup(func() { _, _, _ = m.try(time.Minute, m.binary, "down") })

	t.Log("story: the port is taken, so `up` refuses and names the holder")
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := m.try(time.Minute, m.binary, "up"); err == nil || !strings.Contains(stderr, fmt.Sprintf("process %d", os.Getpid())) {
		t.Fatalf("want a refusal that names process %d, got %v: %s", os.Getpid(), err, stderr)
	}
	listener.Close()

	t.Log("story: it starts, and starting it again changes nothing")
	m.cluster("up")
	first := m.pids()
	m.cluster("up")
	if diff := cmp.Diff(first, m.pids()); diff != "" {
		t.Errorf("a second `up` restarted something (-first +second):\n%s", diff)
	}

	t.Log("story: pods run, a Guaranteed one has an exclusive CPU, Services and DNS answer, nothing reaches out")
	m.startProbes()
	m.checkProbes()

	t.Log("story: some components are killed, and `up` restarts them while the pods keep running")
	for _, name := range []string{"etcd", "containerd", "kubelet", "kube-proxy", "network-policies", "forwarder"} {
		m.kill(name)
	}
	m.cluster("up")
	m.checkProbes()

	t.Log("story: the network namespace is deleted, and `up` starts afresh on the same data")
	m.run(time.Minute, "ip", "netns", "delete", clusterName)
	m.cluster("up")
	m.kubectlRun("wait", "--for=condition=Ready", "pod/pinned", "pod/asker", "--timeout=60s")
	m.checkProbes()

	t.Log("story: everything is killed, and `down` still leaves nothing, twice")
	for name := range m.pids() {
		m.kill(name)
	}
	m.cluster("down")
	m.cluster("down")
	m.compareTraces(before)

	t.Log("story: `up` is killed half-way, and `down` leaves nothing")
	m.killUpAfter(2 * time.Second)
	m.cluster("down")
	m.compareTraces(before)
}

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	m := &machine{T: t, binary: filepath.Join(dir, "cluster"), state: filepath.Join("/var/lib", clusterName)}
	source, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	m.env = append(os.Environ(), "CGO_ENABLED=0", "ASSAY_CLUSTER_NAME="+clusterName, "ASSAY_CLUSTER_STATE="+m.state,
		"ASSAY_CLUSTER_PORT="+port, "ASSAY_CLUSTER_SOURCE="+source)
	m.run(3*time.Minute, "go", "build", "-o", m.binary, "../cmd/cluster")
	m.run(3*time.Minute, "go", "build", "-o", filepath.Join(dir, "probe"), "./probe")
	m.kubectl = filepath.Join(strings.TrimSpace(m.cluster("build", "--print-dir", "kubectl")), "kubectl")
	m.env = append(m.env, "KUBECONFIG="+strings.TrimSpace(m.cluster("kubeconfig")))
	return m
}

func (m *machine) try(within time.Duration, name string, args ...string) (stdout, stderr string, err error) {
	m.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = m.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func (m *machine) run(within time.Duration, name string, args ...string) string {
	m.Helper()
	stdout, stderr, err := m.try(within, name, args...)
	if err != nil {
		m.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

func (m *machine) cluster(args ...string) string {
	m.Helper()
	began := time.Now()
	out := m.run(5*time.Minute, m.binary, args...)
	m.Logf("cluster %s: %.1f s", strings.Join(args, " "), time.Since(began).Seconds())
	return out
}

func (m *machine) kubectlRun(args ...string) string {
	m.Helper()
	return m.run(90*time.Second, m.kubectl, args...)
}

// pids reads the components' processes from `cluster status`, which also fails unless all are healthy.
func (m *machine) pids() map[string]int {
	m.Helper()
	pids := map[string]int{}
	for line := range strings.Lines(m.cluster("status")) {
		fields := strings.Fields(line)
		if pid, err := strconv.Atoi(fields[1]); err == nil {
			pids[fields[0]] = pid
		}
	}
	if len(pids) != 9 {
		m.Fatalf("want 9 components with a process, got %v", pids)
	}
	return pids
}

func (m *machine) kill(name string) {
	m.Helper()
	status, _, _ := m.try(time.Minute, m.binary, "status")
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); fields[0] == name && fields[1] != "-" {
			pid, err := strconv.Atoi(fields[1])
			if err != nil {
				m.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				m.Fatalf("killing %s (%d): %v", name, pid, err)
			}
		}
	}
}

// probe is the probe's program on this machine.
func (m *machine) probe() string { return filepath.Join(filepath.Dir(m.binary), "probe") }

func (m *machine) loadProbe() {
	m.Helper()
	archive := m.cluster("images", "add", "--name", probeImage, "--file", "/probe="+m.probe(),
		"--entrypoint", "/probe", "--user", "65532")
	m.cluster("load", strings.TrimSpace(archive))
}

func (m *machine) startProbes() {
	m.Helper()
	m.loadProbe()
	m.kubectlRun("apply", "-f", "testdata/probes.yaml")
	m.kubectlRun("wait", "--for=condition=Ready", "pod/pinned", "pod/asker", "--timeout=60s")
}

func (m *machine) checkProbes() {
	m.Helper()
	// After a restart of everything the API server calls a pod ready until kubelet has looked.
	m.eventually(30*time.Second, "\n", m.kubectl, "exec", "pinned", "--", "/probe", "cpus")
	m.eventually(30*time.Second, "\n", m.kubectl, "exec", "asker", "--", "/probe", "cpus")
	if cpus := strings.TrimSpace(m.kubectlRun("exec", "pinned", "--", "/probe", "cpus")); cpus != "1" {
		m.Errorf("a Guaranteed pod with one CPU may run on CPUs %q, want 1 alone", cpus)
	}
	if cpus := strings.TrimSpace(m.kubectlRun("exec", "asker", "--", "/probe", "cpus")); strings.Contains(cpus, "1") {
		m.Errorf("a pod without exclusive CPUs may run on CPUs %q, which include those of the Guaranteed pod", cpus)
	}
	address := strings.TrimSpace(m.kubectlRun("get", "service", "probe", "-o", "jsonpath={.spec.clusterIP}"))
	for from, targets := range map[string][]string{
		"asker":  {"http://" + address, "http://probe", "http://probe.default.svc.cluster.local"},
		"pinned": {"http://" + address, "http://probe"}, // to itself, through its Service
	} {
		for _, target := range targets {
			// A Service's rules follow its pods with a small delay.
			m.eventually(20*time.Second, "hello", m.kubectl, "exec", from, "--", "/probe", "get", target)
		}
	}
	if _, stderr, err := m.try(30*time.Second, m.kubectl, "exec", "asker", "--", "/probe", "get", "http://192.0.2.1"); err == nil ||
		!strings.Contains(stderr, "unreachable") {
		m.Errorf("an address outside of the machine must be unreachable, got %v: %s", err, stderr)
	}
	if logs := m.kubectlRun("logs", "pinned"); !strings.Contains(logs, "serving") {
		m.Errorf("kubectl logs: got %q", logs)
	}
}

func (m *machine) eventually(within time.Duration, want, name string, args ...string) {
	m.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(250 * time.Millisecond) {
		stdout, stderr, err := m.try(within, name, args...)
		if err == nil && strings.Contains(stdout, want) {
			return
		}
		if time.Now().After(deadline) {
			m.Fatalf("%s %s: no %q within %s: %v: %s%s", name, strings.Join(args, " "), want, within, err, stdout, stderr)
		}
	}
}

func (m *machine) killUpAfter(delay time.Duration) {
	m.Helper()
	cmd := exec.Command(m.binary, "up")
	cmd.Env = m.env
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	time.Sleep(delay)
	if err := cmd.Process.Kill(); err != nil {
		m.Fatal(err)
	}
	_ = cmd.Wait()
}

// traces lists the resources that a cluster could leak on this machine.
func traces(t *testing.T) map[string][]string {
	t.Helper()
	left := map[string][]string{}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mountinfo)) {
		if point := strings.Fields(line)[4]; strings.Contains(point, clusterName) {
			left["mounts"] = append(left["mounts"], point)
		}
	}
	for what, pattern := range map[string]string{
		"network namespaces": "/run/netns/" + clusterName + "*",
		"interfaces":         "/sys/class/net/*",
		"cgroups":            "/sys/fs/cgroup/{,*/}" + clusterName,
		"state":              "/var/lib/" + clusterName,
		"hard-coded folders": "/run/containerd/s/*",
		"CNI records":        "/var/lib/cni/*/*",
		"kubelet sockets":    "/var/lib/kubelet/device-plugins/*",
		"container logs":     "/var/log/containers/*",
	} {
		for _, each := range expand(pattern) {
			paths, err := filepath.Glob(each)
			if err != nil {
				t.Fatal(err)
			}
			left[what] = append(left[what], paths...)
		}
		slices.Sort(left[what])
	}
	for _, sysctl := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys"} {
		value, err := os.ReadFile("/proc/sys/" + sysctl)
		if err != nil {
			t.Fatal(err)
		}
		left["settings"] = append(left["settings"], sysctl+"="+strings.TrimSpace(string(value)))
	}
	left["packet filter"] = packetFilter(t)
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		if command, err := os.ReadFile(file); err == nil && strings.Contains(string(command), "/var/lib/"+clusterName) {
			left["processes"] = append(left["processes"], file+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return left
}

// packetFilter lists the machine's own iptables rules, with the cluster's copy of the tool.
func packetFilter(t *testing.T) []string {
	t.Helper()
	cache := os.Getenv("ASSAY_CACHE")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache", "assay")
	}
	roots, _ := filepath.Glob(filepath.Join(cache, "os", "*-*[0-9]"))
	if len(roots) == 0 {
		return nil
	}
	library := filepath.Join(roots[0], "usr/lib/x86_64-linux-gnu")
	cmd := exec.Command(filepath.Join(roots[0], "bin", "iptables-save"))
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "XTABLES_LIBDIR="+filepath.Join(library, "xtables"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("iptables-save: %v", err)
	}
	var rules []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "-A") {
			rules = append(rules, strings.TrimSpace(line))
		}
	}
	return rules
}

// expand undoes the one kind of alternative that filepath.Glob does not know.
func expand(pattern string) []string {
	before, rest, ok := strings.Cut(pattern, "{,")
	if !ok {
		return []string{pattern}
	}
	inside, after, _ := strings.Cut(rest, "}")
	return []string{before + after, before + inside + after}
}

func (m *machine) compareTraces(before map[string][]string) {
	m.Helper()
	if diff := cmp.Diff(before, traces(m.T)); diff != "" {
		m.Errorf("traces are left (-before +after):\n%s", diff)
	}
}
