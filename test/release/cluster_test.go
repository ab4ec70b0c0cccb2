package release

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// onCluster are the tests that need the embedded cluster without Assay on it, and helm and kubectl on PATH. Their objects are removed with
// the cluster: hack/e2e-release.sh shows it first if a test has failed.
const onCluster = "ASSAY_RELEASE_E2E"

// nodeRegistry is the same name for this machine, by a port-forward, and for the node, where it listens.
const nodeRegistry = "localhost:5001"

// command runs a program from the root of the tree, which takes the version from the release.
func command(t *testing.T, stdin string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = "../..", strings.NewReader(stdin), os.Stderr
	cmd.Env = append(os.Environ(), "ASSAY_VERSION="+version(t))
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

// verdict is how assay watch ends.
var verdict = regexp.MustCompile(`(?m)^VERDICT  (Go|NoGo|Inconclusive|Invalid)$`)

// serveRegistry runs a registry on the node and makes this machine reach it under the same name.
func serveRegistry(t *testing.T) {
	t.Helper()
	built := command(t, "", "bin/cluster", "build", "--print-dir", "registry")
	archive := command(t, "", "bin/cluster", "images", "add", "--name", "assay.dev/registry:test", "--file",
		"/registry="+filepath.Join(built, "registry"),
		"--entrypoint", "/registry")
	command(t, "", "bin/cluster", "load", archive)
	config := command(t, "", "kubectl", "-n", "kube-system", "create", "configmap", "registry",
		"--from-literal=registry.yaml="+registryConfig("127.0.0.1:5001", "/data"), "--dry-run=client", "-o", "yaml")
	command(t, config, "kubectl", "apply", "-f", "-")
	command(t, registryPod, "kubectl", "apply", "-f", "-")
	command(t, "", "kubectl", "-n", "kube-system", "wait", "pod/registry", "--for=condition=Ready", "--timeout=2m")

	ctx, stop := context.WithCancel(context.Background())
	forward := exec.CommandContext(ctx, "kubectl", "-n", "kube-system", "port-forward", "pod/registry", "5001:5001", "--address", "127.0.0.1")
	forward.Stderr = os.Stderr
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
	// It prints a line for each connection, and blocks until the lines are read.
	go func() { _, _ = io.Copy(io.Discard, lines) }()
}

func TestRelease_PushedImagesReachAVerdictByDigest(t *testing.T) {
	if os.Getenv(onCluster) == "" {
		t.Skip(onCluster + " is not set: make e2e-release sets it, on a cluster without Assay")
	}
	serveRegistry(t)
	images, chart := layouts(t)
	pushed := push(t, nodeRegistry, "", images, chart)
	// Third-party images have the path of their registries, which images of this project need not have.
	command(t, "", "bin/cluster", "images", "push", "--registry", nodeRegistry, "--layouts", images, "--all")

	command(t, "", "helm", "install", "assay", "oci://"+pushed[len(released)], "--plain-http", "--namespace", "assay-system",
		"--create-namespace", "--set", "global.imageRegistry="+nodeRegistry,
		"--set", "grafana.mode=external,objectStore.persistence.enabled=false,prometheus.persistence.enabled=false", "--wait", "--timeout", "5m")
	running := command(t, "", "kubectl", "get", "pods", "-n", "assay-system", "-o",
		`jsonpath={range .items[*].spec.containers[*]}{.image}{"\n"}{end}`)
	for _, image := range strings.Fields(running) {
		if !strings.HasPrefix(image, nodeRegistry+"/") {
			t.Errorf("a pod of the release runs %s, which is not from the registry", image)
		}
	}

	prefix := t.TempDir()
	env := append(bare(t, prefix), "ASSAY_DOWNLOADS="+absolute(t, "."), "KUBECONFIG="+os.Getenv("KUBECONFIG"))
	if out, err := run(t, env, "sh", absolute(t, "install.sh")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const smoke = "workflows/studies/pir-batch-scan/smoke.yaml"
	name := command(t, "", "kubectl", "create", "-n", "default", "-f", smoke, "-o", "jsonpath={.metadata.name}")
	out, err := run(t, env, "assay", "watch", "--namespace", "default", name)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) || !verdict.MatchString(out) {
		t.Fatalf("assay watch: %v\n%s", err, out)
	}
	t.Log(out)
}
