package argo

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/golden"
)

func testConfig(t *testing.T) Config {
	t.Helper()
	bucket, err := ParseBucket("s3://assay?endpoint=http://assay-minio.assay.svc:9000")
	if err != nil {
		t.Fatal(err)
	}
	bucket.Secret, bucket.AccessKey, bucket.SecretKey = "assay-ledger", "accessKey", "secretKey"
	return Config{
		Bucket: bucket, OperatorImage: "assay.dev/assay-operator:0.1.0", RunnerImage: "assay.dev/assay-runner:0.1.0",
		PullPolicy: corev1.PullIfNotPresent, ServiceAccount: "assay-executor",
		ExecutorCPU: resource.MustParse("50m"), ExecutorMemory: resource.MustParse("128Mi"), InstanceID: "assay",
	}
}

func testExperiment(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)) *experiment.Experiment {
	t.Helper()
	exp, err := fixture.ScanExperiment(edit)
	if err != nil {
		t.Fatal(err)
	}
	return exp
}

func TestBuild_WorkflowsMatchGoldenFiles(t *testing.T) {
	exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Tolerations = []corev1.Toleration{{Key: "assay.dev/dedicated", Operator: corev1.TolerationOpExists}}
	})
	lanes := []design.Lane{{Node: "node-a"}, {Node: "node-b.rack7"}}
	wave, err := design.BuildWave(exp, 0, 0, 5, lanes)
	if err != nil {
		t.Fatal(err)
	}
	again, err := BuildAnalysis(testConfig(t), exp, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, built := range map[string]*Workflow{"wave": build(t, exp, wave, lanes), "analysis": again} {
		t.Run(name, func(t *testing.T) {
			raw, err := yaml.Marshal(built)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+".golden.yaml"), string(raw))
		})
	}
}

// A container that the operator took for another program's would keep its pod for ever, or end it too early.
func TestBuild_EveryContainerIsKnownAsAssays(t *testing.T) {
	exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms[0].Image, spec.Arms[1].Image = "lab/scan:1", "lab/scan:2"
	})
	wave, err := design.BuildWave(exp, 0, 0, 5, []design.Lane{{Node: "node-a"}})
	if err != nil {
		t.Fatal(err)
	}
	built := build(t, exp, wave, []design.Lane{{Node: "node-a"}})
	var patched corev1.PodSpec
	if err := yaml.Unmarshal([]byte(built.Spec.PodSpecPatch), &patched); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(patched.InitContainers, patched.Containers)
	for _, template := range built.Spec.Templates {
		all = append(all, template.InitContainers...)
	}
	if len(all) < 5 {
		t.Fatalf("%d containers, want those of Argo, the runner's, the keeper's and one per image", len(all))
	}
	for _, container := range all {
		if executor.IsForeign(container.Name) {
			t.Errorf("container %s counts as another program's", container.Name)
		}
	}
	for _, name := range []string{"mesh-proxy", "image-", "image-of-another", "image--1", "istio-proxy"} {
		if !executor.IsForeign(name) {
			t.Errorf("container %s counts as Assay's", name)
		}
	}
}

func build(t *testing.T, exp *experiment.Experiment, wave *record.Wave, lanes []design.Lane) *Workflow {
	t.Helper()
	out, err := Build(testConfig(t), exp, wave, lanes, nil, 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBlock_ExclusiveContainersAreGuaranteed(t *testing.T) {
	exp := testExperiment(t, nil)
	template := withKeeper(block(testConfig(t), exp, 0), testConfig(t), exp)
	for _, container := range append(template.InitContainers, *template.Container) {
		if !guaranteed(container.Resources) {
			t.Errorf("container %q is not Guaranteed: %v", container.Name, container.Resources)
		}
		if !hides(container, "/var/run/secrets/kubernetes.io/serviceaccount") {
			t.Errorf("container %q sees the ServiceAccount's token", container.Name)
		}
		if container.Name != "keeper" && len(container.Env)+len(container.EnvFrom) > 0 {
			t.Errorf("container %q of a block has variables: %v", container.Name, container.Env)
		}
	}
}

// Init containers have the resources of the block, which adds nothing to the pod's requests, because Kubernetes takes the maximum of the
// sum of the containers and each init container.
func TestPreparing_RequestsAtMostThoseOfTheBlock(t *testing.T) {
	cases := map[string]struct {
		memory string
		want   string
	}{
		"the memory of the block":        {"1Gi", "1Gi"},
		"at least the executor's memory": {"64Mi", "128Mi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t)
			exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Placement.CPUs, spec.Placement.Memory = 3, resource.MustParse(tc.memory)
			})
			template := block(config, exp, 0)
			var patched corev1.PodSpec
			if err := json.Unmarshal([]byte(template.PodSpecPatch), &patched); err != nil {
				t.Fatal(err)
			}
			want := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse(tc.want)}
			for _, container := range append(patched.InitContainers, template.InitContainers...) {
				if diff := cmp.Diff(want, deciding(container.Resources.Requests)); diff != "" || !guaranteed(container.Resources) {
					t.Errorf("container %s (-want +got):\n%s", container.Name, diff)
				}
			}
			together := template.Container.Resources.Requests.Memory().DeepCopy()
			together.Add(config.ExecutorMemory)
			if memory := want[corev1.ResourceMemory]; memory.Cmp(together) > 0 {
				t.Errorf("%s is more than the %s that the pod needs anyway", memory.String(), together.String())
			}
		})
	}
}

// deciding returns the resources that decide whether a pod is Guaranteed.
func deciding(list corev1.ResourceList) corev1.ResourceList {
	out := list.DeepCopy()
	delete(out, corev1.ResourceEphemeralStorage)
	return out
}

func guaranteed(resources corev1.ResourceRequirements) bool {
	return cmp.Equal(deciding(resources.Requests), deciding(resources.Limits)) && len(deciding(resources.Limits)) == 2
}

func hides(container corev1.Container, path string) bool {
	for _, mount := range container.VolumeMounts {
		if mount.MountPath == path && mount.Name == noToken.Name {
			return true
		}
	}
	return false
}

func TestBlock_SharedCPUsHaveNoLimit(t *testing.T) {
	exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveNone
		spec.Retry.Limit = ptr.To[int32](0)
	})
	template := block(testConfig(t), exp, 0)
	if _, limited := template.Container.Resources.Limits[corev1.ResourceCPU]; limited {
		t.Errorf("the block has a CPU limit: %v", template.Container.Resources.Limits)
	}
}

func TestParseBucket(t *testing.T) {
	cases := map[string]struct {
		url  string
		want Bucket
		back string
		err  string
	}{
		"an endpoint without TLS": {
			url:  "s3://assay?endpoint=http://minio.assay.svc:9000",
			want: Bucket{Name: "assay", Query: "endpoint=http://minio.assay.svc:9000&region=us-east-1"},
			back: "s3://assay/runs/a?endpoint=http://minio.assay.svc:9000&region=us-east-1",
		},
		"a prefix and AWS itself": {
			url:  "s3://lab/team/assay/?region=eu-central-1",
			want: Bucket{Name: "lab", Prefix: "team/assay", Query: "endpoint=https://s3.eu-central-1.amazonaws.com&region=eu-central-1"},
			back: "s3://lab/team/assay/runs/a?endpoint=https://s3.eu-central-1.amazonaws.com&region=eu-central-1",
		},
		"a folder is rejected": {url: "file:///tmp/x", err: "blocks in a cluster need an object store"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseBucket(tc.url)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("bucket (-want +got):\n%s", diff)
			}
			if back := got.URL("runs/a"); back != tc.back {
				t.Errorf("URL %s, want %s", back, tc.back)
			}
		})
	}
}

// Blocks and analyses of a run tolerate the taint of the run's exclusive nodes and that of no other run.
func TestTolerations_ExclusiveNodeToleratesOnlyItsOwnTaint(t *testing.T) {
	for exclusive, want := range map[assayv1alpha1.Exclusivity]bool{
		assayv1alpha1.ExclusiveNode: true, assayv1alpha1.ExclusiveCPUs: false, assayv1alpha1.ExclusiveNone: false,
	} {
		t.Run(string(exclusive), func(t *testing.T) {
			exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Placement.Exclusive = exclusive
			})
			mine := corev1.Taint{Key: lease.TaintKey, Value: exp.Run.UID, Effect: corev1.TaintEffectNoSchedule}
			others := corev1.Taint{Key: lease.TaintKey, Value: "another", Effect: corev1.TaintEffectNoSchedule}
			for name, template := range map[string]Template{"block": block(testConfig(t), exp, 0), "analysis": analysis(testConfig(t), exp, 0)} {
				tolerates := func(taint corev1.Taint) bool {
					return slices.ContainsFunc(template.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(&taint) })
				}
				if tolerates(mine) != want || tolerates(others) {
					t.Errorf("%s tolerates its run's taint: %v, another's: %v; want %v, false", name, tolerates(mine), tolerates(others), want)
				}
			}
		})
	}
}

func TestAccess_CASecretIsMountedForKeeperAndAnalysis(t *testing.T) {
	config := testConfig(t)
	bucket, err := ParseBucket("s3://assay?endpoint=https://minio.storage.svc:9000&region=lab&pathStyle=true")
	if err != nil {
		t.Fatal(err)
	}
	bucket.Secret, bucket.AccessKey, bucket.SecretKey, bucket.CASecret, bucket.CAKey = "s3", "id", "key", "assay-ledger-ca", "root.pem"
	config.Bucket = bucket
	exp := testExperiment(t, nil)

	blocks, analyses := withKeeper(block(config, exp, 0), config, exp), analysis(config, exp, 0)
	for name, tc := range map[string]struct {
		container corev1.Container
		volumes   []corev1.Volume
	}{
		"the keeper":   {keeperOf(t, blocks), blocks.Volumes},
		"the analysis": {*analyses.Container, analyses.Volumes},
	} {
		if url := tc.container.Command[3]; !strings.HasSuffix(url, "?endpoint=https://minio.storage.svc:9000&region=lab&pathStyle=true") {
			t.Errorf("%s uses %s", name, url)
		}
		if !slices.Contains(tc.container.Env, corev1.EnvVar{Name: "AWS_CA_BUNDLE", Value: "/etc/assay/ca/ca.crt"}) {
			t.Errorf("%s has %+v", name, tc.container.Env)
		}
		mounted := slices.ContainsFunc(tc.container.VolumeMounts,
			func(m corev1.VolumeMount) bool { return m.Name == "assay-ca" && m.MountPath == "/etc/assay/ca" })
		held := slices.ContainsFunc(tc.volumes, func(v corev1.Volume) bool {
			return v.Name == "assay-ca" && v.Secret != nil && v.Secret.SecretName == "assay-ledger-ca" &&
				v.Secret.Items[0] == corev1.KeyToPath{Key: "root.pem", Path: "ca.crt"}
		})
		if !mounted || !held {
			t.Errorf("%s mounts %+v of %+v", name, tc.container.VolumeMounts, tc.volumes)
		}
	}
}

func TestAccess_WithoutSecretOnlyTheKeeperHasThePodsIdentity(t *testing.T) {
	config := testConfig(t)
	config.Bucket.Secret = ""
	exp := testExperiment(t, nil)
	blocks := withKeeper(block(config, exp, 0), config, exp)
	if env := keeperOf(t, blocks).Env; len(env) != 1 || env[0].Name != podUID {
		t.Errorf("the keeper has %+v", env)
	}
	if got := blocks.Metadata.Annotations["eks.amazonaws.com/skip-containers"]; got != "install,main" {
		t.Errorf("containers without the identity: %q", got)
	}
	template := analysis(config, exp, 0)
	if env := template.Container.Env; len(env) != 1 || env[0].Name != "GOMEMLIMIT" || len(template.Metadata.Annotations) > 0 {
		t.Errorf("the analysis has %+v, %+v", template.Container.Env, template.Metadata.Annotations)
	}
}

// Argo ends a container by executing a program in it, and by default one in /var/run/argo, where all containers of a pod can write.
func TestKillAnnotation_TrialsCannotReplaceTheProgram(t *testing.T) {
	exp := testExperiment(t, nil)
	lanes := []design.Lane{{Node: "node-a"}}
	wave, err := design.BuildWave(exp, 0, 0, 1, lanes)
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t)
	for _, secret := range []string{config.Bucket.Secret, ""} {
		config.Bucket.Secret = secret
		built, err := Build(config, exp, wave, lanes, nil, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		annotations := maps.Clone(built.Spec.PodMetadata.Annotations)
		block := built.Spec.Templates[slices.IndexFunc(built.Spec.Templates, func(of Template) bool { return of.Name == blockTemplate })]
		maps.Copy(annotations, block.Metadata.Annotations)
		readOnly := func(program string) bool {
			return slices.ContainsFunc(block.Container.VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.ReadOnly && strings.HasPrefix(program, m.MountPath+"/")
			})
		}
		for container, reached := range map[string]func(program string) bool{
			executor.MainContainer: readOnly,
			// In the path of Argo's own image.
			"wait": func(program string) bool { return !strings.Contains(program, "/") },
		} {
			var command []string
			text := annotations["workflows.argoproj.io/kill-cmd-"+container]
			err := json.Unmarshal([]byte(text), &command)
			if err != nil || len(command) != 4 || !slices.Equal(command[1:], []string{"kill", "%d", "1"}) {
				t.Errorf("%s is ended by %q: %v", container, text, err)
			} else if !reached(command[0]) {
				t.Errorf("%s is ended by %s, which trials can write", container, command[0])
			}
		}
	}
}

func TestSample_HasTheFieldsOfAWave(t *testing.T) {
	sample, err := Sample(testConfig(t), "team-a")
	if err != nil {
		t.Fatal(err)
	}
	if sample.Namespace != "team-a" || sample.Spec.OnExit != analysisTemplate || len(sample.Spec.Templates) != 3 {
		t.Errorf("the sample is %+v", sample)
	}
}
