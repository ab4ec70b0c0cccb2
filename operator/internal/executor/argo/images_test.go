package argo

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
)

func TestWithImages_InitContainersCopyPrograms(t *testing.T) {
	exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms[1].Image, spec.Arms[2].Image = "lab/scan:2", "lab/scan@sha256:"+strings.Repeat("0", 64)
		template.Files = []string{"/usr/local/bin", "/opt/tables"}
	})
	lanes := []design.Lane{{Node: "node-a"}}
	wave, err := design.BuildWave(exp, 0, 0, 1, lanes)
	if err != nil {
		t.Fatal(err)
	}
	built := build(t, exp, wave, lanes)
	block := built.Spec.Templates[slices.IndexFunc(built.Spec.Templates, func(t Template) bool { return t.Name == blockTemplate })]
	var order []string
	for _, container := range block.InitContainers {
		order = append(order, container.Name+" "+container.Image)
		if !guaranteed(container.Resources) {
			t.Errorf("container %s is not Guaranteed: %v", container.Name, container.Resources)
		}
		if !hides(container, "/var/run/secrets/kubernetes.io/serviceaccount") {
			t.Errorf("container %s sees the ServiceAccount's token", container.Name)
		}
		if container.ImagePullPolicy != "" && container.Name != "install" && container.Name != "keeper" {
			t.Errorf("container %s has pull policy %s; the block's own has none, and the kubelet decides by the tag", container.Name,
				container.ImagePullPolicy)
		}
	}
	want := []string{
		"install assay.dev/assay-runner:0.1.0", "image-0 assay.dev/pir-scan:0.1.0", "image-1 lab/scan:2", "image-2 " + exp.Arms[2].Image,
		"keeper assay.dev/assay-operator:0.1.0",
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("init containers, the runner's first and then those of the arms (-want +got):\n%s", diff)
	}
	for i, image := range wave.Images {
		mounts := func(c corev1.Container) bool {
			return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == image.Root })
		}
		if !mounts(block.InitContainers[i+1]) || !mounts(*block.Container) {
			t.Errorf("%s is not mounted where image %s is copied and used", image.Root, image.Reference)
		}
	}
	raw, err := yaml.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "/opt/tables") {
		t.Error("the Workflow has names of files, which are user input")
	}
}

// Containers that execute programs of an arm's image do not have the cloud identity of the pod.
func TestWithImages_ContainersHaveNoCloudIdentity(t *testing.T) {
	exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms[1].Image = "lab/scan:2"
	})
	config := testConfig(t)
	config.Bucket.Secret = ""
	block := withImages(block(config, exp, 0), design.Images(exp))
	if got, want := block.Metadata.Annotations[skipContainers], "install,main,image-0,image-1"; got != want {
		t.Errorf("containers without the pod's identity: %q, want %q", got, want)
	}
}
