package argo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/fixture"
)

func TestScratch_SizeAndMediumFollowFromTemplateAndMemory(t *testing.T) {
	in := func(medium assayv1alpha1.ScratchMedium, size string) *assayv1alpha1.Scratch {
		out := &assayv1alpha1.Scratch{Medium: medium}
		if size != "" {
			out.Size = ptr.To(resource.MustParse(size))
		}
		return out
	}
	memory, disk := assayv1alpha1.ScratchMemory, assayv1alpha1.ScratchDisk
	for name, tc := range map[string]struct {
		memory string
		asked  *assayv1alpha1.Scratch
		medium assayv1alpha1.ScratchMedium
		bytes  int64
	}{
		"a template without scratch":             {"2Gi", nil, memory, 512 << 20},
		"a block with little memory":             {"128Mi", nil, memory, 64 << 20},
		"memory of the default size":             {"256Mi", in(memory, ""), memory, 128 << 20},
		"memory of a size":                       {"2Gi", in(memory, "1Gi"), memory, 1 << 30},
		"memory of more than the block has":      {"1Gi", in(memory, "4Gi"), memory, 1 << 30},
		"a disk of the default size":             {"128Mi", in(disk, ""), disk, 4 << 30},
		"a disk of a size above the memory":      {"128Mi", in(disk, "8Gi"), disk, 8 << 30},
		"a size of zero, which is the default's": {"128Mi", in(disk, "0"), disk, 4 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Placement.Memory, template.Scratch = resource.MustParse(tc.memory), tc.asked
			})
			if err != nil {
				t.Fatal(err)
			}
			room := scratchOf(exp)
			if room.medium != tc.medium || room.bytes != tc.bytes {
				t.Errorf("%s of %d bytes, want %s of %d", room.medium, room.bytes, tc.medium, tc.bytes)
			}
			want := fmt.Sprintf("--scratch /tmp --scratch-bytes %d --scratch-medium %s", tc.bytes, strings.ToLower(string(tc.medium)))
			if got := strings.Join(block(testConfig(t), exp, 0).Container.Command, " "); !strings.HasSuffix(got, want) {
				t.Errorf("the runner gets %q, want %q at the end", got, want)
			}
		})
	}
}

// A trial can write to every mount of its container that is not read-only, unless the runner confines it, and to the termination log, which
// is a file of the host that no field of a pod can bound.
func TestScratch_TrialsCanWriteToNoOtherVolume(t *testing.T) {
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		for i := range spec.Arms {
			spec.Arms[i].Image = "lab/" + spec.Arms[i].Name + ":1"
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t)
	built := withKeeper(withImages(block(config, exp, 0), design.Images(exp)), config, exp)
	main := built.Container
	if !ptr.Deref(main.SecurityContext.ReadOnlyRootFilesystem, false) {
		t.Error("trials can write to the layer of their container")
	}
	var writable []string
	for _, mount := range main.VolumeMounts {
		if !mount.ReadOnly {
			writable = append(writable, mount.MountPath)
		}
	}
	if !slices.Equal(writable, []string{"/tmp"}) || !slices.Contains(main.Command, "--scratch") {
		t.Errorf("trials can write to %v, and the runner has the arguments %v", writable, main.Command)
	}
	at := slices.IndexFunc(built.Volumes, func(volume corev1.Volume) bool { return volume.Name == scratchVolume })
	if built.Volumes[at].EmptyDir.Medium != corev1.StorageMediumMemory {
		t.Error("the scratch folder is on a disk, which the template did not ask for")
	}
}
