package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// The commands in the chart's notes work.
func TestChart_NotesAreCommandsThatSucceed(t *testing.T) {
	const study = "pir-batch-scan"
	t.Cleanup(func() { remove(t, study) })
	count := 0
	for line := range strings.Lines(command(t, "helm", "get", "notes", "assay", "-n", system)) {
		typed, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "  ")
		if !indented || !strings.HasPrefix(typed, "kubectl ") && !strings.HasPrefix(typed, "assay ") {
			continue
		}
		count++
		typed = strings.ReplaceAll(strings.Replace(typed, "assay doctor", "bin/assay doctor", 1), "benchmarkrun NAME", "benchmarkrun "+study)
		switch {
		case strings.Contains(typed, "port-forward"):
			// Any port of this machine may be in use, so another one is forwarded.
			untilItSays(t, typed+" --address 127.0.0.1", "Forwarding from", "address already in use")
		case strings.HasSuffix(typed, "--watch"):
			untilItSays(t, typed, study)
		default:
			command(t, "bash", "-c", typed)
		}
	}
	if count < 6 {
		t.Errorf("the notes have %d commands", count)
	}
}

// untilItSays runs a command that does not end by itself until it prints one of the texts.
func untilItSays(t *testing.T, typed string, texts ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "exec "+typed)
	cmd.Dir = root
	out := &watched{texts: texts, found: cancel}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if !out.said {
		t.Errorf("%s: %v; it says none of %q:\n%s", typed, err, texts, out.all.String())
	}
}

// watched calls found when a text is written to it. Only one process writes.
type watched struct {
	texts []string
	found func()
	said  bool
	all   bytes.Buffer
}

func (w *watched) Write(raw []byte) (int, error) {
	w.all.Write(raw)
	for _, text := range w.texts {
		if !w.said && strings.Contains(w.all.String(), text) {
			w.said = true
			w.found()
		}
	}
	return len(raw), nil
}

const (
	storage     = "e2e-storage"
	ownStore    = "own-store"
	ownEndpoint = "minio." + storage + ".svc:9000"
)

// The release is moved to an external store over TLS with an unknown certificate: the run reports it, and so does
// doctor; with the authority's certificate it goes on and completes, in a namespace that takes restricted pods only. Then
// the release is rolled back.
func TestChart_ExternalStoreOverTLS(t *testing.T) {
	long(t)
	revision := deployedRevision(t)
	authority := startStore(t)
	command(t, "kubectl", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
	t.Cleanup(func() {
		command(t, "kubectl", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce-")
		command(t, "helm", "rollback", "assay", revision, "-n", system, "--wait", "--timeout", "4m")
	})

	own := []string{
		"upgrade", "assay", "charts/assay", "-n", system, "--reuse-values", "--wait", "--timeout", "4m",
		"--set", "objectStore.mode=external,objectStore.existingSecret=" + ownStore + ",objectStore.bucket=own-bench",
		"--set", "objectStore.external.endpoint=" + ownEndpoint,
	}
	// The job that makes the bucket would be told as well, and the upgrade with it.
	command(t, "helm", append(own, "--no-hooks")...)
	run := smallScan("own-store", 3)
	apply(t, run)
	untilCondition(t, run.Name, assayv1alpha1.ConditionLedgerReady, "False", assayv1alpha1.ReasonLedgerCertificate, 2*time.Minute)
	untilCondition(t, run.Name, assayv1alpha1.ConditionLedgerReady, "False", "objectStore.external.ca", time.Minute)
	out, err := try("bin/assay", "doctor", "-n", namespace, "--system-namespace", system)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, assayv1alpha1.ReasonLedgerCertificate) ||
		!strings.Contains(out, "objectStore.external.ca") {
		t.Errorf("doctor ends with %v and says\n%s", err, out)
	}

	command(t, "helm", append(own, "--set-file", "objectStore.external.ca.certificate="+authority)...)
	done := untilComplete(t, run.Name, 4*time.Minute)
	if done.Status.Verdict != assayv1alpha1.VerdictGo {
		t.Errorf("verdict %s, want Go: %s", done.Status.Verdict, conditions(done))
	}
	if out, err := try("bin/assay", "doctor", "-n", namespace, "--system-namespace", system); err != nil {
		t.Errorf("doctor still complains: %v\n%s", err, out)
	}
}

// deployedRevision is the revision of the release that is installed now.
func deployedRevision(t *testing.T) string {
	t.Helper()
	var history []struct {
		Revision int
		Status   string
	}
	raw := command(t, "helm", "history", "assay", "-n", system, "-o", "json")
	if err := json.Unmarshal([]byte(raw), &history); err != nil {
		t.Fatalf("helm history: %v\n%s", err, raw)
	}
	for _, entry := range history {
		if entry.Status == "deployed" {
			return strconv.Itoa(entry.Revision)
		}
	}
	t.Fatalf("no revision is deployed:\n%s", raw)
	return ""
}

// startStore runs a MinIO with a certificate of a new authority, and returns the file of the authority's certificate.
func startStore(t *testing.T) string {
	t.Helper()
	var bundled appsv1.StatefulSet
	if err := kube.Get(context.Background(), types.NamespacedName{Namespace: system, Name: "assay-minio"}, &bundled); err != nil {
		t.Fatal(err)
	}
	if err := kube.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: storage}}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() { command(t, "kubectl", "delete", "namespace", storage, "--wait=false") })
	certificate, key, ca := issue(t, "minio."+storage+".svc")
	labels := map[string]string{"app": "minio"}
	keys := map[string][]byte{"accessKey": []byte("own-access"), "secretKey": []byte("own-secret-key")}
	for _, object := range []struct {
		namespace, name string
		data            map[string][]byte
	}{
		{storage, "certificate", map[string][]byte{"public.crt": certificate, "private.key": key}},
		{system, ownStore, keys}, {namespace, ownStore, keys},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: object.namespace, Name: object.name}, Data: object.data}
		if err := kube.Create(context.Background(), secret); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = kube.Delete(context.Background(), secret) })
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: storage, Name: "minio", Labels: labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "minio", Image: bundled.Spec.Template.Spec.Containers[0].Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command:        []string{"minio", "server", "/tmp/data", "--certs-dir", "/certs"},
				Env:            []corev1.EnvVar{{Name: "MINIO_ROOT_USER", Value: "own-access"}, {Name: "MINIO_ROOT_PASSWORD", Value: "own-secret-key"}, {Name: "MINIO_UPDATE", Value: "off"}, {Name: "HOME", Value: "/tmp"}},
				VolumeMounts:   []corev1.VolumeMount{{Name: "certs", MountPath: "/certs", ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9000)}}},
			}},
			Volumes: []corev1.Volume{
				{Name: "certs", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "certificate"}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: storage, Name: "minio"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 9000, TargetPort: intstr.FromInt32(9000)}}},
	}
	if err := errors.Join(kube.Create(context.Background(), pod), kube.Create(context.Background(), service)); err != nil {
		t.Fatal(err)
	}
	command(t, "kubectl", "-n", storage, "wait", "--for=condition=Ready", "pod/minio", "--timeout=90s")
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// issue makes an authority and a certificate of it for a name, all in PEM form.
func issue(t *testing.T, name string) (certificate, key, ca []byte) {
	t.Helper()
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the test"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rawRoot, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		t.Fatal(err)
	}
	rawLeaf, err := x509.CreateCertificate(rand.Reader, leaf, root, &leafKey.PublicKey, rootKey)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, raw []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}) }
	return block("CERTIFICATE", rawLeaf), block("PRIVATE KEY", rawKey), block("CERTIFICATE", rawRoot)
}
