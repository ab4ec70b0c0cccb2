package chart

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// variations are values under which the rules for every object are checked.
var variations = map[string]string{
	"defaults":               ``,
	"several run namespaces": `{runNamespaces: [default, team-a, team-b], createRunNamespaces: true}`,
	"everything external":    `{argo: {mode: external}, prometheus: {mode: external}, minio: {mode: external, existingSecret: s3, external: {endpoint: s3.example.com}}}`,
	"persistent":             `{minio: {persistence: {enabled: true}}}`,
	"scheduled":              `{scheduling: {nodeSelector: {pool: infra}, tolerations: [{key: infra, operator: Exists}], priorityClassName: high}, images: {pullSecrets: [{name: registry}]}}`,
	"runs beside the chart":  `{runNamespaces: [assay-system], fullnameOverride: bench, operator: {replicas: 2, extraArgs: [--image-pull-grace=5m]}}`,
}

func TestLint(t *testing.T) {
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

func TestObjects(t *testing.T) {
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
				"StatefulSet/assay-system/assay-minio", "Service/assay-system/assay-minio", "Secret/assay-system/assay-ledger",
				"Deployment/assay-system/assay-prometheus", "Service/assay-system/assay-prometheus",
				"Job/assay-system/assay-create-bucket",
				"CustomResourceDefinition/workflows.argoproj.io",
			},
			wantNot: []string{"PersistentVolumeClaim/", "Namespace/", "ClusterRole/assay-argo"},
		},
		"each run namespace gets templates, an identity and credentials": {
			values: `{runNamespaces: [team-a, team-b]}`,
			want: []string{
				"BenchmarkTemplate/team-a/pir-scan", "ServiceAccount/team-a/assay-executor", "Role/team-a/assay-executor", "RoleBinding/team-a/assay-executor", "Secret/team-a/assay-ledger",
				"BenchmarkTemplate/team-b/pir-scan", "ServiceAccount/team-b/assay-executor", "Role/team-b/assay-executor", "RoleBinding/team-b/assay-executor", "Secret/team-b/assay-ledger",
			},
			wantNot: []string{"Namespace/", "BenchmarkTemplate/default/", "Secret/default/"},
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
			values:  `{minio: {mode: external, existingSecret: s3, bucket: ledger, region: eu-west-1, accessKeyKey: id, external: {endpoint: "s3.example.com:8443"}}}`,
			want:    []string{"Job/assay-system/assay-create-bucket"},
			wantNot: []string{"Secret/", "StatefulSet/", "Service/assay-system/assay-minio"},
			check: func(t *testing.T, chart *rendered) {
				s3 := argoConfig(t, chart).ArtifactRepository.S3
				if s3.Endpoint != "s3.example.com:8443" || s3.Insecure || s3.Bucket != "ledger" || s3.Region != "eu-west-1" || s3.AccessKeySecret.Name != "s3" || s3.AccessKeySecret.Key != "id" {
					t.Errorf("Argo's artifact repository is %+v", s3)
				}
			},
		},
		"the bucket can be left to whoever owns the store": {
			values:  `{minio: {createBucket: false}}`,
			wantNot: []string{"Job/"},
		},
		"an external Prometheus finds the services by their annotations": {
			values:  `{prometheus: {mode: external}}`,
			wantNot: []string{"Deployment/assay-system/assay-prometheus", "ConfigMap/assay-system/assay-prometheus", "Role/assay-system/assay-prometheus"},
			check: func(t *testing.T, chart *rendered) {
				for _, name := range []string{"operator", "argo-controller", "minio"} {
					wantAnnotation(t, chart.find(t, "Service/assay-system/assay-"+name), "prometheus.io/scrape", "true")
				}
			},
		},
		"objects are kept on a claim when asked, and the claim outlives the release": {
			values: `{minio: {persistence: {enabled: true, size: 7Gi, storageClassName: fast}}}`,
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
			values:  `{minio: {persistence: {enabled: true, existingClaim: mine}}}`,
			wantNot: []string{"PersistentVolumeClaim/"},
			check: func(t *testing.T, chart *rendered) {
				if got := dataVolume(t, chart).PersistentVolumeClaim; got == nil || got.ClaimName != "mine" {
					t.Errorf("MinIO's data is on %+v", dataVolume(t, chart))
				}
			},
		},
		"without a claim nothing needs a StorageClass": {
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
		"the operator is told what the release consists of": {
			values: `{runNamespaces: [team-a, team-b], argo: {executor: {cpu: 70m, memory: 90Mi}}}`,
			check: func(t *testing.T, chart *rendered) {
				wantArgs(t, chart, "Deployment/assay-system/assay-operator",
					"--ledger=s3://assay?endpoint=http://assay-minio.assay-system.svc:9000&region=us-east-1",
					"--ledger-secret=assay-ledger", "--namespaces=team-a,team-b", "--argo-instance-id=assay",
					"--executor-service-account=assay-executor", "--executor-cpu=70m", "--executor-memory=90Mi", "--leader-elect")
			},
		},
		"operator, bucket job and Argo use the same external store": {
			values: `{minio: {mode: external, existingSecret: s3, bucket: ledger, secretKeyKey: secret, external: {endpoint: s3.example.com}}}`,
			check: func(t *testing.T, chart *rendered) {
				const url = "--ledger=s3://ledger?endpoint=https://s3.example.com&region=us-east-1"
				wantArgs(t, chart, "Deployment/assay-system/assay-operator", url, "--ledger-secret=s3", "--ledger-secret-secret-key=secret")
				wantArgs(t, chart, "Job/assay-system/assay-create-bucket", url)
				if s3 := argoConfig(t, chart).ArtifactRepository.S3; s3.Endpoint != "s3.example.com" || s3.Insecure || s3.SecretKeySecret.Key != "secret" {
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

func TestEveryObjectIsPlacedLabelledAndUnique(t *testing.T) {
	clusterScoped := []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"}
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
				for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
					if object.GetLabels()[label] == "" {
						t.Errorf("%s has no label %s", id, label)
					}
				}
			}
		})
	}
}

func TestServicesReachOneKindOfPod(t *testing.T) {
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
func TestReleaseFitsBesideABlockOnTwoCPUs(t *testing.T) {
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

func TestPodsStartAsSoonAsTheyServe(t *testing.T) {
	for id, pod := range render(t, "").pods(t) {
		for _, container := range pod.Spec.Containers {
			probe := container.StartupProbe
			if strings.HasPrefix(id, "Job/") {
				continue
			}
			if probe == nil || probe.PeriodSeconds > 2 || probe.InitialDelaySeconds > 2 {
				t.Errorf("%s: startup probe of %s is %+v: install would wait for it", id, container.Name, probe)
			}
		}
	}
}

func TestImagesComeFromOnePlace(t *testing.T) {
	values := `{images: {pullPolicy: Never`
	for _, name := range []string{"operator", "runner", "argoController", "argoExecutor", "argoServer", "minio", "prometheus"} {
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
}

func TestNotesSayWhatToTypeNext(t *testing.T) {
	tests := map[string]struct {
		values        string
		want, wantNot []string
	}{
		"everything bundled": {
			want: []string{"kubectl apply --namespace default -f workflows/studies/pir-batch-scan/run.yaml", "service/assay-argo-server 2746", "service/assay-prometheus 9090", "service/assay-minio 9000 9001",
				`'{{.data.accessKey | base64decode}} {{.data.secretKey | base64decode}}{{"\n"}}'`, "WARNING: the ledger is in an emptyDir"},
		},
		"persistent": {
			values:  variations["persistent"],
			wantNot: []string{"WARNING"},
		},
		"everything external": {
			values:  variations["everything external"],
			want:    []string{"kubectl get benchmarkruns"},
			wantNot: []string{"port-forward", "WARNING"},
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
			AccessKeySecret, SecretKeySecret    struct{ Name, Key string }
		}
	}
	MetricsConfig   struct{ Secure *bool }
	RetentionPolicy struct{ Completed, Failed, Errored int }
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
