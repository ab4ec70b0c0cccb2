package release

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// onCluster are the tests that need the embedded cluster without Assay on it, and helm and kubectl on PATH.
const onCluster = "ASSAY_RELEASE_E2E"

// registry is the same name for this machine, by a port-forward, and for the node, where it listens.
const registry = "localhost:5001"

// command runs a program from the root of the tree, also when the test is over and cleans up, which ends its context.
func command(t *testing.T, stdin string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = "../..", strings.NewReader(stdin), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

const registryPod = `
apiVersion: v1
kind: Pod
metadata: {name: registry, namespace: kube-system}
spec:
  # Where the node finds it as localhost, which container runtimes take without TLS.
  hostNetwork: true
  containers:
  - name: registry
    image: assay.dev/registry:test
    imagePullPolicy: Never
    args: [serve, /etc/registry.yaml]
    # Not the pod's address, where nothing listens.
    readinessProbe: {httpGet: {host: 127.0.0.1, path: /, port: 5001}, periodSeconds: 1}
    volumeMounts:
    - {name: config, mountPath: /etc/registry.yaml, subPath: registry.yaml}
    - {name: data, mountPath: /data}
  volumes:
  - {name: config, configMap: {name: registry}}
  - {name: data, emptyDir: {}}
`

const registryConfig = `version: 0.1
storage: {filesystem: {rootdirectory: /data}}
http: {addr: "127.0.0.1:5001"}
`

// serveRegistry runs a registry on the node and makes this machine reach it under the same name.
func serveRegistry(t *testing.T) {
	t.Helper()
	built := command(t, "", "bin/cluster", "build", "--print-dir", "registry")
	archive := command(t, "", "bin/cluster", "images", "add", "--name", "assay.dev/registry:test", "--file",
		"/registry="+filepath.Join(built, "registry"),
		"--entrypoint", "/registry")
	command(t, "", "bin/cluster", "load", archive)
	t.Cleanup(func() {
		command(t, "", "kubectl", "-n", "kube-system", "delete", "pod/registry", "configmap/registry", "--ignore-not-found")
	})
	config := command(t, "", "kubectl", "-n", "kube-system", "create", "configmap", "registry", "--from-literal=registry.yaml="+registryConfig,
		"--dry-run=client", "-o", "yaml")
	command(t, config, "kubectl", "apply", "-f", "-")
	command(t, registryPod, "kubectl", "apply", "-f", "-")
	command(t, "", "kubectl", "-n", "kube-system", "wait", "pod/registry", "--for=condition=Ready", "--timeout=2m")

	ctx, stop := context.WithCancel(context.Background())
	forward := exec.CommandContext(ctx, "kubectl", "-n", "kube-system", "port-forward", "pod/registry", "5001:5001", "--address", "127.0.0.1")
	out, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = forward.Wait() })
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "Forwarding from") {
		t.Fatalf("kubectl port-forward says %q: %v", line, err)
	}
	// It prints a line for each connection, and would wait for somebody to read them.
	go func() { _, _ = io.Copy(io.Discard, lines) }()
}

// unpack writes an archive of the release into a folder.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	for path, content := range files(t, archive) {
		if path == "" || strings.HasSuffix(path, "/") {
			continue
		}
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAReleaseIsPushedPulledByDigestAndReachesAVerdict(t *testing.T) {
	if os.Getenv(onCluster) == "" {
		t.Skip(onCluster + " is not set: make e2e-release sets it, on a cluster without Assay")
	}
	serveRegistry(t)
	layouts, chart := t.TempDir(), t.TempDir()
	for _, image := range []string{"operator", "runner", "scan", "batch", "insert"} {
		unpack(t, "assay-"+image+"_"+version(t)+".oci.tar", filepath.Join(layouts, "assay-"+image))
	}
	unpack(t, "assay-chart_"+version(t)+".oci.tar", chart)
	pushed := strings.Fields(command(t, "", "bin/cluster", "images", "push", "--registry", registry, "--layouts", layouts, "--chart", chart,
		"--all"))
	released := pushed[len(pushed)-1]
	if !strings.HasPrefix(released, registry+"/charts/assay@sha256:") {
		t.Fatalf("the chart was pushed as %s", released)
	}

	command(t, "", "helm", "install", "assay", "oci://"+released, "--plain-http", "--namespace", "assay-system", "--create-namespace",
		"--set", "global.imageRegistry="+registry,
		"--set", "grafana.mode=external,objectStore.persistence.enabled=false,prometheus.persistence.enabled=false", "--wait", "--timeout", "5m")
	t.Cleanup(func() {
		command(t, "", "helm", "uninstall", "assay", "--namespace", "assay-system", "--wait", "--timeout", "3m")
	})
	running := command(t, "", "kubectl", "get", "pods", "-n", "assay-system", "-o",
		`jsonpath={range .items[*].spec.containers[*]}{.image}{"\n"}{end}`)
	for _, image := range strings.Fields(running) {
		if !strings.HasPrefix(image, registry+"/") {
			t.Errorf("a pod of the release runs %s, which is not from the registry", image)
		}
	}

	prefix := t.TempDir()
	env := append(bare(t, prefix), "ASSAY_DOWNLOADS="+absolute(t, "."), "KUBECONFIG="+os.Getenv("KUBECONFIG"))
	if out, err := run(t, env, "sh", absolute(t, "install.sh")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	smoke, err := filepath.Abs("../../workflows/studies/pir-batch-scan/smoke.yaml")
	if err != nil {
		t.Fatal(err)
	}
	command(t, "", "kubectl", "apply", "-n", "default", "-f", smoke)
	t.Cleanup(func() { command(t, "", "kubectl", "delete", "-n", "default", "-f", smoke, "--ignore-not-found") })
	out, err := run(t, env, "assay", "watch", "--namespace", "default", nameIn(t, smoke))
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) || !strings.Contains(out, "verdict") {
		t.Errorf("assay watch: %v\n%s", err, out)
	}
}

// nameIn is the name of the run in a file.
func nameIn(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, "  name: "); ok {
			return strings.TrimSpace(name)
		}
	}
	t.Fatalf("%s has no name", file)
	return ""
}
