package platform

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/internal/certificates"
	"assay.dev/assay/operator/test/clitest"
)

const aDay = 24 * time.Hour

// renewing is a renewal of an installation whose Secrets are empty.
func renewing(t *testing.T) *renewal {
	t.Helper()
	secret := func(namespace, name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"of": "helm"}}}
	}
	objects := []client.Object{secret("assay-system", "assay-minio-tls"), secret("assay-system", "assay-ledger-ca"),
		secret("team-a", "assay-ledger-ca"),
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "assay-system", Name: "assay-argo-server"}}}
	return &renewal{
		client: clitest.Client(t, interceptor.Funcs{}, objects...), system: "assay-system", secret: "assay-minio-tls", trust: "assay-ledger-ca",
		namespaces: []string{"team-a", "gone"}, deployment: "assay-argo-server",
		policy: certificates.Policy{Authority: "assay-minio", Hosts: []string{"localhost", "127.0.0.1"}, Lifetime: 365 * aDay, Lead: 120 * aDay,
			Trust: 7 * aDay},
	}
}

// pass renews at a time, and returns the change, the Secret, and the authorities that team-a trusts.
func (r *renewal) pass(t *testing.T, now time.Time) (renewed, map[string][]byte, []byte) {
	t.Helper()
	out, err := r.run(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	var secret, copied corev1.Secret
	for in, object := range map[types.NamespacedName]*corev1.Secret{{Namespace: r.system, Name: r.secret}: &secret,
		{Namespace: "team-a", Name: r.trust}: &copied} {
		if err := r.client.Get(t.Context(), in, object); err != nil {
			t.Fatal(err)
		}
		if object.Labels["of"] != "helm" {
			t.Errorf("%s lost its labels: %v", in, object.Labels)
		}
	}
	return out, secret.Data, copied.Data["ca.crt"]
}

func (r *renewal) restarted(t *testing.T) string {
	t.Helper()
	var deployment appsv1.Deployment
	if err := r.client.Get(t.Context(), types.NamespacedName{Namespace: r.system, Name: r.deployment}, &deployment); err != nil {
		t.Fatal(err)
	}
	return deployment.Spec.Template.Annotations[restartAnnotation]
}

func TestRenewal_AuthorityReachesNamespacesBeforeItsCertificateIsServed(t *testing.T) {
	r, now := renewing(t), time.Now()
	out, first, trusted := r.pass(t, now)
	if out.Change != certificates.Issued || string(trusted) != string(first[keyTrusted]) || strings.Join(out.Missing, " ") != "gone" {
		t.Fatalf("first: %+v, trusted in team-a: %t", out, string(trusted) == string(first[keyTrusted]))
	}
	started := r.restarted(t)
	if _, _, again := r.pass(t, now.Add(100*aDay)); string(again) != string(trusted) || r.restarted(t) != started {
		t.Error("a call with nothing due changes something")
	}
	out, announced, trusted := r.pass(t, now.Add(250*aDay))
	if out.Change != certificates.Announced || string(announced[keyCertificate]) != string(first[keyCertificate]) ||
		!strings.HasSuffix(string(trusted), string(first[keyTrusted])) || len(trusted) <= len(first[keyTrusted]) || r.restarted(t) != started {
		t.Fatalf("near the end: %+v", out)
	}
	out, served, _ := r.pass(t, now.Add(258*aDay))
	if out.Change != certificates.Served || string(served[keyCertificate]) != string(announced[keyNextCertificate]) ||
		served[keyNextKey] != nil || r.restarted(t) == started {
		t.Fatalf("a week later: %+v, restarted for %q", out, r.restarted(t))
	}
	// A tenant's change of its copy does not last.
	var copied corev1.Secret
	if err := r.client.Get(t.Context(), types.NamespacedName{Namespace: "team-a", Name: r.trust}, &copied); err != nil {
		t.Fatal(err)
	}
	copied.Data["ca.crt"] = []byte("x")
	if err := r.client.Update(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	if _, secret, trusted := r.pass(t, now.Add(259*aDay)); string(trusted) != string(secret[keyTrusted]) {
		t.Error("a changed copy is not restored")
	}
}

// A real MinIO serves a renewed certificate without a restart, from files as a kubelet writes them, and a client that trusts the
// authorities of a week ago accepts it.
func TestRenewal_StoreServesTheRenewedCertificate(t *testing.T) {
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "minio")
	if _, err := os.Stat(binary); err != nil {
		t.Skip("KUBEBUILDER_ASSETS has no MinIO: run make test")
	}
	r := renewing(t)
	now := time.Now().Add(-258 * aDay)
	_, data, _ := r.pass(t, now)
	folder := t.TempDir()
	certs := filepath.Join(folder, "certs")
	mount(t, certs, "first", data)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	command := exec.Command(binary, "server", filepath.Join(folder, "data"), "--address", address, "--console-address", "127.0.0.1:0",
		"--certs-dir", certs)
	command.Env = []string{"MINIO_ROOT_USER=root-of-test", "MINIO_ROOT_PASSWORD=password-of-test", "MINIO_UPDATE=off", "MINIO_BROWSER=off",
		"HOME=" + folder}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	awaitServed(t, address, data, data[keyTrusted])

	_, announced, weekOld := r.pass(t, now.Add(250*aDay))
	out, data, _ := r.pass(t, now.Add(258*aDay))
	if out.Change != certificates.Served {
		t.Fatalf("%+v, want a served certificate", out)
	}
	if string(data[keyCertificate]) != string(announced[keyNextCertificate]) {
		t.Fatal("another certificate than the announced one is served")
	}
	mount(t, certs, "second", data)
	awaitServed(t, address, data, weekOld)
}

// mount writes the pair as a kubelet does: links to files behind a link that is replaced at once.
func mount(t *testing.T, certs, version string, data map[string][]byte) {
	t.Helper()
	folder, link := filepath.Join(certs, ".."+version), filepath.Join(certs, "..data")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"public.crt": keyCertificate, "private.key": keyKey} {
		if err := os.WriteFile(filepath.Join(folder, name), data[key], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(certs, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".."+version, link+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		t.Fatal(err)
	}
}

// awaitServed waits until the server at the address serves the certificate, which a client with these authorities accepts.
func awaitServed(t *testing.T, address string, data map[string][]byte, trusted []byte) {
	t.Helper()
	want, err := tls.X509KeyPair(data[keyCertificate], data[keyKey])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		connection, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}}).DialContext(
			t.Context(), "tcp", address)
		served := false
		if err == nil {
			served = connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Equal(want.Leaf)
			connection.Close()
		}
		if served {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the certificate is not served: %v", err)
		}
	}
}

func TestDoctor_ReportsTheEndOfAnAuthority(t *testing.T) {
	r, now := renewing(t), time.Now()
	r.pass(t, now)
	for name, tc := range map[string]struct {
		at            time.Time
		ok, remedy    bool
		found, damage string
	}{
		"valid":        {at: now, ok: true, found: "valid until"},
		"near its end": {at: now.Add(310 * aDay), ok: true, remedy: true, found: "expires on"},
		"expired":      {at: now.Add(366 * aDay), remedy: true, found: "expired on"},
		"unreadable":   {at: now, remedy: true, found: "holds no certificate", damage: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var secret corev1.Secret
			if err := r.client.Get(t.Context(), types.NamespacedName{Namespace: "team-a", Name: r.trust}, &secret); err != nil {
				t.Fatal(err)
			}
			if tc.damage != "" {
				secret.Data["ca.crt"] = []byte(tc.damage)
			}
			secret.ResourceVersion = ""
			f := authority(t.Context(), clitest.Client(t, interceptor.Funcs{}, &secret), "team-a", r.trust, "ca.crt", tc.at)
			if f.OK != tc.ok || !strings.Contains(f.Found, tc.found) || (f.Remedy != "") != tc.remedy {
				t.Errorf("%+v", f)
			}
		})
	}
}
