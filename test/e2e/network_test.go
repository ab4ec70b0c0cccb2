package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	probeImage = "assay.dev/cluster-probe:e2e"
	beyond     = "e2e-beyond"
	// metadata is where clouds give out the credentials of their nodes.
	metadata = "169.254.169.254"
	// outside is an unassigned address (RFC 5737) that stands for the internet.
	outside = "203.0.113.7"
)

// The destinations of a run's pod with the chart's policies and the kernel's packet filter: names, the
// API server and the store, and neither the platform's other ports, nor another namespace, nor a cloud's metadata. A pod that is no
// run's reaches all of the latter from the same namespace, so the policy stops the other.
func TestNetwork_PodOfARunReachesOnlyTheStore(t *testing.T) {
	mode := os.Getenv("CLUSTER")
	if mode != "" && mode != "embedded" {
		t.Skipf("CLUSTER=%s: whether policies are enforced is that cluster's affair", mode)
	}
	program := loadProbe(t)
	serveAt(t, program, metadata, "8080")
	serveAt(t, program, outside, "8080", "443", "6443", "53")
	ensureNamespace(t, beyond)
	run := map[string]string{"app.kubernetes.io/managed-by": "assay-operator"}
	probe(t, beyond, "neighbour", nil)
	probe(t, namespace, "as-a-run", run)
	probe(t, namespace, "as-another-pod", nil)

	service := func(name string) string {
		return command(t, "kubectl", "-n", system, "get", "service", name, "-o", "jsonpath={.spec.clusterIP}")
	}
	metrics := podAddress(t, system, client.MatchingLabels{"app.kubernetes.io/component": "operator"}, "metrics")
	neighbour := podAddress(t, beyond, client.MatchingLabels{"probe": "neighbour"}, "web")
	for _, to := range []string{service("assay-minio") + ":9000", "assay-minio." + system + ".svc:9000", "kubernetes.default.svc:443"} {
		eventually(t, 20*time.Second, "a pod of a run reaches "+to, func() (bool, string) {
			out, err := connect("as-a-run", to)
			return err == nil, out
		})
	}
	// Each waits for its timeout, so that all of them wait at the same time.
	var waits sync.WaitGroup
	cutOff := func(from, what, to string) { waits.Go(func() { cutOff(t, from, what, to) }) }
	for what, to := range map[string]string{
		"another namespace's pod": neighbour,
		"a cloud's metadata":      metadata + ":8080",
		"the internet":            outside + ":8080",
		"an HTTPS server":         outside + ":443",
		"another API server":      outside + ":6443",
		"another server of names": outside + ":53",
		"a pod beside it":         podAddress(t, namespace, client.MatchingLabels{"probe": "as-another-pod"}, "web"),
	} {
		eventually(t, 20*time.Second, "a pod that is no run's reaches "+what, func() (bool, string) {
			out, err := connect("as-another-pod", to)
			return err == nil, out
		})
		cutOff("as-a-run", what, to)
	}
	// Only Prometheus, by the operator's policy; a run's pod cannot even reach the operator.
	cutOff("as-another-pod", "the operator's metrics", metrics)
	cutOff("as-a-run", "the operator's metrics", metrics)
	for component, port := range map[string]string{"argo-server": "web", "argo-controller": "metrics", "prometheus": "web",
		"minio": "console"} {
		cutOff("as-a-run", component, podAddress(t, system, client.MatchingLabels{"app.kubernetes.io/component": component}, port))
	}
	cutOff("as-another-pod", "a run's pod", podAddress(t, namespace, client.MatchingLabels{"probe": "as-a-run"}, "web"))
	cutOff("as-another-pod", "the store", service("assay-minio")+":9000")
	waits.Wait()
	eventually(t, time.Minute, "Prometheus reads the operator's metrics", func() (bool, string) {
		up := query(t, `up{job=~".*operator.*"} == 1`)
		return len(up) > 0, fmt.Sprint(query(t, "up"))
	})
}

// loadProbe puts the cluster's own test program onto the node, and returns its path here.
func loadProbe(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "probe")
	t.Setenv("CGO_ENABLED", "0")
	command(t, "go", "build", "-C", "cluster", "-trimpath", "-o", program, "./test/probe")
	archive := command(t, "bin/cluster", "images", "add", "--name", probeImage,
		"--file", "/probe="+program, "--entrypoint", "/probe", "--user", "65532")
	command(t, "bin/cluster", "load", strings.TrimSpace(archive))
	return program
}

// serveAt answers at ports of an address, inside the cluster's network namespace and nowhere else.
func serveAt(t *testing.T, program, address string, ports ...string) {
	t.Helper()
	name := os.Getenv("ASSAY_CLUSTER_NAME")
	if name == "" {
		name = "assay-cluster"
	}
	inside := []string{"--net=/run/netns/" + name}
	_, _ = try("nsenter", append(inside, "ip", "address", "delete", address+"/32", "dev", "lo")...)
	command(t, "nsenter", append(inside, "ip", "address", "add", address+"/32", "dev", "lo")...)
	t.Cleanup(func() {
		_, _ = try("nsenter", append(inside, "ip", "address", "delete", address+"/32", "dev", "lo")...)
	})
	for _, port := range ports {
		server := exec.Command("nsenter", append(inside, program, "serve", address+":"+port)...)
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = server.Process.Kill()
			_ = server.Wait()
		})
	}
}

func ensureNamespace(t *testing.T, name string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreAlreadyExists(kube.Create(context.Background(), object)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.Delete(context.Background(), object) })
}

// probe starts a pod that serves and can be told to connect, as restricted as those of runs.
func probe(t *testing.T, in, name string, labels map[string]string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, Labels: map[string]string{"probe": name}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](1),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "probe", Image: probeImage, Args: []string{"serve", ":8080"}, ImagePullPolicy: corev1.PullIfNotPresent,
				Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	for key, value := range labels {
		pod.Labels[key] = value
	}
	_, _ = try("kubectl", "-n", in, "delete", "pod", name, "--ignore-not-found", "--wait")
	if err := kube.Create(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.Delete(context.Background(), pod) })
	eventually(t, time.Minute, "pod "+name+" runs", func() (bool, string) {
		var now corev1.Pod
		err := kube.Get(context.Background(), types.NamespacedName{Namespace: in, Name: name}, &now)
		return err == nil && now.Status.Phase == corev1.PodRunning, fmt.Sprint(now.Status.Phase, err)
	})
}

// podAddress is where the running pod with these labels listens on the port of this name.
func podAddress(t *testing.T, in string, labels client.MatchingLabels, port string) string {
	t.Helper()
	var pods corev1.PodList
	if err := kube.List(context.Background(), &pods, client.InNamespace(in), labels); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			for _, named := range container.Ports {
				if named.Name == port && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					return fmt.Sprintf("%s:%d", pod.Status.PodIP, named.ContainerPort)
				}
			}
		}
	}
	t.Fatalf("no pod with %v and a port %q runs in %s", labels, port, in)
	return ""
}

func connect(from, to string) (string, error) {
	return try("kubectl", "-n", namespace, "exec", from, "--", "/probe", "connect", to)
}

// cutOff tries once, because a policy drops packets from the pod's first one on. There is no answer, not even a refusal.
func cutOff(t *testing.T, from, what, to string) {
	t.Helper()
	if out, err := connect(from, to); err == nil || !strings.Contains(out, "i/o timeout") {
		t.Errorf("%s to %s (%s): want no answer at all, got %v: %s", from, what, to, err, out)
	}
}
