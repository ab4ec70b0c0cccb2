package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/test/attacks"
)

var attackSuite = flag.Bool("attack", false, "with the attacks that are separate tests, and the figure")

// tests are the attacks that are separate tests.
var tests = map[string]func(*testing.T){
	"a program reaches another tenant's service":                 TestNetwork_PodOfARunReachesOnlyTheStore,
	"a hostile candidate":                                        TestHostile_CandidateChangesNoResult,
	"results are replaced before, during and after the analysis": TestTenant_ReplacedResultsAreNotUsed,
	"a candidate that ends its block":                            TestHostile_CandidateThatEndsItsBlockFails,
	"a program writes to every location of its pod":              TestHostile_CandidateThatFillsItsStorageFails,
	"expressions in parameters":                                  TestBadInput_ParameterValueArrivesVerbatim,
}

// The short form leaves out the attacks on the API, the store and the limits, which make test tries against an API server and a store
// without a cluster.
func TestAttacks(t *testing.T) {
	block := sync.OnceValue(func() corev1.Pod { return aBlocksPod(t, "attack") })
	// These take nodes.
	byName := map[string]func(*testing.T){
		"metrics without a token":                                          closed("https:assay-operator:metrics", "/metrics"),
		"Argo's server without a token":                                    closed("https:assay-argo-server:web", "/api/v1/workflows/"+namespace),
		"a program looks for credentials and rights in its pod":            func(t *testing.T) { credentialsOfAProgram(t, block()) },
		"a program fills the disk of its node":                             func(t *testing.T) { fillsTheDisk(t, block()) },
		"a pod that is not restricted in a namespace that the chart makes": unrestrictedPod,
	}
	before := restarts(t)
	world := &attacks.World{
		Kube: kube, Config: ctrl.GetConfigOrDie(), System: system, Namespace: namespace, Limited: namespace,
		TenantRoles: []string{"edit"},
		Sound: func(in, name string) *assayv1alpha1.BenchmarkRun {
			return with(smallScan(name, 3), func(run *assayv1alpha1.BenchmarkRun) {
				run.Namespace, run.Spec.Placement.NodeSelector = in, map[string]string{"nowhere": "nowhere"}
			})
		},
	}
	world.Hire(t)
	succeeded, tried := 0, 0
	try := func(list []attacks.Attack) {
		succeeded, tried = succeeded+attacks.Run(t, world, list), tried+len(list)
	}
	if !testing.Short() {
		try(attacks.Of(attacks.API))
		if after := restarts(t); after != before {
			t.Errorf("the operator was started again: %d times, %d before", after, before)
		}
		world.Bucket = bucket(t)
		try(attacks.Of(attacks.Store))
	}
	var whole []attacks.Attack
	for _, a := range attacks.Of(attacks.Cluster) {
		own := byName[a.Name]
		if own == nil && *attackSuite {
			own = tests[a.Name]
		}
		if own != nil {
			a.Try = func(t *testing.T, _ *attacks.World) { own(t) }
		}
		if a.Try != nil {
			whole = append(whole, a)
		}
	}
	try(whole)
	if !testing.Short() {
		limits(t, `{"namespaces":{"`+namespace+`":`+attacks.Limits+`}}`)
		try(attacks.Of(attacks.Limited))
	}
	if *attackSuite {
		t.Log(attacks.Figure(succeeded, tried))
	}
}

// limits gives the release a policy until the test ends, and then the values that it had: values that are reused are merged, which
// takes nothing away.
func limits(t *testing.T, policy string) {
	t.Helper()
	values := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(values, []byte(command(t, "helm", "get", "values", "assay", "-n", system, "-o", "json")), 0o600); err != nil {
		t.Fatal(err)
	}
	upgrade := func(t *testing.T, more ...string) {
		command(t, "helm", append([]string{
			"upgrade", "assay", "charts/assay", "-n", system, "--reset-values", "--values", values, "--wait", "--timeout", "3m",
		}, more...)...)
		command(t, "kubectl", "-n", system, "rollout", "status", "deploy/assay-operator", "--timeout=2m")
	}
	upgrade(t, "--set-json", "policy="+policy)
	t.Cleanup(func() { upgrade(t) })
}

func restarts(t *testing.T) (count int32) {
	t.Helper()
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(system),
		client.MatchingLabels{"app.kubernetes.io/component": "operator"}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			count += status.RestartCount
		}
	}
	return count
}

// bucket is the release's store, by a port that is forwarded until the test ends.
func bucket(t *testing.T) *attacks.Bucket {
	t.Helper()
	key := func(in, name string) attacks.Key {
		var secret corev1.Secret
		if err := kube.Get(t.Context(), client.ObjectKey{Namespace: in, Name: name}, &secret); err != nil {
			t.Fatal(err)
		}
		return attacks.Key{Access: string(secret.Data["accessKey"]), Secret: string(secret.Data["secretKey"])}
	}
	out := &attacks.Bucket{
		Address: forward(t, "svc/assay-minio", "9000"), Name: "assay", Root: key(system, "assay-minio-root"),
		Run: key(namespace, "assay-ledger"), Read: key(namespace, "assay-ledger-read"), Operator: key(system, "assay-ledger-operator"),
	}
	var authority corev1.Secret
	switch err := kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "assay-ledger-ca"}, &authority); {
	case err == nil:
		out.Authority = authority.Data["ca.crt"]
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(out.Authority)
		out.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	case !apierrors.IsNotFound(err): // An installation without TLS has none.
		t.Fatal(err)
	}
	out.Replace = func(t *testing.T) {
		command(t, "kubectl", "-n", system, "patch", "secret", "assay-ledger-users", "--type=json", "-p",
			`[{"op":"remove","path":"/data/run.`+namespace+`"}]`)
		command(t, "helm", "upgrade", "assay", "charts/assay", "-n", system, "--reuse-values", "--wait", "--timeout", "3m")
	}
	return out
}

// forward makes a port of a service one of this machine.
func forward(t *testing.T, to, port string) string {
	t.Helper()
	command := exec.Command("kubectl", "-n", system, "port-forward", to, ":"+port, "--address", "127.0.0.1")
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, rest, found := strings.Cut(line, "Forwarding from ")
	address, _, _ := strings.Cut(rest, " ")
	if err != nil || !found {
		t.Fatalf("kubectl port-forward says %q: %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return address
}

// closed reaches a port through the API server, which passes on no token of the one who asks.
func closed(service, path string) func(*testing.T) {
	return func(t *testing.T) {
		out, err := try("kubectl", "get", "--raw", "/api/v1/namespaces/"+system+"/services/"+service+"/proxy"+path)
		if err == nil || !strings.Contains(out, "Unauthorized") && !strings.Contains(out, "Forbidden") && !strings.Contains(out, "token") &&
			!strings.Contains(out, "must be logged in") && !strings.Contains(out, "forbidden") {
			t.Errorf("it answers, or is not there to ask: %v\n%.500s", err, out)
		}
	}
}

// aBlocksPod is one that a small run has at the moment.
func aBlocksPod(t *testing.T, name string) (pod corev1.Pod) {
	t.Helper()
	apply(t, smallScan(name, 3))
	eventually(t, 2*time.Minute, "a block has its pod", func() (bool, string) {
		for _, found := range podsOf(t, name) {
			if found.Labels["assay.dev/part"] == "block" {
				pod = found
				return true, ""
			}
		}
		return false, conditions(getRun(t, name))
	})
	return pod
}

// fillsTheDisk looks for an unbounded location in a pod, which could fill the node's disk.
func fillsTheDisk(t *testing.T, block corev1.Pod) {
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(system)); err != nil || len(pods.Items) == 0 {
		t.Fatalf("no pods of the release: %v", err)
	}
	for _, pod := range append(pods.Items, block) {
		for _, volume := range pod.Spec.Volumes {
			if volume.HostPath != nil || volume.EmptyDir != nil && volume.EmptyDir.SizeLimit.IsZero() {
				t.Errorf("pod %s has the volume %s without a bound", pod.Name, volume.Name)
			}
		}
		for _, container := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
			if container.Resources.Limits.StorageEphemeral().IsZero() {
				t.Errorf("container %s of pod %s may write without a limit", container.Name, pod.Name)
			}
		}
	}
}

// unrestrictedPod requests a pod that Pod Security rejects, in a namespace as the chart makes it.
func unrestrictedPod(t *testing.T) {
	const made = "attack-made"
	manifest := command(t, "helm", "template", "assay", "charts/assay", "-n", system, "--show-only", "templates/runs/namespaces.yaml",
		"--set", "createRunNamespaces=true,runNamespaces={"+made+"}")
	file := filepath.Join(t.TempDir(), "namespace.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "kubectl", "apply", "-f", file)
	t.Cleanup(func() { _, _ = try("kubectl", "delete", "-f", file, "--wait=false") })
	for name, edit := range map[string]func(*corev1.PodSpec){
		"privileged": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		},
		"of the node's files": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		},
		"of the node's net": func(s *corev1.PodSpec) { s.HostNetwork = true },
		"of root":           func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)} },
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "attack"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		edit(&pod.Spec)
		eventually(t, time.Minute, "a pod "+name+" is judged", func() (bool, string) {
			err := kube.Create(t.Context(), pod.DeepCopy(), client.DryRunAll)
			if err == nil {
				t.Errorf("a pod %s is taken", name)
			}
			// Until its ServiceAccount is there the pod is refused for that.
			return err == nil || strings.Contains(err.Error(), "violates PodSecurity"), fmt.Sprint(err)
		})
	}
}

func credentialsOfAProgram(t *testing.T, pod corev1.Pod) {
	for _, container := range pod.Spec.Containers {
		if container.Name != "main" {
			continue
		}
		empty := map[string]bool{}
		for _, volume := range pod.Spec.Volumes {
			empty[volume.Name] = volume.EmptyDir != nil
		}
		for _, mount := range container.VolumeMounts {
			// An empty folder may hide where a token would be.
			if strings.Contains(mount.MountPath, "serviceaccount") && !empty[mount.Name] || strings.Contains(mount.Name, "ledger") {
				t.Errorf("the program has %s at %s", mount.Name, mount.MountPath)
			}
		}
		for _, variable := range container.Env {
			if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
				t.Errorf("the program has the Secret %s as %s", variable.ValueFrom.SecretKeyRef.Name, variable.Name)
			}
		}
	}
	// Kubernetes itself checks that the pod is restricted.
	strict := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attack-restricted",
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := kube.Create(t.Context(), strict); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.Delete(context.Background(), strict) })
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: strict.Name, Name: "again"}, Spec: *pod.Spec.DeepCopy()}
	again.Spec.NodeName, again.Spec.ServiceAccountName, again.Spec.DeprecatedServiceAccount = "", "default", ""
	again.Spec.PriorityClassName, again.Spec.Priority, again.Spec.PreemptionPolicy = "", nil, nil
	eventually(t, time.Minute, "the pod is judged", func() (bool, string) {
		err := kube.Create(t.Context(), again.DeepCopy(), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "violates PodSecurity") {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}
