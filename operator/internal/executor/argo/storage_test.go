package argo

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/fixture"
)

// Every volume and container of a pod, including Argo's, has a limit of storage, and the sum of the volumes' limits is within that of the
// containers'.
func TestStorage_EveryVolumeAndContainerIsLimited(t *testing.T) {
	for name, edit := range map[string]func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec){
		"the simplest run": func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec) {},
		"CPUs that are shared": func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Placement.Exclusive = assayv1alpha1.ExclusiveNone
		},
		"a scratch folder on a disk": func(_ *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
			template.Scratch = &assayv1alpha1.Scratch{Medium: assayv1alpha1.ScratchDisk}
		},
		"a large scratch folder in memory": func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Placement.Memory = resource.MustParse("8Gi")
			template.Scratch = &assayv1alpha1.Scratch{Medium: assayv1alpha1.ScratchMemory, Size: ptr.To(resource.MustParse("6Gi"))}
		},
		"arms with images": func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			for i := range spec.Arms {
				spec.Arms[i].Image = "lab/" + spec.Arms[i].Name + ":1"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			exp, err := fixture.ScanExperiment(edit)
			if err != nil {
				t.Fatal(err)
			}
			lanes := []design.Lane{{Node: "node-a", Token: 1}}
			wave, err := design.BuildWave(exp, 0, 0, 2, lanes)
			if err != nil {
				t.Fatal(err)
			}
			for _, bucket := range []Bucket{{Name: "assay"}, {Name: "assay", Secret: "s", CASecret: "ca", CAKey: "ca.crt"}} {
				config := testConfig(t)
				config.Bucket = bucket
				built, err := Build(config, exp, wave, lanes, nil, 2*time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				again, err := BuildAnalysis(config, exp, 0, 1)
				if err != nil {
					t.Fatal(err)
				}
				checkStorage(t, built)
				checkStorage(t, again)
			}
		})
	}
}

func checkStorage(t *testing.T, built *Workflow) {
	t.Helper()
	for _, template := range built.Spec.Templates {
		if template.Container == nil {
			continue
		}
		volumes := slices.Concat(built.Spec.Volumes, template.Volumes)
		running, limits := []corev1.Container{*template.Container}, map[string]corev1.ResourceRequirements{}
		for _, container := range template.InitContainers {
			limits[container.Name] = container.Resources
		}
		for _, text := range []string{built.Spec.PodSpecPatch, template.PodSpecPatch} {
			var patch corev1.PodSpec
			if err := json.Unmarshal([]byte(text), &patch); err != nil {
				t.Fatal(err)
			}
			volumes = append(volumes, patch.Volumes...)
			for _, container := range slices.Concat(patch.InitContainers, patch.Containers) {
				limits[container.Name] = container.Resources
			}
		}
		running = append(running, corev1.Container{Name: "wait", Resources: limits["wait"]})
		limits["main"] = template.Container.Resources
		for _, container := range []string{"init", "wait", "main"} {
			if _, ok := limits[container]; !ok {
				t.Errorf("template %s does not limit container %s", template.Name, container)
			}
		}
		for container, resources := range limits {
			for what, list := range map[string]corev1.ResourceList{"limit": resources.Limits, "request": resources.Requests} {
				if quantity := list[corev1.ResourceEphemeralStorage]; quantity.Sign() <= 0 {
					t.Errorf("container %s of template %s has no %s of ephemeral-storage", container, template.Name, what)
				}
			}
		}
		var room, needed int64
		for _, container := range running {
			quantity := container.Resources.Limits[corev1.ResourceEphemeralStorage]
			room += quantity.Value()
		}
		seen := map[string]bool{}
		for _, volume := range volumes {
			seen[volume.Name] = true
			switch {
			case volume.EmptyDir != nil && volume.EmptyDir.SizeLimit == nil:
				t.Errorf("volume %s of template %s has no sizeLimit", volume.Name, template.Name)
			case volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory:
				if limit := template.Container.Resources.Limits[corev1.ResourceMemory]; volume.EmptyDir.SizeLimit.Cmp(limit) > 0 {
					t.Errorf("volume %s of template %s has %s in memory, of which its container has %s",
						volume.Name, template.Name, volume.EmptyDir.SizeLimit, limit.String())
				}
			case volume.EmptyDir != nil:
				needed += volume.EmptyDir.SizeLimit.Value()
			case volume.ConfigMap == nil && volume.Secret == nil:
				t.Errorf("volume %s of template %s is of a kind without bounds", volume.Name, template.Name)
			}
		}
		if !seen["var-run-argo"] || !seen["tmp-dir-argo"] {
			t.Errorf("template %s leaves Argo's volumes without bounds", template.Name)
		}
		if needed > room {
			t.Errorf("the volumes of template %s have %d bytes and its containers %d, so that the pod is evicted before a volume is full",
				template.Name, needed, room)
		}
	}
}
