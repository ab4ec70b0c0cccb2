package chart

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	psaapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func TestSecurity_PodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			for id, pod := range render(t, values).pods(t) {
				for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
					if !result.Allowed {
						t.Errorf("%s: %s: %s", id, result.ForbiddenReason, result.ForbiddenDetail)
					}
				}
				for _, container := range containers(pod) {
					if readOnly := container.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
						t.Errorf("%s: container %s can write to its image", id, container.Name)
					}
				}
			}
		})
	}
}

// A block pod is restricted, and Guaranteed, only if the containers that Argo adds to it are.
func TestSecurity_ArgoContainersAreRestrictedAndGuaranteed(t *testing.T) {
	executor := argoConfig(t, render(t, `{argo: {executor: {cpu: 70m, memory: 90Mi}}}`)).Executor
	for _, list := range []corev1.ResourceList{executor.Resources.Requests, executor.Resources.Limits} {
		if list.Cpu().String() != "70m" || list.Memory().String() != "90Mi" {
			t.Errorf("resources are %+v", executor.Resources)
		}
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	executor.Name, executor.Image = "wait", "argoexec"
	pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{executor}}}
	for _, result := range evaluator.EvaluatePod(psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()},
		&pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	if executor.SecurityContext.RunAsUser == nil || *executor.SecurityContext.RunAsUser == 0 {
		t.Error("no user: the image of the executor starts as root, which runAsNonRoot refuses")
	}
}

func TestSecurity_StorageCredentialsReachOnlyListedPods(t *testing.T) {
	const operator, store, job, prometheus = "Deployment/assay-system/assay-operator", "StatefulSet/assay-system/assay-minio",
		"Job/assay-system/assay-create-bucket", "Deployment/assay-system/assay-prometheus"
	bundled := map[string][]string{
		"assay-minio-root": {store, job}, "assay-ledger-users": {job}, "assay-ledger-operator": {operator}, "assay-minio-metrics": {prometheus},
		"assay-ledger": nil, "assay-ledger-read": nil, "assay-minio-tls": {store}, "assay-argo-server-tls": nil,
		"assay-ledger-ca": {operator, job, prometheus},
	}
	own := maps.Clone(bundled)
	delete(own, "assay-minio-root")
	own["mine"] = []string{store, job}
	for values, allowed := range map[string]map[string][]string{
		``:                                      bundled,
		`{objectStore: {existingSecret: mine}}`: own,
		`{objectStore: {mode: external, existingSecret: s3, external: {endpoint: "s3:9000"}}}`: {"s3": {operator, job}, "assay-argo-server-tls": nil},
	} {
		chart := render(t, values)
		for secret, pods := range allowed {
			for id, pod := range chart.pods(t) {
				if sees := slices.Contains(secretsOf(pod), secret); sees != slices.Contains(pods, id) {
					t.Errorf("%s sees the Secret %s: %v", id, secret, sees)
				}
			}
			// A template has no place for a secret; this is to notice when it gets one.
			for _, template := range chart.of("BenchmarkTemplate") {
				if raw, _ := template.MarshalJSON(); strings.Contains(string(raw), secret) {
					t.Errorf("%s names the Secret %s", identity(template), secret)
				}
			}
		}
		for _, secret := range chart.of("Secret") {
			if _, known := allowed[secret.GetName()]; !known && secret.GetName() != "assay-grafana" {
				t.Errorf("no rule says who may see %s", identity(secret))
			}
		}
	}
}

// The keys of a namespace belong to a user of that namespace alone, whose rights the job grants by name.
func TestSecurity_RunNamespaceHasOnlyItsUsersKeys(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values     string
		namespaces []string
	}{
		"defaults":               {``, []string{"default"}},
		"several":                {`{runNamespaces: [a, b]}`, []string{"a", "b"}},
		"beside the chart":       {`{runNamespaces: [assay-system, b]}`, []string{releaseNamespace, "b"}},
		"keys that are given":    {`{runNamespaces: [a, b], objectStore: {auth: {accessKey: given-access, secretKey: given-secret}}}`, []string{"a", "b"}},
		"keys made of something": {`{runNamespaces: [a, b], objectStore: {auth: {userKeySeed: "0123456789012345678901234567890123456789"}}}`, []string{"a", "b"}},
		"given root keys":        {`{runNamespaces: [a, b], objectStore: {existingSecret: mine}}`, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			chart := render(t, tc.values)
			users := into[corev1.Secret](t, chart.find(t, "Secret/assay-system/assay-ledger-users")).Data
			expected := map[string]string{"assay-system/assay-ledger-operator": "operator", "assay-system/assay-minio-metrics": "metrics"}
			for _, namespace := range tc.namespaces {
				expected[namespace+"/assay-ledger"], expected[namespace+"/assay-ledger-read"] = "run."+namespace, "read."+namespace
			}
			seen := map[string]string{}
			for where, user := range expected {
				secret := into[corev1.Secret](t, chart.find(t, "Secret/"+where)).Data
				key := string(secret["secretKey"])
				if string(secret["accessKey"]) != "assay."+user || key != string(users[user]) || len(key) < 32 {
					t.Errorf("%s holds %s, and the job gives %s the key %s", where, secret, user, users[user])
				}
				if other := seen[key]; other != "" {
					t.Errorf("%s and %s have the same key", user, other)
				}
				seen[key] = user
			}
			if len(users) != len(expected) {
				t.Errorf("the job makes %v, want %v", users, expected)
			}
			// Root's are in the release's namespace, in one Secret.
			for _, object := range chart.of("Secret") {
				secret := into[corev1.Secret](t, object)
				if secret.Labels["app.kubernetes.io/component"] != "ledger" || secret.Name == "assay-ledger-users" ||
					secret.Name == "assay-ledger-ca" {
					continue
				}
				_, user := expected[secret.Namespace+"/"+secret.Name]
				if root := secret.Namespace == releaseNamespace && secret.Name == "assay-minio-root"; !user && !root {
					t.Errorf("%s/%s holds %s", secret.Namespace, secret.Name, secret.Data)
				}
			}
		})
	}
}

func TestSecurity_GivenCredentialsAreInOneSecret(t *testing.T) {
	chart := render(t, `{runNamespaces: [a, b], objectStore: {auth: {accessKey: given-access, secretKey: given-secret}}}`)
	encoded := base64.StdEncoding.EncodeToString([]byte("given-secret"))
	for _, object := range chart.objects {
		raw, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "given-") {
			t.Errorf("%s holds a credential in plain text", identity(object))
		}
		if strings.Contains(string(raw), encoded) != (identity(object) == "Secret/assay-system/assay-minio-root") {
			t.Errorf("%s holds the root user's key", identity(object))
		}
	}
	root := into[corev1.Secret](t, chart.find(t, "Secret/assay-system/assay-minio-root"))
	if string(root.Data["accessKey"]) != "given-access" || string(root.Data["secretKey"]) != "given-secret" {
		t.Errorf("it holds %s", root.Data)
	}
}

func TestSecurity_GeneratedCredentialsAreUnique(t *testing.T) {
	t.Parallel()
	read := func(values, secret string) string {
		return fmt.Sprintf("%s", into[corev1.Secret](t, renderAnew(t, values).find(t, secret)).Data)
	}
	for _, secret := range []string{"Secret/assay-system/assay-minio-root", "Secret/assay-system/assay-ledger-users",
		"Secret/default/assay-ledger"} {
		if first, second := read("", secret), read("", secret); first == second {
			t.Errorf("two installs have the same %s", secret)
		}
	}
	const seeded, other = `{objectStore: {auth: {userKeySeed: 0123456789abcdef0123456789abcdef}}}`,
		`{objectStore: {auth: {userKeySeed: 0123456789abcdef0123456789abcdeg}}}`
	const keys = "Secret/default/assay-ledger"
	first, again := read(seeded, keys), read(seeded, keys)
	if first != again {
		t.Error("a chart that is rendered twice with a seed has other keys")
	}
	if first == read(other, keys) {
		t.Error("another seed makes the same keys")
	}
}

func TestSecurity_Rights(t *testing.T) {
	reading := []string{"get", "list", "watch"}
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			chart := render(t, values)
			for _, object := range append(chart.of("Role"), chart.of("ClusterRole")...) {
				for _, rule := range rulesOf(t, object) {
					id := identity(object)
					if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.APIGroups, "*") {
						t.Errorf("%s has a wildcard: %+v", id, rule)
					}
					if slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 {
						t.Errorf("%s reads every secret: %+v", id, rule)
					}
					for _, verb := range rule.Verbs {
						readOnly := strings.Contains(id, "-argo-server") || strings.Contains(id, "-prometheus") ||
							(object.GetKind() == "ClusterRole" && strings.Contains(id, "-argo-"))
						if readOnly && !slices.Contains(reading, verb) {
							t.Errorf("%s may %s %v", id, verb, rule.Resources)
						}
						if object.GetKind() == "ClusterRole" && !slices.Contains(reading, verb) &&
							boundEverywhere(t, chart, object.GetName()) && !allowedEverywhere(rule) {
							t.Errorf("%s may %s %v everywhere", id, verb, rule.Resources)
						}
						if strings.HasSuffix(id, "/assay-executor") &&
							(!slices.Equal(rule.Resources, []string{"workflowtaskresults"}) || !slices.Contains([]string{"create", "patch"}, verb)) {
							t.Errorf("%s may %s %v", id, verb, rule.Resources)
						}
					}
				}
			}
			wantBindingsThatExist(t, chart)
		})
	}
}

// Who reads metrics has a token, and the ClusterRole that allows it.
func TestSecurity_OperatorMetricsRequireAToken(t *testing.T) {
	open := `{operator: {metrics: {secure: false}}}`
	for values, secure := range map[string]bool{``: true, variations["a Prometheus Operator"]: true, open: false} {
		chart := render(t, values)
		args := chart.pods(t)["Deployment/assay-system/assay-operator"].Spec.Containers[0].Args
		if !slices.Contains(args, "--metrics-secure="+strconv.FormatBool(secure)) {
			t.Errorf("%s: the operator's arguments are %v", values, args)
		}
		if roles := slices.Contains(chart.identities(), "ClusterRole/assay-metrics"); roles != secure {
			t.Errorf("%s: the ClusterRole assay-metrics is there: %v", values, roles)
		}
		for _, monitor := range chart.of("ServiceMonitor") {
			endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
			endpoint := endpoints[0].(map[string]any)
			operator := strings.HasSuffix(monitor.GetName(), "-operator")
			overTLS := !strings.HasSuffix(monitor.GetName(), "-argo-controller")
			if (endpoint["scheme"] == "https") != overTLS || (endpoint["bearerTokenFile"] != nil) != operator {
				t.Errorf("%s reads %v", monitor.GetName(), endpoint)
			}
		}
	}
	chart := render(t, "")
	binding := into[rbacv1.ClusterRoleBinding](t, chart.find(t, "ClusterRoleBinding/assay-prometheus-metrics"))
	if binding.RoleRef.Name != "assay-metrics" || len(binding.Subjects) != 1 || binding.Subjects[0].Name != "assay-prometheus" {
		t.Errorf("the bundled Prometheus is bound by %+v", binding)
	}
	wantAnnotation(t, chart.find(t, "Service/assay-system/assay-operator"), "prometheus.io/scheme", "https")
}

func TestSecurity_ArgoServerRequiresATokenAndReadsNoSecret(t *testing.T) {
	for values, asks := range map[string]bool{``: true, `{argo: {server: {authMode: server}}}`: false} {
		chart := render(t, values)
		args := chart.pods(t)["Deployment/assay-system/assay-argo-server"].Spec.Containers[0].Args
		if slices.Contains(args, "--auth-mode=client") != asks {
			t.Errorf("%s: the server's arguments are %v", values, args)
		}
		reads := slices.ContainsFunc(rulesOf(t, chart.find(t, "Role/default/assay-argo-server-runs")),
			func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "secrets") })
		if reads == asks {
			t.Errorf("%s: the server reads Secrets: %v", values, reads)
		}
	}
}

func wantBindingsThatExist(t *testing.T, chart *rendered) {
	t.Helper()
	for _, object := range append(chart.of("RoleBinding"), chart.of("ClusterRoleBinding")...) {
		binding := into[rbacv1.RoleBinding](t, object)
		role := binding.RoleRef.Kind + "/" + binding.RoleRef.Name
		if binding.RoleRef.Kind == "Role" {
			role = "Role/" + binding.Namespace + "/" + binding.RoleRef.Name
		}
		chart.find(t, role)
		for _, subject := range binding.Subjects {
			if subject.Namespace == "argo" {
				continue // The ServiceAccount of an external Argo.
			}
			chart.find(t, "ServiceAccount/"+subject.Namespace+"/"+subject.Name)
		}
	}
	for id, pod := range chart.pods(t) {
		switch account, mount := pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken; {
		case account != "":
			chart.find(t, "ServiceAccount/"+releaseNamespace+"/"+account)
		case mount == nil || *mount:
			t.Errorf("%s uses the default service account and mounts a token", id)
		}
	}
}

func rulesOf(t *testing.T, object unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	return into[rbacv1.ClusterRole](t, object).Rules
}

// secretsOf lists the Secrets a pod can read, by environment or volume.
func secretsOf(pod corev1.PodTemplateSpec) []string {
	var names []string
	for _, container := range containers(pod) {
		for _, env := range container.Env {
			if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
				names = append(names, env.ValueFrom.SecretKeyRef.Name)
			}
		}
		for _, from := range container.EnvFrom {
			if from.SecretRef != nil {
				names = append(names, from.SecretRef.Name)
			}
		}
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret != nil {
			names = append(names, volume.Secret.SecretName)
		}
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				if source.Secret != nil {
					names = append(names, source.Secret.Name)
				}
			}
		}
	}
	return names
}

// allowedEverywhere reports whether a rule is a write that may hold in the whole cluster: of the operator on nodes, under a policy, to
// remove the finalizers of runs, and to ask who someone is.
func allowedEverywhere(rule rbacv1.PolicyRule) bool {
	return slices.Equal(rule.Resources, []string{"benchmarkruns"}) && slices.Equal(rule.Verbs, []string{"get", "patch"}) ||
		slices.Equal(rule.Resources, []string{"nodes"}) || slices.Equal(rule.Resources, []string{"tokenreviews"}) ||
		slices.Equal(rule.Resources, []string{"subjectaccessreviews"})
}

// boundEverywhere reports whether a ClusterRole holds in the whole cluster: a ClusterRoleBinding names it. One that is aggregated into
// Kubernetes' own roles, or that only a RoleBinding of its namespace's owner names, does not.
func boundEverywhere(t *testing.T, chart *rendered, role string) bool {
	return slices.ContainsFunc(chart.of("ClusterRoleBinding"), func(object unstructured.Unstructured) bool {
		return into[rbacv1.ClusterRoleBinding](t, object).RoleRef.Name == role
	})
}

// MinIO asks for the token of its user for metrics. Prometheus signs it before it starts, and has neither that user's key nor root's.
func TestSecurity_StoreMetricsRequireAToken(t *testing.T) {
	for name, tc := range map[string]struct {
		values string
		auth   string
		signs  bool
	}{
		"defaults":               {``, "jwt", true},
		"open":                   {`{objectStore: {metrics: {secure: false}}}`, "public", false},
		"a Prometheus of others": {variations["a Prometheus Operator"], "jwt", false},
	} {
		t.Run(name, func(t *testing.T) {
			chart := render(t, tc.values)
			env := chart.pods(t)["StatefulSet/assay-system/assay-minio"].Spec.Containers[0].Env
			if !slices.Contains(env, corev1.EnvVar{Name: "MINIO_PROMETHEUS_AUTH_TYPE", Value: tc.auth}) {
				t.Errorf("MinIO has %v", env)
			}
			for _, monitor := range chart.of("ServiceMonitor") {
				endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
				name, _, _ := unstructured.NestedString(endpoints[0].(map[string]any), "authorization", "credentials", "name")
				if (name == "assay-minio-token") != (monitor.GetName() == "assay-minio") {
					t.Errorf("%s reads with the Secret %q", monitor.GetName(), name)
				}
			}
			pod := chart.pods(t)["Deployment/assay-system/assay-prometheus"]
			if signs := len(pod.Spec.InitContainers) == 1; signs != tc.signs {
				t.Errorf("Prometheus signs a token: %v", signs)
			}
			for _, container := range pod.Spec.Containers {
				for _, variable := range container.Env {
					if variable.ValueFrom != nil {
						t.Errorf("Prometheus has %s", variable.Name)
					}
				}
			}
		})
	}
}

// With TLS all clients of MinIO trust the authority of its certificate, for the name by which they reach it.
func TestSecurity_BundledStoreOverTLS(t *testing.T) {
	const host = "assay-minio.assay-system.svc"
	chart := render(t, variations["a bundled store over TLS"])
	made := into[corev1.Secret](t, chart.find(t, "Secret/assay-system/assay-minio-tls"))
	pair, err := tls.X509KeyPair(made.Data["tls.crt"], made.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{releaseNamespace, "team-a", "team-b"} {
		authority := into[corev1.Secret](t, chart.find(t, "Secret/"+namespace+"/assay-ledger-ca")).Data["ca.crt"]
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authority) {
			t.Fatalf("%s has no certificate: %s", namespace, authority)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
			t.Errorf("%s: %v", namespace, err)
		}
	}
	const url = "--ledger=s3://assay?endpoint=https://" + host + ":9000&region=us-east-1"
	wantArgs(t, chart, "Deployment/assay-system/assay-operator", url, "--ledger-ca-secret=assay-ledger-ca",
		"--ledger-ca-file=/etc/assay/ledger-ca/ca.crt")
	wantArgs(t, chart, "Job/assay-system/assay-create-bucket", url)
	for _, id := range []string{"Deployment/assay-system/assay-operator", "Job/assay-system/assay-create-bucket",
		"Deployment/assay-system/assay-prometheus"} {
		wantFile(t, chart, id, "/etc/assay/ledger-ca", "assay-ledger-ca", corev1.KeyToPath{Key: "ca.crt", Path: "ca.crt"})
	}
	wantFile(t, chart, "StatefulSet/assay-system/assay-minio", "/certs", "assay-minio-tls",
		corev1.KeyToPath{Key: "tls.crt", Path: "public.crt"}, corev1.KeyToPath{Key: "tls.key", Path: "private.key"})
	if s3 := argoConfig(t, chart).ArtifactRepository.S3; s3.Insecure || s3.CASecret.Name != "assay-ledger-ca" || s3.Endpoint != host+":9000" {
		t.Errorf("Argo's artifact repository is %+v", s3)
	}
	store := chart.pods(t)["StatefulSet/assay-system/assay-minio"].Spec.Containers[0]
	for _, probe := range []*corev1.Probe{store.StartupProbe, store.ReadinessProbe, store.LivenessProbe} {
		if probe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("a probe speaks %q", probe.HTTPGet.Scheme)
		}
	}
	argo := into[corev1.Secret](t, chart.find(t, "Secret/assay-system/assay-argo-server-tls"))
	if pair, err = tls.X509KeyPair(argo.Data["tls.crt"], argo.Data["tls.key"]); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"assay-argo-server.assay-system.svc", "localhost", "127.0.0.1"} {
		if err := pair.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	wantArgs(t, chart, "Deployment/assay-system/assay-argo-server", "--secure=true", "--tls-certificate-secret-name=assay-argo-server-tls")
	plain := render(t, variations["without TLS"])
	wantArgs(t, plain, "Deployment/assay-system/assay-argo-server", "--secure=false")
	for _, id := range plain.identities() {
		if strings.Contains(id, "-tls") || strings.Contains(id, "certificates") || strings.Contains(id, "ledger-ca") {
			t.Errorf("without TLS there is %s", id)
		}
	}
	own := render(t, variations["TLS, and a Prometheus Operator"])
	wantFile(t, own, "StatefulSet/assay-system/assay-minio", "/certs", "own", corev1.KeyToPath{Key: "tls.crt", Path: "public.crt"},
		corev1.KeyToPath{Key: "tls.key", Path: "private.key"})
	if got := string(into[corev1.Secret](t, own.find(t, "Secret/default/assay-ledger-ca")).Data["ca.crt"]); !strings.Contains(got, "\nx\n") {
		t.Errorf("the authority is %q", got)
	}
	if slices.Contains(own.identities(), "Secret/assay-system/assay-minio-tls") {
		t.Error("a certificate is made beside one's own")
	}
}

// The job that renews certificates may get and patch the Secrets of certificates and authorities, by name, and Argo's server.
func TestSecurity_CertificatesJobHasLeastRights(t *testing.T) {
	chart := render(t, `{runNamespaces: [team-a, team-b]}`)
	own := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "patch"},
			ResourceNames: []string{"assay-minio-tls", "assay-argo-server-tls", "assay-ledger-ca"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "patch"},
			ResourceNames: []string{"assay-argo-server"}},
	}
	run := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "patch"},
		ResourceNames: []string{"assay-ledger-ca"}}}
	for id, want := range map[string][]rbacv1.PolicyRule{"Role/assay-system/assay-certificates": own, "Role/team-a/assay-certificates": run,
		"Role/team-b/assay-certificates": run} {
		if got := rulesOf(t, chart.find(t, id)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s allows %v, want %v", id, got, want)
		}
	}
	if slices.Contains(chart.identities(), "ClusterRole/assay-certificates") {
		t.Error("the job has rights in the whole cluster")
	}
	for values, want := range map[string]bool{``: true, `{certificates: {renew: false}}`: false, variations["existing certificates"]: false,
		variations["without TLS"]: false} {
		if got := slices.Contains(render(t, values).identities(), "CronJob/assay-system/assay-certificates"); got != want {
			t.Errorf("%s: a job renews certificates: %t, want %t", values, got, want)
		}
	}
}
