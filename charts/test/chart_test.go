package chart

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// variations are values under which the rules for every object are checked.
var variations = map[string]string{
	"defaults":                           ``,
	"several run namespaces":             `{runNamespaces: [default, team-a, team-b], createRunNamespaces: true}`,
	"everything external":                `{argo: {mode: external}, prometheus: {mode: external}, grafana: {mode: external}, objectStore: {mode: external, existingSecret: s3, external: {endpoint: s3.example.com}}}`,
	"nothing is kept":                    `{objectStore: {persistence: {enabled: false}}, prometheus: {persistence: {enabled: false}}}`,
	"scheduled":                          `{scheduling: {nodeSelector: {pool: infra}, tolerations: [{key: infra, operator: Exists}], priorityClassName: high}, images: {pullSecrets: [{name: registry}]}}`,
	"a private authority":                `{objectStore: {mode: external, existingSecret: s3, external: {endpoint: "minio.storage.svc:9000", ca: {certificate: "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"}}}}`,
	"a workload identity":                `{grafana: {mode: external}, objectStore: {mode: external, region: eu-west-1, external: {endpoint: s3.eu-west-1.amazonaws.com, workloadIdentity: true, pathStyle: false}}, operator: {serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/assay"}}}, runs: {serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/runs"}}}}`,
	"a bundled store over TLS":           `{runNamespaces: [team-a, team-b], objectStore: {tls: {enabled: true}}}`,
	"without TLS":                        `{objectStore: {tls: {enabled: false}}, argo: {server: {tls: {enabled: false}}}}`,
	"existing certificates":              `{objectStore: {tls: {existingSecret: own, ca: "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"}}, argo: {server: {tls: {existingSecret: own-argo}}}}`,
	"certificates that are not renewed":  `{certificates: {renew: false}}`,
	"TLS, and a Prometheus Operator":     `{objectStore: {tls: {enabled: true, existingSecret: own, ca: "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"}}, prometheus: {mode: external, operator: {enabled: true}}, grafana: {mode: external}}`,
	"a Prometheus Operator":              `{prometheus: {mode: external, operator: {enabled: true, labels: {release: monitoring}, interval: 20s}}, grafana: {mode: external}}`,
	"an external Argo that needs rights": `{runNamespaces: [team-a, team-b], argo: {mode: external, external: {namespace: argo, serviceAccount: argo}}}`,
	"replicated":                         `{operator: {replicas: 3}, objectStore: {persistence: {enabled: false}}, argo: {controller: {replicas: 2}, server: {replicas: 2}}, commonLabels: {team: perf}, podAnnotations: {sidecar.istio.io/inject: "false"}}`,
	"runs kept apart":                    `{networkPolicies: {runs: {isolate: Both, egress: [{to: [{podSelector: {}}]}]}, interfacesFrom: [{namespaceSelector: {}}], metricsFrom: [{namespaceSelector: {}}], apiServer: {ports: [6443], cidrs: [10.0.0.1/32]}}}`,
	"a benchmark gate":                   `{benchmarkGate: {enabled: true}, runNamespaces: [team-a, team-b], grafana: {reportsURL: "https://minio.example.com/assay"}}`,
	"no policies":                        `{networkPolicies: {enabled: false}}`,
	"behind an ingress controller":       everyIngress[:len(everyIngress)-1] + ", " + fromController[1:],
	"runs beside the chart":              `{runNamespaces: [assay-system], fullnameOverride: bench, operator: {replicas: 2, extraArgs: [--image-pull-grace=5m]}}`,
}

func TestChart_Lint(t *testing.T) {
	t.Parallel()
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			for _, message := range lint.RunAll(chartDir, parseValues(t, values), releaseNamespace, lint.WithKubeVersion(kubeVersion)).Messages {
				if message.Severity > support.InfoSev {
					t.Error(message)
				}
			}
		})
	}
}

func TestChart_Objects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		values  string
		want    []string
		wantNot []string
		check   func(t *testing.T, chart *rendered)
	}{
		"the defaults install everything into the release's namespace": {
			want: []string{
				"Deployment/assay-system/assay-operator", "Service/assay-system/assay-operator", "ClusterRole/assay-operator",
				"Deployment/assay-system/assay-argo-controller", "ConfigMap/assay-system/assay-argo-controller",
				"Deployment/assay-system/assay-argo-server", "Service/assay-system/assay-argo-server",
				"StatefulSet/assay-system/assay-minio", "Service/assay-system/assay-minio", "Secret/assay-system/assay-minio-root", "Secret/assay-system/assay-ledger-operator", "Secret/assay-system/assay-ledger-users",
				"Deployment/assay-system/assay-prometheus", "Service/assay-system/assay-prometheus",
				"Job/assay-system/assay-create-bucket", "PersistentVolumeClaim/assay-system/assay-minio",
				"CustomResourceDefinition/workflows.argoproj.io",
			},
			wantNot: []string{"Namespace/", "ClusterRole/assay-argo"},
		},
		"uninstalling first cancels the runs of all run namespaces": {
			values: `{runNamespaces: [team-a, team-b]}`,
			want:   []string{"Job/assay-system/assay-retire"},
			check: func(t *testing.T, chart *rendered) {
				pod := chart.pods(t)["Job/assay-system/assay-retire"].Spec
				if want := []string{"--run-namespaces=team-a,team-b", "--system-namespace=assay-system"}; !slices.Equal(pod.Containers[0].Args, want) ||
					pod.ServiceAccountName != "assay-operator" {
					t.Errorf("arguments %q as %s, want %q as the operator", pod.Containers[0].Args, pod.ServiceAccountName, want)
				}
			},
		},
		"each run namespace gets templates, an identity and credentials": {
			values: `{runNamespaces: [team-a, team-b]}`,
			want: []string{
				"BenchmarkTemplate/team-a/pir-scan", "ServiceAccount/team-a/assay-executor", "Role/team-a/assay-executor", "RoleBinding/team-a/assay-executor", "Secret/team-a/assay-ledger", "Secret/team-a/assay-ledger-read",
				"BenchmarkTemplate/team-b/pir-scan", "ServiceAccount/team-b/assay-executor", "Role/team-b/assay-executor", "RoleBinding/team-b/assay-executor", "Secret/team-b/assay-ledger",
			},
			wantNot: []string{"Namespace/", "BenchmarkTemplate/default/", "Secret/default/", "Secret/team-a/assay-minio-root"},
		},
		"run namespaces are created only when asked, and are kept": {
			values:  `{runNamespaces: [default, team-a], createRunNamespaces: true}`,
			want:    []string{"Namespace/team-a"},
			wantNot: []string{"Namespace/default", "Namespace/assay-system"},
			check: func(t *testing.T, chart *rendered) {
				wantAnnotation(t, chart.find(t, "Namespace/team-a"), "helm.sh/resource-policy", "keep")
			},
		},
		"an external Argo leaves nothing of Argo behind": {
			values:  `{argo: {mode: external}}`,
			want:    []string{"ServiceAccount/default/assay-executor", "StatefulSet/assay-system/assay-minio"},
			wantNot: []string{"CustomResourceDefinition/", "Deployment/assay-system/assay-argo", "Role/assay-system/assay-argo", "Role/default/assay-argo", "ClusterRole/assay-argo", "ConfigMap/assay-system/assay-argo", "Service/assay-system/assay-argo", "ServiceAccount/assay-system/assay-argo"},
		},
		"Argo without its server has a controller only": {
			values:  `{argo: {server: {enabled: false}}}`,
			want:    []string{"Deployment/assay-system/assay-argo-controller"},
			wantNot: []string{"Deployment/assay-system/assay-argo-server", "Service/assay-system/assay-argo-server", "Role/assay-system/assay-argo-server", "ServiceAccount/assay-system/assay-argo-server"},
		},
		"Argo's CRDs are kept on uninstall": {
			check: func(t *testing.T, chart *rendered) {
				if n := len(chart.of("CustomResourceDefinition")); n != 8 {
					t.Errorf("%d CRDs, want Argo's 8", n)
				}
				for _, crd := range chart.of("CustomResourceDefinition") {
					wantAnnotation(t, crd, "helm.sh/resource-policy", "keep")
				}
			},
		},
		"Argo's CRDs go with the release when they need not be kept": {
			values: `{argo: {crds: {keep: false}}}`,
			check: func(t *testing.T, chart *rendered) {
				for _, crd := range chart.of("CustomResourceDefinition") {
					wantAnnotation(t, crd, "helm.sh/resource-policy", "")
				}
			},
		},
		"Argo's CRDs can be left to another Argo": {
			values:  `{argo: {crds: {install: false}}}`,
			want:    []string{"Deployment/assay-system/assay-argo-controller"},
			wantNot: []string{"CustomResourceDefinition/"},
		},
		"with one run namespace Argo sees only that": {
			values:  `{runNamespaces: [team-a]}`,
			wantNot: []string{"ClusterRole/assay-argo", "ClusterRoleBinding/assay-argo"},
			check: func(t *testing.T, chart *rendered) {
				for _, name := range []string{"controller", "server"} {
					args := chart.pods(t)["Deployment/assay-system/assay-argo-"+name].Spec.Containers[0].Args
					if !slices.Contains(args, "--namespaced") || !slices.Contains(args, "--managed-namespace=team-a") {
						t.Errorf("%s: args are %v", name, args)
					}
				}
			},
		},
		"with several run namespaces Argo lists the cluster": {
			values: `{runNamespaces: [team-a, team-b]}`,
			want:   []string{"ClusterRole/assay-argo-controller", "ClusterRoleBinding/assay-argo-controller", "ClusterRole/assay-argo-server", "ClusterRoleBinding/assay-argo-server", "Role/team-a/assay-argo-controller-runs", "Role/team-b/assay-argo-controller-runs"},
			check: func(t *testing.T, chart *rendered) {
				for _, name := range []string{"controller", "server"} {
					args := chart.pods(t)["Deployment/assay-system/assay-argo-"+name].Spec.Containers[0].Args
					if slices.Contains(args, "--namespaced") {
						t.Errorf("%s: args are %v", name, args)
					}
				}
			},
		},
		"an external object store replaces MinIO and its Secret": {
			values:  `{objectStore: {mode: external, existingSecret: s3, bucket: ledger, region: eu-west-1, accessKeyKey: id, external: {endpoint: "s3.example.com:8443"}}, grafana: {mode: external}}`,
			want:    []string{"Job/assay-system/assay-create-bucket"},
			wantNot: []string{"Secret/default/", "Secret/assay-system/assay-minio", "Secret/assay-system/assay-ledger", "StatefulSet/", "Service/assay-system/assay-minio"},
			check: func(t *testing.T, chart *rendered) {
				s3 := argoConfig(t, chart).ArtifactRepository.S3
				if s3.Endpoint != "s3.example.com:8443" || s3.Insecure || s3.Bucket != "ledger" || s3.Region != "eu-west-1" ||
					s3.AccessKeySecret.Name != "s3" || s3.AccessKeySecret.Key != "id" {
					t.Errorf("Argo's artifact repository is %+v", s3)
				}
			},
		},
		"the bucket can be left to the store's owner": {
			values:  `{objectStore: {mode: external, existingSecret: s3, createBucket: false, external: {endpoint: s3.example.com}}}`,
			wantNot: []string{"Job/assay-system/assay-create-bucket"},
		},
		"a bundled store has its users, with or without a bucket job": {
			values: `{objectStore: {createBucket: false}, runNamespaces: [team-a]}`,
			want:   []string{"NetworkPolicy/assay-system/assay-create-bucket"},
			check: func(t *testing.T, chart *rendered) {
				job := chart.pods(t)["Job/assay-system/assay-create-bucket"].Spec.Containers[0]
				if !slices.Equal(job.Command, []string{"/assay", "ledger", "provision"}) || !slices.Contains(job.Args, "--create-bucket=false") ||
					!slices.Contains(job.Args, "--users=/etc/assay/users") {
					t.Errorf("the job is %v %v", job.Command, job.Args)
				}
			},
		},
		"an external Prometheus finds the services by their annotations": {
			values:  `{prometheus: {mode: external}, grafana: {mode: external}}`,
			wantNot: []string{"Deployment/assay-system/assay-prometheus", "ConfigMap/assay-system/assay-prometheus", "Role/assay-system/assay-prometheus"},
			check: func(t *testing.T, chart *rendered) {
				for _, name := range []string{"operator", "argo-controller", "minio"} {
					wantAnnotation(t, chart.find(t, "Service/assay-system/assay-"+name), "prometheus.io/scrape", "true")
				}
			},
		},
		"objects are kept on a claim when asked, and the claim outlives the release": {
			values: `{objectStore: {persistence: {enabled: true, size: 7Gi, storageClassName: fast}}}`,
			check: func(t *testing.T, chart *rendered) {
				object := chart.find(t, "PersistentVolumeClaim/assay-system/assay-minio")
				wantAnnotation(t, object, "helm.sh/resource-policy", "keep")
				claim := into[corev1.PersistentVolumeClaim](t, object)
				if got := claim.Spec.Resources.Requests.Storage().String(); got != "7Gi" || *claim.Spec.StorageClassName != "fast" {
					t.Errorf("claim is %+v", claim.Spec)
				}
				if got := dataVolume(t, chart).PersistentVolumeClaim; got == nil || got.ClaimName != "assay-minio" {
					t.Errorf("MinIO's data is on %+v", dataVolume(t, chart))
				}
			},
		},
		"a claim that exists is used as it is": {
			values:  `{objectStore: {persistence: {enabled: true, existingClaim: mine}}}`,
			wantNot: []string{"PersistentVolumeClaim/assay-system/assay-minio"},
			check: func(t *testing.T, chart *rendered) {
				if got := dataVolume(t, chart).PersistentVolumeClaim; got == nil || got.ClaimName != "mine" {
					t.Errorf("MinIO's data is on %+v", dataVolume(t, chart))
				}
			},
		},
		"without a claim nothing needs a StorageClass": {
			values:  `{objectStore: {persistence: {enabled: false, size: 3Gi}}}`,
			wantNot: []string{"PersistentVolumeClaim/assay-system/assay-minio"},
			check: func(t *testing.T, chart *rendered) {
				if dataVolume(t, chart).EmptyDir == nil {
					t.Errorf("MinIO's data is on %+v", dataVolume(t, chart))
				}
			},
		},
		"the version of the chart does not replace a MinIO pod that holds the ledger": {
			check: func(t *testing.T, chart *rendered) {
				set := into[appsv1.StatefulSet](t, chart.find(t, "StatefulSet/assay-system/assay-minio"))
				if len(set.Spec.Template.Labels) != len(set.Spec.Selector.MatchLabels) || len(set.Spec.Template.Annotations) > 0 {
					t.Errorf("pod has labels %v and annotations %v: more than select it", set.Spec.Template.Labels, set.Spec.Template.Annotations)
				}
			},
		},
		"an image is named by tag and digest": {
			values: `{images: {minio: {repository: mirror.example.com/minio, tag: v1, digest: "sha256:` + strings.Repeat("a", 64) + `"}}}`,
			check: func(t *testing.T, chart *rendered) {
				want := "mirror.example.com/minio:v1@sha256:" + strings.Repeat("a", 64)
				if got := chart.pods(t)["StatefulSet/assay-system/assay-minio"].Spec.Containers[0].Image; got != want {
					t.Errorf("image is %s, want %s", got, want)
				}
			},
		},
		"a full name replaces the prefix of every object but the executor's": {
			values: `{fullnameOverride: bench}`,
			want:   []string{"Deployment/assay-system/bench-operator", "Secret/default/bench-ledger", "ServiceAccount/default/assay-executor"},
			check: func(t *testing.T, chart *rendered) {
				for _, id := range chart.identities() {
					if strings.Contains(id, "/assay-") && !strings.Contains(id, "/assay-system/bench") && !strings.HasSuffix(id, "/assay-executor") {
						t.Errorf("%s is named after the chart", id)
					}
				}
			},
		},
		"a Prometheus Operator scrapes each target once": {
			values: variations["a Prometheus Operator"],
			want:   []string{"ServiceMonitor/assay-system/assay-operator", "ServiceMonitor/assay-system/assay-argo-controller", "ServiceMonitor/assay-system/assay-minio"},
			check: func(t *testing.T, chart *rendered) {
				for _, name := range []string{"operator", "argo-controller", "minio"} {
					wantAnnotation(t, chart.find(t, "Service/assay-system/assay-"+name), "prometheus.io/scrape", "")
					wantMonitored(t, chart, name, "20s")
				}
			},
		},
		"certificates of an authority are beside every copy of the credentials": {
			values: `{runNamespaces: [team-a], argo: {server: {authMode: server}}, objectStore: {mode: external, existingSecret: s3, external: {endpoint: minio.storage.svc, ca: {certificate: "-----BEGIN CERTIFICATE-----x"}}}}`,
			want:   []string{"Secret/assay-system/assay-ledger-ca", "Secret/team-a/assay-ledger-ca"},
			check: func(t *testing.T, chart *rendered) {
				if got := string(into[corev1.Secret](t,
					chart.find(t, "Secret/team-a/assay-ledger-ca")).Data["ca.crt"]); got != "-----BEGIN CERTIFICATE-----x" {
					t.Errorf("it holds %q", got)
				}
				wantArgs(t, chart, "Deployment/assay-system/assay-operator", "--ledger-ca-secret=assay-ledger-ca", "--ledger-ca-key=ca.crt",
					"--ledger-ca-file=/etc/assay/ledger-ca/ca.crt")
				wantFile(t, chart, "Deployment/assay-system/assay-operator", "/etc/assay/ledger-ca", "assay-ledger-ca",
					corev1.KeyToPath{Key: "ca.crt", Path: "ca.crt"})
				wantFile(t, chart, "Job/assay-system/assay-create-bucket", "/etc/assay/ledger-ca", "assay-ledger-ca",
					corev1.KeyToPath{Key: "ca.crt", Path: "ca.crt"})
				if got := argoConfig(t, chart).ArtifactRepository.S3.CASecret; got.Name != "assay-ledger-ca" || got.Key != "ca.crt" {
					t.Errorf("Argo trusts %+v", got)
				}
				server := chart.find(t, "Role/team-a/assay-argo-server-runs")
				if rules := rulesOf(t, server); !slices.Equal(rules[0].ResourceNames, []string{"s3", "assay-ledger-ca"}) {
					t.Errorf("Argo's server reads %v", rules[0].ResourceNames)
				}
			},
		},
		"certificates may be in a Secret of another name and key": {
			values:  `{objectStore: {mode: external, existingSecret: s3, external: {endpoint: minio.storage.svc, ca: {existingSecret: roots, key: tls-ca.pem}}}, grafana: {mode: external}}`,
			wantNot: []string{"Secret/default/", "Secret/assay-system/assay-minio", "Secret/assay-system/assay-ledger"},
			check: func(t *testing.T, chart *rendered) {
				wantArgs(t, chart, "Deployment/assay-system/assay-operator", "--ledger-ca-secret=roots", "--ledger-ca-key=tls-ca.pem")
				wantFile(t, chart, "Deployment/assay-system/assay-operator", "/etc/assay/ledger-ca", "roots",
					corev1.KeyToPath{Key: "tls-ca.pem", Path: "ca.crt"})
			},
		},
		"the operator reads credentials as files, which follow the Secret": {
			values: `{objectStore: {mode: external, existingSecret: s3, accessKeyKey: id, secretKeyKey: key, external: {endpoint: s3.example.com}}}`,
			check: func(t *testing.T, chart *rendered) {
				wantArgs(t, chart, "Deployment/assay-system/assay-operator", "--ledger-credentials-dir=/etc/assay/ledger")
				wantFile(t, chart, "Deployment/assay-system/assay-operator", "/etc/assay/ledger", "s3", corev1.KeyToPath{Key: "id", Path: "accessKey"},
					corev1.KeyToPath{Key: "key", Path: "secretKey"})
			},
		},
		"with a workload identity pods have no Secret": {
			values:  variations["a workload identity"],
			wantNot: []string{"Secret/default/", "Secret/assay-system/assay-minio", "Secret/assay-system/assay-ledger"},
			check: func(t *testing.T, chart *rendered) {
				const url = "--ledger=s3://assay?endpoint=https://s3.eu-west-1.amazonaws.com&region=eu-west-1&pathStyle=false"
				wantArgs(t, chart, "Deployment/assay-system/assay-operator", url, "--ledger-secret=")
				wantAnnotation(t, chart.find(t, "ServiceAccount/assay-system/assay-operator"), "eks.amazonaws.com/role-arn",
					"arn:aws:iam::1:role/assay")
				wantAnnotation(t, chart.find(t, "ServiceAccount/default/assay-executor"), "eks.amazonaws.com/role-arn", "arn:aws:iam::1:role/runs")
				if got := chart.pods(t)["Job/assay-system/assay-create-bucket"].Spec.ServiceAccountName; got != "assay-operator" {
					t.Errorf("the job has the identity %q", got)
				}
				for id, pod := range chart.pods(t) {
					if secrets := secretsOf(pod); len(secrets) > 0 {
						t.Errorf("%s reads %v", id, secrets)
					}
				}
				if s3 := argoConfig(t, chart).ArtifactRepository.S3; !s3.UseSDKCreds || s3.AccessKeySecret.Name != "" {
					t.Errorf("Argo uses %+v", s3)
				}
			},
		},
		"an external Argo is given rights where it lacks them": {
			values: variations["an external Argo that needs rights"],
			want:   []string{"Role/team-a/assay-argo-controller-runs", "RoleBinding/team-b/assay-argo-controller-runs"},
			check: func(t *testing.T, chart *rendered) {
				given := rulesOf(t, chart.find(t, "Role/team-a/assay-argo-controller-runs"))
				bundled := rulesOf(t, render(t, `{runNamespaces: [team-a]}`).find(t, "Role/team-a/assay-argo-controller-runs"))
				if !reflect.DeepEqual(given, bundled) {
					t.Errorf("it has %+v, and a bundled one has %+v", given, bundled)
				}
			},
		},
		"several replicas survive a drain on different nodes": {
			values: variations["replicated"],
			want:   []string{"PodDisruptionBudget/assay-system/assay-operator", "PodDisruptionBudget/assay-system/assay-argo-controller", "PodDisruptionBudget/assay-system/assay-argo-server"},
			check: func(t *testing.T, chart *rendered) {
				for _, budget := range chart.of("PodDisruptionBudget") {
					pdb := into[policyv1.PodDisruptionBudget](t, budget)
					pod := chart.pods(t)["Deployment/assay-system/"+pdb.Name]
					if !labels.SelectorFromSet(pdb.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) ||
						pdb.Spec.MaxUnavailable.IntValue() != 1 {
						t.Errorf("%s is %+v", pdb.Name, pdb.Spec)
					}
					if spread := pod.Spec.TopologySpreadConstraints; len(spread) != 1 || !reflect.DeepEqual(spread[0].LabelSelector, pdb.Spec.Selector) {
						t.Errorf("%s: spread is %+v", pdb.Name, spread)
					}
				}
			},
		},
		"one replica needs no budget, which would only hold up drains": {
			wantNot: []string{"PodDisruptionBudget/"},
		},
		"extra labels and annotations are on all objects that may be replaced": {
			values: variations["replicated"],
			check: func(t *testing.T, chart *rendered) {
				for _, object := range chart.objects {
					if object.GetLabels()["team"] != "perf" {
						t.Errorf("%s has no label team", identity(object))
					}
				}
				for id, pod := range chart.pods(t) {
					if got := pod.Annotations["sidecar.istio.io/inject"]; (got == "false") == strings.HasPrefix(id, "StatefulSet/") {
						t.Errorf("%s has annotations %v", id, pod.Annotations)
					}
				}
			},
		},
		"namespaces that the chart makes refuse pods that are not restricted": {
			values: `{runNamespaces: [team-a], createRunNamespaces: true}`,
			check: func(t *testing.T, chart *rendered) {
				namespace := chart.find(t, "Namespace/team-a")
				if got := namespace.GetLabels()["pod-security.kubernetes.io/enforce"]; got != "restricted" {
					t.Errorf("it enforces %q", got)
				}
			},
		},
		"the operator knows the parts of the release": {
			values: `{runNamespaces: [team-a, team-b], argo: {executor: {cpu: 70m, memory: 90Mi}}}`,
			check: func(t *testing.T, chart *rendered) {
				wantArgs(t, chart, "Deployment/assay-system/assay-operator",
					"--ledger=s3://assay?endpoint=https://assay-minio.assay-system.svc:9000&region=us-east-1",
					"--ledger-secret=assay-ledger", "--namespaces=team-a,team-b", "--argo-instance-id=assay",
					"--executor-service-account=assay-executor", "--executor-cpu=70m", "--executor-memory=90Mi", "--leader-elect")
			},
		},
		"operator, bucket job and Argo use the same external store": {
			values: `{objectStore: {mode: external, existingSecret: s3, bucket: ledger, secretKeyKey: secret, external: {endpoint: s3.example.com}}}`,
			check: func(t *testing.T, chart *rendered) {
				const url = "--ledger=s3://ledger?endpoint=https://s3.example.com&region=us-east-1"
				wantArgs(t, chart, "Deployment/assay-system/assay-operator", url, "--ledger-secret=s3", "--ledger-secret-secret-key=secret")
				wantArgs(t, chart, "Job/assay-system/assay-create-bucket", url)
				if s3 := argoConfig(t, chart).ArtifactRepository.S3; s3.Endpoint != "s3.example.com" || s3.Insecure ||
					s3.SecretKeySecret.Key != "secret" {
					t.Errorf("Argo's artifact repository is %+v", s3)
				}
			},
		},
		"Argo takes only workflows with its instance ID, and any if it has none": {
			values: `{argo: {instanceID: ""}}`,
			check: func(t *testing.T, chart *rendered) {
				if got := argoConfig(t, chart).InstanceID; got != "" {
					t.Errorf("instanceID is %q", got)
				}
				if got := argoConfig(t, render(t, "")).InstanceID; got != "assay" {
					t.Errorf("by default instanceID is %q", got)
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			chart := render(t, tc.values)
			ids := chart.identities()
			for _, want := range tc.want {
				if !slices.Contains(ids, want) {
					t.Errorf("no %s among\n%s", want, strings.Join(ids, "\n"))
				}
			}
			for _, id := range ids {
				for _, prefix := range tc.wantNot {
					if strings.HasPrefix(id, prefix) {
						t.Errorf("%s is there", id)
					}
				}
			}
			if tc.check != nil {
				tc.check(t, chart)
			}
		})
	}
}

func TestChart_ObjectsArePlacedLabelledAndUnique(t *testing.T) {
	t.Parallel()
	clusterScoped := []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding"}
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, object := range render(t, values).objects {
				id := identity(object)
				if seen[id] {
					t.Errorf("%s is there twice", id)
				}
				seen[id] = true
				if scoped := slices.Contains(clusterScoped, object.GetKind()); scoped == (object.GetNamespace() != "") {
					t.Errorf("%s has namespace %q", id, object.GetNamespace())
				}
				for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component",
					"app.kubernetes.io/managed-by", "helm.sh/chart"} {
					if object.GetLabels()[label] == "" {
						t.Errorf("%s has no label %s", id, label)
					}
				}
			}
		})
	}
}

func TestChart_ServicesSelectOneKindOfPod(t *testing.T) {
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			chart := render(t, values)
			for _, object := range chart.of("Service") {
				service := into[corev1.Service](t, object)
				var reached []string
				for id, pod := range chart.pods(t) {
					if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
						continue
					}
					reached = append(reached, id)
					for _, port := range service.Spec.Ports {
						if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }) {
							t.Errorf("%s: port %s is not one of %s", identity(object), port.TargetPort.StrVal, id)
						}
					}
				}
				if len(reached) != 1 {
					t.Errorf("%s reaches %v, want one", identity(object), reached)
				}
			}
		})
	}
}

// The node of the demo has 1.8 CPUs to give, of which one is measured on and 0.1 go to the containers beside the workload.
func TestChart_FitsBesideABlockOnTwoCPUs(t *testing.T) {
	cpu, memory := resource.MustParse("600m"), resource.MustParse("1536Mi")
	var cpus, bytes resource.Quantity
	for id, pod := range render(t, "").pods(t) {
		for _, container := range containers(pod) {
			requests := container.Resources.Requests
			if requests.Cpu().IsZero() || requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: container %s lacks a request or a memory limit: %+v", id, container.Name, container.Resources)
			}
			cpus.Add(*requests.Cpu())
			bytes.Add(*requests.Memory())
		}
	}
	if cpus.Cmp(cpu) > 0 || bytes.Cmp(memory) > 0 {
		t.Errorf("the release requests %s CPUs and %s of memory; the demo has room for %s and %s", &cpus, &bytes, &cpu, &memory)
	}
}

func TestChart_PodsHaveStartupProbes(t *testing.T) {
	for id, pod := range render(t, "").pods(t) {
		for _, container := range pod.Spec.Containers {
			probe := container.StartupProbe
			if strings.HasPrefix(id, "Job/") || strings.HasPrefix(id, "CronJob/") {
				continue
			}
			if probe == nil || probe.PeriodSeconds > 2 || probe.InitialDelaySeconds > 2 {
				t.Errorf("%s: startup probe of %s is %+v: install would wait for it", id, container.Name, probe)
			}
		}
	}
}

func TestChart_ImagesComeFromOneTable(t *testing.T) {
	values := `{images: {pullPolicy: Never`
	for _, name := range []string{
		"operator", "runner", "scan", "batch", "insert", "argoController", "argoExecutor", "argoServer", "minio", "prometheus", "grafana",
	} {
		values += `, ` + name + `: {repository: mirror/` + name + `, tag: x}`
	}
	chart := render(t, values+`}}`)
	for id, pod := range chart.pods(t) {
		for _, container := range containers(pod) {
			if !strings.HasPrefix(container.Image, "mirror/") || container.ImagePullPolicy != corev1.PullNever {
				t.Errorf("%s: container %s has image %s, pulled %s", id, container.Name, container.Image, container.ImagePullPolicy)
			}
			for _, arg := range container.Args {
				if strings.Contains(arg, "quay.io/") || strings.Contains(arg, "assay.dev/assay-") {
					t.Errorf("%s: argument %s names an image that values do not", id, arg)
				}
			}
		}
	}
	for id, want := range map[string][]string{
		"Deployment/assay-system/assay-argo-controller": {"--executor-image=mirror/argoExecutor:x", "--executor-image-pull-policy=Never"},
		"Deployment/assay-system/assay-operator":        {"--operator-image=mirror/operator:x", "--runner-image=mirror/runner:x", "--image-pull-policy=Never"},
	} {
		wantArgs(t, chart, id, want...)
	}
	for _, template := range chart.of("BenchmarkTemplate") {
		if image := templateImage(t, template); !strings.HasPrefix(image, "mirror/") {
			t.Errorf("%s: image %s is one that values do not name", identity(template), image)
		}
	}
}

func templateImage(t *testing.T, template unstructured.Unstructured) string {
	t.Helper()
	image, ok, err := unstructured.NestedString(template.Object, "spec", "image")
	if err != nil || !ok {
		t.Fatalf("%s has no image: %v", identity(template), err)
	}
	return image
}

// hosts are the registries that a global registry replaces, in all objects.
var hosts = regexp.MustCompile(`(assay\.dev/assay-|quay\.io/|docker\.io/|registry\.k8s\.io/)[a-z]`)

func TestChart_GlobalRegistryReplacesEveryHost(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	version := loadChart(t).Metadata.AppVersion
	for registry, prefix := range map[string]string{"ghcr.io/acme": "ghcr.io/acme/", "localhost:5000/": "localhost:5000/"} {
		chart := render(t, `{global: {imageRegistry: "`+registry+`", imagePullSecrets: [{name: pull}]}, benchmarkGate: {enabled: true},
			images: {batch: {digest: "`+digest+`"}}}`)
		for _, object := range chart.objects {
			raw, err := json.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			if got := hosts.Find(raw); got != nil && object.GetKind() != "CustomResourceDefinition" {
				t.Errorf("%s: %s: %s… is not from the global registry", registry, identity(object), got)
			}
		}
		for name, want := range map[string]string{
			"pir-scan": "assay-scan:" + version, "curp-ho": "assay-batch@" + digest, "mork-insert": "assay-insert:" + version,
		} {
			if got := templateImage(t, chart.find(t, "BenchmarkTemplate/default/"+name)); got != prefix+want {
				t.Errorf("%s: template %s has image %s, want %s", registry, name, got, prefix+want)
			}
		}
		wantArgs(t, chart, "Deployment/assay-system/assay-operator", "--runner-image="+prefix+"assay-runner:"+version)
		wantArgs(t, chart, "Deployment/assay-system/assay-argo-controller", "--executor-image="+prefix+"argoproj/argoexec:v4.0.2")
		for id, pod := range chart.pods(t) {
			if len(pod.Spec.ImagePullSecrets) != 1 || pod.Spec.ImagePullSecrets[0].Name != "pull" {
				t.Errorf("%s: pulls with %v", id, pod.Spec.ImagePullSecrets)
			}
		}
		account := into[corev1.ServiceAccount](t, chart.find(t, "ServiceAccount/default/assay-executor"))
		if len(account.ImagePullSecrets) != 1 || account.ImagePullSecrets[0].Name != "pull" {
			t.Errorf("pods of runs pull with %v", account.ImagePullSecrets)
		}
	}
}

func TestChart_NotesListTheNextCommands(t *testing.T) {
	tests := map[string]struct {
		values        string
		want, wantNot []string
	}{
		"everything bundled": {
			want: []string{"assay doctor --namespace default --system-namespace assay-system", "kubectl apply --namespace default -f workflows/studies/pir-batch-scan/run.yaml", "service/assay-argo-server 2746", "service/assay-prometheus 9090", "service/assay-minio 9000 9001",
				`'{{index .data "accessKey" | base64decode}} {{index .data "secretKey" | base64decode}}{{"\n"}}'`,
				"default StorageClass", "objectStore.persistence.enabled=false", "kubectl create token"},
			wantNot: []string{"WARNING"},
		},
		"nothing is kept": {
			values: variations["nothing is kept"],
			want:   []string{"WARNING: the ledger is in an emptyDir"},
		},
		"everything external": {
			values:  variations["everything external"],
			want:    []string{"kubectl get benchmarkruns"},
			wantNot: []string{"port-forward", "WARNING"},
		},
		"a store over TLS with existing Secrets": {
			values: `{runNamespaces: [team-a, team-b], objectStore: {mode: external, existingSecret: s3, external: {endpoint: s3.example.com, ca: {existingSecret: roots}}}}`,
			want:   []string{"Secret s3", "Secret roots", "assay-system, team-a, team-b"},
		},
		"several run namespaces": {
			values: variations["several run namespaces"],
			want:   []string{"default, team-a, team-b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			notes := render(t, tc.values).notes
			for _, want := range tc.want {
				if !strings.Contains(notes, want) {
					t.Errorf("no %q in\n%s", want, notes)
				}
			}
			for _, wantNot := range tc.wantNot {
				if strings.Contains(notes, wantNot) {
					t.Errorf("%q is in\n%s", wantNot, notes)
				}
			}
		})
	}
}

func wantArgs(t *testing.T, chart *rendered, id string, want ...string) {
	t.Helper()
	container := chart.pods(t)[id].Spec.Containers[0]
	for _, arg := range want {
		if !slices.Contains(container.Args, arg) {
			t.Errorf("%s: no %s in\n%s", id, arg, strings.Join(container.Args, "\n"))
		}
	}
}

func wantAnnotation(t *testing.T, object unstructured.Unstructured, key, want string) {
	t.Helper()
	if got := object.GetAnnotations()[key]; got != want {
		t.Errorf("%s: annotation %s is %q, want %q", identity(object), key, got, want)
	}
}

// wantFile checks that the first container has a Secret's keys as files in a folder.
func wantFile(t *testing.T, chart *rendered, id, folder, secret string, want ...corev1.KeyToPath) {
	t.Helper()
	pod := chart.pods(t)[id].Spec
	for _, mount := range pod.Containers[0].VolumeMounts {
		for _, volume := range pod.Volumes {
			if mount.MountPath == folder && volume.Name == mount.Name && volume.Secret != nil && volume.Secret.SecretName == secret &&
				slices.Equal(volume.Secret.Items, want) && mount.ReadOnly {
				return
			}
		}
	}
	t.Errorf("%s has not %v of Secret %s in %s: %+v, %+v", id, want, secret, folder, pod.Containers[0].VolumeMounts, pod.Volumes)
}

// wantMonitored checks that a ServiceMonitor selects the component's Service and names a port that it has.
func wantMonitored(t *testing.T, chart *rendered, component, interval string) {
	t.Helper()
	monitor := chart.find(t, "ServiceMonitor/assay-system/assay-"+component)
	selector, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	if err != nil {
		t.Fatal(err)
	}
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("%s: endpoints are %v: %v", component, endpoints, err)
	}
	endpoint := endpoints[0].(map[string]any)
	service := into[corev1.Service](t, chart.find(t, "Service/assay-system/assay-"+component))
	if !labels.SelectorFromSet(selector).Matches(labels.Set(service.Labels)) {
		t.Errorf("%s: selector %v does not match %v", component, selector, service.Labels)
	}
	if monitor.GetLabels()["release"] != "monitoring" || endpoint["interval"] != interval {
		t.Errorf("%s: labels %v, endpoint %v", component, monitor.GetLabels(), endpoint)
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == endpoint["port"] }) {
		t.Errorf("%s: no port %s at %+v", component, endpoint["port"], service.Spec.Ports)
	}
}

func dataVolume(t *testing.T, chart *rendered) corev1.Volume {
	t.Helper()
	for _, volume := range chart.pods(t)["StatefulSet/assay-system/assay-minio"].Spec.Volumes {
		if volume.Name == "data" {
			return volume
		}
	}
	t.Fatal("MinIO has no volume data")
	return corev1.Volume{}
}

// argoConfiguration is the part of Argo's configuration that matters here.
type argoConfiguration struct {
	InstanceID         string
	Executor           corev1.Container
	ArtifactRepository struct {
		S3 struct {
			Endpoint, Bucket, Region, KeyFormat string
			Insecure                            bool
			UseSDKCreds                         bool
			AccessKeySecret, SecretKeySecret    struct{ Name, Key string }
			CASecret                            struct{ Name, Key string }
		}
	}
	MetricsConfig   struct{ Secure *bool }
	RetentionPolicy struct{ Completed, Failed, Errored int }
	Links           []struct{ Name, Scope, URL string }
	Columns         []struct{ Name, Type, Key string }
}

func argoConfig(t *testing.T, chart *rendered) argoConfiguration {
	t.Helper()
	config := into[corev1.ConfigMap](t, chart.find(t, "ConfigMap/assay-system/assay-argo-controller"))
	var out argoConfiguration
	// Argo refuses a configuration with an unknown key, and so does this.
	if err := yaml.UnmarshalStrict([]byte(config.Data["config"]), &out); err != nil {
		t.Fatalf("Argo's configuration: %v\n%s", err, config.Data["config"])
	}
	return out
}

func TestChart_OperatorQueriesTheNamedRegistries(t *testing.T) {
	for values, want := range map[string]string{
		``: "", `{operator: {registries: [ghcr.io, "registry.lan:5000"]}}`: "--registries=ghcr.io,registry.lan:5000",
	} {
		pod := render(t, values).pods(t)["Deployment/assay-system/assay-operator"]
		got := ""
		for _, arg := range pod.Spec.Containers[0].Args {
			if strings.HasPrefix(arg, "--registries=") {
				got = arg
			}
		}
		if got != want {
			t.Errorf("%s: the operator has %q, want %q", values, got, want)
		}
	}
}
