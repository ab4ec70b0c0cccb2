package chart

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// prometheusOperator is where the CRDs of kube-prometheus-stack come from.
const prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

// A real API server accepts every object of every variation, with all its fields.
func TestDryRun_APIServerAcceptsEveryMode(t *testing.T) {
	c := startCluster(t)
	c.installCRDs(t)
	for _, namespace := range []string{releaseNamespace, "team-a", "team-b"} {
		c.createNamespace(t, namespace)
	}
	if err := c.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: releaseNamespace, Name: "roots"}, Data: map[string]string{"root.pem": "-----BEGIN CERTIFICATE-----"},
	}); err != nil {
		t.Fatal(err)
	}
	// Variations have most objects in common, to the last field: each is asked about once.
	asked := map[string]bool{}
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			for _, object := range render(t, values).objects {
				raw, err := object.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if asked[string(raw)] {
					continue
				}
				asked[string(raw)] = true
				// Server-side apply rejects unknown fields, and writes the result into its argument.
				err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.DryRunAll,
					client.FieldOwner("test"), client.ForceOwnership)
				if err != nil {
					t.Errorf("%s: %v", identity(object), err)
				}
			}
		})
	}
	t.Run("certificates from a ConfigMap", func(t *testing.T) {
		c.install(t, `{argo: {crds: {install: false}}, objectStore: {mode: external, existingSecret: s3, external: {endpoint: minio.storage.svc, ca: {existingConfigMap: roots, key: root.pem}}}}`)
		for _, namespace := range []string{releaseNamespace, "default"} {
			if got := c.secret(t, namespace, "assay-ledger-ca")["ca.crt"]; string(got) != "-----BEGIN CERTIFICATE-----" {
				t.Errorf("Secret assay-ledger-ca in %s holds %q", namespace, got)
			}
		}
		c.uninstall(t)
	})
	t.Run("the check that is made here can fail", func(t *testing.T) {
		wrong := object("v1", "Service")
		wrong.SetNamespace(releaseNamespace)
		wrong.SetName("wrong")
		wrong.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(1)}}, "prots": []any{}}
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(wrong), client.DryRunAll,
			client.FieldOwner("test")); err == nil {
			t.Error("a Service with a field that does not exist is taken")
		}
	})
}

// installCRDs installs Assay's and Argo's CRDs and, for those who run one, a Prometheus Operator's.
func (c *cluster) installCRDs(t *testing.T) {
	t.Helper()
	folder := prometheusOperatorCRDs(t)
	var files []string
	for _, pattern := range []string{chartDir + "/crds/*.yaml", chartDir + "/third_party/argo-workflows/*.yaml"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, matches...)
	}
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		files = append(files, filepath.Join(folder, "monitoring.coreos.com_"+kind+".yaml"))
	}
	if _, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{Paths: files, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
}

func prometheusOperatorCRDs(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", prometheusOperator).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("go mod download %s: %s%s", prometheusOperator, out, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var download struct{ Dir string }
	if err := json.Unmarshal(out, &download); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(download.Dir, "example", "prometheus-operator-crd")
}

func TestDryRun_MissingPrometheusOperatorIsNamed(t *testing.T) {
	_, err := tryRenderFor(t, variations["a Prometheus Operator"], nil)
	if err == nil || !strings.Contains(err.Error(), "install a Prometheus Operator first") {
		t.Errorf("error %v", err)
	}
}
