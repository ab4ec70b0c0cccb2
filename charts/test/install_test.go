package chart

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// cluster is a kube-apiserver without nodes or controllers.
type cluster struct {
	client.Client
	config     *rest.Config
	kubeconfig string
	helm       *action.Configuration
}

// startCluster starts a separate API server for a test, which then runs in parallel, because it waits for the server most of the time.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver and etcd are: run make test")
	}
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	out := &cluster{config: config, helm: action.NewConfiguration()}
	if out.Client, err = client.New(config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	out.kubeconfig = kubeconfig
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	settings.SetNamespace(releaseNamespace)
	if err := out.helm.Init(settings.RESTClientGetter(), releaseNamespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return out
}

// install is "helm install assay charts/assay -n assay-system --create-namespace --no-hooks": hooks are jobs, and nothing runs
// them here.
func (c *cluster) install(t *testing.T, values string) {
	t.Helper()
	install := action.NewInstall(c.helm)
	install.ReleaseName, install.Namespace, install.CreateNamespace = "assay", releaseNamespace, true
	install.DisableHooks, install.WaitStrategy, install.Timeout = true, kube.HookOnlyStrategy, time.Minute
	if _, err := install.Run(loadChart(t), parseValues(t, values)); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) upgrade(t *testing.T, values string) {
	t.Helper()
	if err := c.tryUpgrade(t, values); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) tryUpgrade(t *testing.T, values string) error {
	t.Helper()
	upgrade := action.NewUpgrade(c.helm)
	upgrade.Namespace = releaseNamespace
	upgrade.DisableHooks, upgrade.WaitStrategy, upgrade.Timeout = true, kube.HookOnlyStrategy, time.Minute
	_, err := upgrade.Run("assay", loadChart(t), parseValues(t, values))
	return err
}

func (c *cluster) uninstall(t *testing.T) {
	t.Helper()
	uninstall := action.NewUninstall(c.helm)
	uninstall.DisableHooks, uninstall.WaitStrategy, uninstall.Timeout = true, kube.HookOnlyStrategy, time.Minute
	uninstall.DeletionPropagation = "background"
	if _, err := uninstall.Run("assay"); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) secret(t *testing.T, namespace, name string) map[string][]byte {
	t.Helper()
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// runsReach are the addresses to which the policy of the default namespace lets the pods of runs.
func (c *cluster) runsReach(t *testing.T) (cidrs []string) {
	t.Helper()
	var policy networkingv1.NetworkPolicy
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "assay-runs"}, &policy); err != nil {
		t.Fatal(err)
	}
	for _, rule := range policy.Spec.Egress {
		for _, peer := range rule.To {
			if peer.IPBlock != nil {
				cidrs = append(cidrs, peer.IPBlock.CIDR)
			}
		}
	}
	if len(cidrs) < 2 {
		t.Errorf("the pods of runs reach the addresses %v, and no API server", cidrs)
	}
	return cidrs
}

func (c *cluster) createNamespace(t *testing.T, name string) {
	t.Helper()
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// The steps build on each other: one release through its life.
func TestInstall_ReleaseFromInstallToUninstall(t *testing.T) {
	c := startCluster(t)
	c.createNamespace(t, "team-a")
	credentials := func(namespace string) string {
		if namespace == releaseNamespace {
			return fmt.Sprintf("%s%s%s", c.secret(t, namespace, "assay-minio-root"), c.secret(t, namespace, "assay-ledger-operator"),
				c.secret(t, namespace, "assay-minio-metrics"))
		}
		return fmt.Sprintf("%s%s", c.secret(t, namespace, "assay-ledger"), c.secret(t, namespace, "assay-ledger-read"))
	}
	users := func() []string {
		return slices.Sorted(maps.Keys(c.secret(t, releaseNamespace, "assay-ledger-users")))
	}

	c.install(t, "")
	installed, installedRuns := credentials(releaseNamespace), credentials("default")
	c.wantObjects(t, render(t, ""))
	if got := users(); !slices.Equal(got, []string{"metrics", "operator", "read.default", "run.default"}) {
		t.Errorf("install: the job makes the users %v", got)
	}
	for _, cidr := range c.runsReach(t) {
		if !strings.HasSuffix(cidr, "/32") && !strings.HasSuffix(cidr, "/128") {
			t.Errorf("install: the pods of runs reach %s", cidr)
		}
	}
	// Helm keeps the release in a Secret, and a Secret holds 1 MiB.
	if size := len(c.secret(t, releaseNamespace, "sh.helm.release.v1.assay.v1")["release"]); size > 768<<10 {
		t.Errorf("the release takes %d KiB of the 1024 that a Secret holds", size>>10)
	} else {
		t.Logf("the release takes %d KiB", size>>10)
	}

	c.upgrade(t, "{runNamespaces: [default, team-a]}")
	if credentials(releaseNamespace) != installed || credentials("default") != installedRuns {
		t.Error("upgrade: there are other credentials than before")
	}
	if got := users(); !slices.Equal(got, []string{"metrics", "operator", "read.default", "read.team-a", "run.default", "run.team-a"}) {
		t.Errorf("upgrade with a namespace more: the job makes the users %v", got)
	}
	if credentials("team-a") == installedRuns {
		t.Error("upgrade: two run namespaces have the same credentials")
	}

	c.upgrade(t, "{objectStore: {persistence: {enabled: false}}}")
	if credentials(releaseNamespace) != installed || credentials("default") != installedRuns {
		t.Error("upgrade with a namespace less: the credentials of the others changed")
	}
	if got := users(); !slices.Equal(got, []string{"metrics", "operator", "read.default", "run.default"}) {
		t.Errorf("upgrade with a namespace less: the job makes the users %v", got)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "assay-ledger"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("upgrade with a namespace less: its credentials are still there: %v", err)
	}

	// MinIO keeps its root keys, because new ones would cost its emptyDir.
	if err := c.tryUpgrade(t, "{objectStore: {persistence: {enabled: false}, existingSecret: mine}}"); err == nil ||
		!strings.Contains(err.Error(), "MinIO has its root keys from Secret assay-minio-root and would have them from mine") {
		t.Errorf("upgrade of an emptyDir to other root keys: %v", err)
	}
	c.wantObjects(t, render(t, ""))

	// A claim would be empty, and the emptyDir is deleted with the pod, so an upgrade must not switch: it would lose ledgers.
	if err := c.tryUpgrade(t, "{runNamespaces: [default]}"); err == nil ||
		!strings.Contains(err.Error(), "the ledgers of this release are in an emptyDir") {
		t.Errorf("upgrade from an emptyDir to a claim: %v", err)
	}

	c.upgrade(t, "{runNamespaces: [team-a], argo: {mode: external}, objectStore: {persistence: {enabled: false}}}")
	if got := c.owned(t); slices.ContainsFunc(got, func(id string) bool { return strings.HasPrefix(id, "BenchmarkTemplate/default/") }) {
		t.Errorf("upgrade: the namespace that was taken away still has %v", got)
	}

	c.uninstall(t)
	var crds, rest []string
	for _, id := range c.owned(t) {
		if strings.HasPrefix(id, "CustomResourceDefinition/") {
			crds = append(crds, id)
		} else {
			rest = append(rest, id)
		}
	}
	if len(rest) != 1 || rest[0] != "PersistentVolumeClaim/assay-system/assay-minio" {
		t.Errorf("uninstall leaves %v, want the ledgers only", rest)
	}
	if len(crds) != 8 {
		t.Errorf("uninstall leaves %v of Argo's 8 CRDs", crds)
	}
	for _, kind := range []string{"benchmarkruns", "benchmarktemplates", "benchmarkschedules", "benchmarkrevisions"} {
		definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition")
		if err := c.Get(t.Context(), client.ObjectKey{Name: kind + ".assay.dev"}, definition); err != nil {
			t.Errorf("uninstall: %v", err)
		}
	}

	// Retained objects do not block a second install.
	c.install(t, "")

}

// An upgrade keeps the certificates, and the job renews them while Helm's release goes on: upgrades after each step change nothing, and a
// rollback succeeds. Its clients trust the certificate that is served after every step.
func TestInstall_CertificateIsRenewedWhileClientsTrustIt(t *testing.T) {
	c := startCluster(t)
	c.createNamespace(t, "team-a")
	const values = `{runNamespaces: [team-a]}`
	c.install(t, values)
	keep := func(when string) map[string][]byte {
		t.Helper()
		before := c.secret(t, releaseNamespace, "assay-minio-tls")
		c.upgrade(t, values)
		after := c.secret(t, releaseNamespace, "assay-minio-tls")
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s: an upgrade changes the certificate", when)
		}
		pair, err := tls.X509KeyPair(after["tls.crt"], after["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		for _, namespace := range []string{releaseNamespace, "team-a"} {
			trusted := x509.NewCertPool()
			trusted.AppendCertsFromPEM(c.secret(t, namespace, "assay-ledger-ca")["ca.crt"])
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: "assay-minio.assay-system.svc"}); err != nil {
				t.Errorf("%s: clients in %s reject the certificate: %v", when, namespace, err)
			}
		}
		return after
	}
	first := keep("installed")
	assay := filepath.Join(t.TempDir(), "assay")
	build := exec.Command("go", "build", "-o", assay, "./cmd/assay")
	build.Dir = filepath.Join("..", "..", "operator")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	job := into[corev1.PodTemplateSpec](t, render(t, values).find(t, "CronJob/assay-system/assay-certificates"),
		"spec", "jobTemplate", "spec", "template")
	// The job's own arguments and account, with times at which a renewal is due at once.
	renew := func() {
		t.Helper()
		for _, container := range job.Spec.Containers {
			args := append(append([]string{}, container.Command[1:]...), container.Args...)
			args = append(args, "--kubeconfig="+c.kubeconfig, "--as=system:serviceaccount:assay-system:"+job.Spec.ServiceAccountName,
				"--lifetime=9000h", "--lead=8990h", "--trust=0s")
			if out, err := exec.Command(assay, args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", container.Name, err, out)
			}
		}
	}
	renew()
	announced := keep("announced")
	if !bytes.Equal(announced["tls.crt"], first["tls.crt"]) || len(announced["next.crt"]) == 0 {
		t.Error("a certificate is served in the step in which its authority becomes trusted")
	}
	renew()
	served := keep("served")
	if !bytes.Equal(served["tls.crt"], announced["next.crt"]) || len(served["next.key"]) > 0 {
		t.Error("the announced certificate is not served by the next call")
	}
	server := object("apps/v1", "Deployment")
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: releaseNamespace, Name: "assay-argo-server"}, server); err != nil {
		t.Fatal(err)
	}
	restarted, _, _ := unstructured.NestedString(server.Object, "spec", "template", "metadata", "annotations", "assay.dev/certificate")
	if restarted == "" || restarted != string(c.secret(t, releaseNamespace, "assay-argo-server-tls")["restart"]) {
		t.Errorf("Argo's server is restarted for %q", restarted)
	}
	rollback := action.NewRollback(c.helm)
	rollback.Version, rollback.DisableHooks, rollback.WaitStrategy, rollback.Timeout = 1, true, kube.HookOnlyStrategy, time.Minute
	if err := rollback.Run("assay"); err != nil {
		t.Fatalf("rollback to a release with the certificate before: %v", err)
	}
	keep("rolled back")
}

// An upgrade that changes whether MinIO speaks TLS is rejected while pods of a run have its address, or its ledgers are in an emptyDir.
func TestInstall_ChangeOfTLSIsRejectedWhereItLoses(t *testing.T) {
	c := startCluster(t)
	c.createNamespace(t, "team-a")
	const plain, overTLS = `{runNamespaces: [team-a], objectStore: {tls: {enabled: false}}}`, `{runNamespaces: [team-a]}`
	c.install(t, plain)
	run := object("assay.dev/v1alpha1", "BenchmarkRun")
	run.SetNamespace("team-a")
	run.SetName("scan")
	run.Object["spec"] = map[string]any{
		"templateRef": map[string]any{"name": "pir-scan"},
		"arms":        []any{map[string]any{"name": "a", "baseline": true}, map[string]any{"name": "b"}},
	}
	if err := c.Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	c.upgrade(t, plain)
	running := run.DeepCopy()
	_ = unstructured.SetNestedField(running.Object, "Running", "status", "phase")
	if err := c.Status().Update(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	if err := c.tryUpgrade(t, overTLS); err == nil || !strings.Contains(err.Error(), "run team-a/scan") {
		t.Errorf("with a running run: %v", err)
	}
	c.upgrade(t, plain)
	if err := c.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	c.upgrade(t, overTLS)
	if err := c.tryUpgrade(t, plain); err != nil {
		t.Errorf("without runs: %v", err)
	}

	const folder = `{runNamespaces: [team-a], objectStore: {persistence: {enabled: false}, tls: {enabled: %t}}}`
	c.uninstall(t)
	c.install(t, fmt.Sprintf(folder, false))
	if err := c.tryUpgrade(t, fmt.Sprintf(folder, true)); err == nil || !strings.Contains(err.Error(), "emptyDir") {
		t.Errorf("with ledgers in an emptyDir: %v", err)
	}
}

// Each right is asked of the API server, for the identity that has it. The charts' promises are the ones that say no.
func TestInstall_RightsOfEveryAccount(t *testing.T) {
	c := startCluster(t)
	for _, namespace := range []string{"team-a", "team-b", "elsewhere"} {
		c.createNamespace(t, namespace)
	}
	const (
		controller = "assay-system:assay-argo-controller"
		server     = "assay-system:assay-argo-server"
		executor   = "team-a:assay-executor"
		operator   = "assay-system:assay-operator"
		prometheus = "assay-system:assay-prometheus"
	)
	type question struct{ who, verb, resource, namespace, name string }
	always := map[question]bool{
		{controller, "create", "pods", "team-a", ""}:                                  true,
		{controller, "create", "pods", "elsewhere", ""}:                               false,
		{controller, "create", "pods", releaseNamespace, ""}:                          false,
		{controller, "update", "workflows.argoproj.io", "team-a", ""}:                 true,
		{controller, "update", "workflows.argoproj.io", "elsewhere", ""}:              false,
		{controller, "get", "secrets", "team-a", ""}:                                  false,
		{controller, "get", "secrets", releaseNamespace, ""}:                          false,
		{controller, "get", "configmaps", releaseNamespace, "assay-argo-controller"}:  true,
		{controller, "update", "leases.coordination.k8s.io", releaseNamespace, ""}:    true,
		{server, "list", "workflows.argoproj.io", "team-a", ""}:                       true,
		{server, "delete", "workflows.argoproj.io", "team-a", ""}:                     false,
		{server, "get", "secrets", "team-a", "another"}:                               false,
		{executor, "create", "workflowtaskresults.argoproj.io", "team-a", ""}:         true,
		{executor, "create", "workflowtaskresults.argoproj.io", "elsewhere", ""}:      false,
		{executor, "get", "secrets", "team-a", "assay-ledger"}:                        false,
		{executor, "get", "pods", "team-a", ""}:                                       false,
		{executor, "patch", "workflowtaskresults.argoproj.io", "team-a", ""}:          true,
		{executor, "get", "workflowtaskresults.argoproj.io", "team-a", ""}:            false,
		{executor, "create", "pods/exec", "team-a", ""}:                               false,
		{executor, "get", "benchmarkruns.assay.dev", "team-a", ""}:                    false,
		{operator, "patch", "workflows.argoproj.io", "team-a", ""}:                    true,
		{operator, "get", "secrets", "team-a", "assay-ledger"}:                        false,
		{operator, "get", "secrets", releaseNamespace, "assay-ledger-operator"}:       false,
		{operator, "get", "secrets", releaseNamespace, "assay-minio-root"}:            false,
		{operator, "create", "pods", "team-a", ""}:                                    false,
		{operator, "delete", "pods", "team-a", ""}:                                    true, // Those that a webhook's container keeps.
		{operator, "delete", "pods", "elsewhere", ""}:                                 false,
		{operator, "patch", "pods", "team-a", ""}:                                     false,
		{operator, "get", "namespaces", "", "elsewhere"}:                              true, // To release the runs of one that is being deleted.
		{operator, "list", "namespaces", "", ""}:                                      false,
		{operator, "patch", "benchmarkruns.assay.dev", "elsewhere", ""}:               true,
		{operator, "list", "benchmarkruns.assay.dev", "elsewhere", ""}:                false,
		{operator, "delete", "benchmarkruns.assay.dev", "elsewhere", ""}:              false,
		{operator, "patch", "benchmarkruns.assay.dev/status", "elsewhere", ""}:        false,
		{operator, "list", "pods", "elsewhere", ""}:                                   false,
		{operator, "create", "pods/exec", "team-a", ""}:                               false,
		{operator, "update", "leases.coordination.k8s.io", releaseNamespace, ""}:      true,
		{operator, "update", "leases.coordination.k8s.io", "team-a", ""}:              false,
		{operator, "delete", "nodes", "", ""}:                                         false,
		{operator, "patch", "nodes", "", ""}:                                          true,
		{operator, "patch", "workflows.argoproj.io", "elsewhere", ""}:                 false,
		{operator, "create", "workflows.argoproj.io", releaseNamespace, ""}:           false,
		{operator, "patch", "configmaps", "team-a", ""}:                               true,
		{operator, "patch", "configmaps", "elsewhere", ""}:                            false,
		{operator, "patch", "configmaps", releaseNamespace, ""}:                       false,
		{operator, "list", "pods", "", ""}:                                            false,
		{operator, "get", "benchmarkruns.assay.dev", "elsewhere", ""}:                 true,
		{controller, "create", "pods/exec", "team-a", ""}:                             true,
		{controller, "create", "serviceaccounts", "team-a", ""}:                       false,
		{controller, "delete", "persistentvolumeclaims", "team-a", ""}:                false,
		{controller, "update", "workflowtaskresults.argoproj.io", "team-a", ""}:       false,
		{controller, "delete", "workflowtemplates.argoproj.io", "team-a", ""}:         false,
		{prometheus, "list", "endpointslices.discovery.k8s.io", releaseNamespace, ""}: true,
		{prometheus, "list", "endpointslices.discovery.k8s.io", "team-a", ""}:         false,
		{prometheus, "get", "secrets", releaseNamespace, ""}:                          false,
	}
	tests := []struct {
		name, values string
		want         map[question]bool
	}{
		{"with one run namespace", "{runNamespaces: [team-a]}", map[question]bool{
			{controller, "list", "pods", "team-a", ""}:                 true,
			{controller, "list", "workflows.argoproj.io", "", ""}:      false,
			{controller, "list", "configmaps", "elsewhere", ""}:        false,
			{server, "list", "workflows.argoproj.io", "elsewhere", ""}: false,
			{server, "get", "pods/log", "team-a", ""}:                  true,
			{operator, "patch", "workflows.argoproj.io", "team-b", ""}: false,
		}},
		{"with several run namespaces", "{runNamespaces: [team-a, team-b]}", map[question]bool{
			{controller, "create", "pods", "team-b", ""}:          true,
			{controller, "list", "workflows.argoproj.io", "", ""}: true,
			{controller, "list", "pods", "", ""}:                  true,
			{controller, "get", "secrets", "", ""}:                false,
			{server, "list", "workflows.argoproj.io", "", ""}:     true,
			{server, "get", "secrets", "team-b", "assay-ledger"}:  false,
			{operator, "patch", "configmaps", "team-b", ""}:       true,
		}},
		{"with Argo's server open without authentication", "{runNamespaces: [team-a, team-b], argo: {server: {authMode: server}}}",
			map[question]bool{
				{server, "get", "secrets", "team-b", "assay-ledger"}: true,
				{server, "get", "secrets", "team-b", "another"}:      false,
			}},
	}
	for i, tc := range tests {
		if i == 0 {
			c.install(t, tc.values)
		} else {
			c.upgrade(t, tc.values)
		}
		t.Run(tc.name, func(t *testing.T) {
			for _, questions := range []map[question]bool{always, tc.want} {
				for q, want := range questions {
					if got := c.may(t, q.who, q.verb, q.resource, q.namespace, q.name); got != want {
						t.Errorf("%s may %s %s %s in namespace %q: %v, want %v", q.who, q.verb, q.resource, q.name, q.namespace, got, want)
					}
				}
			}
		})
	}
}

// may asks about a resource written pods, pods/log or workflows.argoproj.io, of a ServiceAccount written namespace:name.
func (c *cluster) may(t *testing.T, who, verb, resource, namespace, name string) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	resource, group, _ := strings.Cut(resource, ".")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + who,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace, Name: name},
	}}
	// The authorizer learns of new roles by watching, so that a yes may come late. A no is asked for as long.
	for range 20 {
		if err := c.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// wantObjects checks that the API server holds the rendered objects, except hooks.
func (c *cluster) wantObjects(t *testing.T, chart *rendered) {
	t.Helper()
	for _, want := range chart.objects {
		if want.GetAnnotations()["helm.sh/hook"] != "" {
			continue
		}
		got := object(want.GetAPIVersion(), want.GetKind())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(&want), got); err != nil {
			t.Errorf("%s: %v", identity(want), err)
		}
	}
}

// owned lists the objects in the API server with the release's label, of the kinds that the chart can render.
func (c *cluster) owned(t *testing.T) []string {
	t.Helper()
	kinds := map[schema.GroupVersionKind]bool{}
	for _, values := range variations {
		for _, made := range render(t, values).objects {
			kinds[made.GroupVersionKind()] = true
		}
	}
	var out []string
	for kind := range kinds {
		out = append(out, c.list(t.Context(), t, kind)...)
	}
	slices.Sort(out)
	return out
}

func (c *cluster) list(ctx context.Context, t *testing.T, kind schema.GroupVersionKind) []string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, client.MatchingLabels{"app.kubernetes.io/instance": "assay"}); err != nil && !apierrors.IsNotFound(err) &&
		!meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	var out []string
	for _, item := range list.Items {
		if item.GetDeletionTimestamp() == nil {
			out = append(out, identity(item))
		}
	}
	return out
}

func object(apiVersion, kind string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(apiVersion)
	out.SetKind(kind)
	return out
}
