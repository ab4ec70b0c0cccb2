package argo

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
)

func keeperOf(t *testing.T, block Template) corev1.Container {
	t.Helper()
	i := slices.IndexFunc(block.InitContainers, func(c corev1.Container) bool { return c.Name == "keeper" })
	if i < 0 {
		t.Fatal("the block has no keeper")
	}
	return block.InitContainers[i]
}

// mountsKeys reports whether a container mounts a volume with a Secret.
func mountsKeys(block Template, container corev1.Container) bool {
	return slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
		return slices.ContainsFunc(block.Volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name && volume.Secret != nil })
	})
}

func TestWithKeeper_TrialsHaveNoAccessToAttempts(t *testing.T) {
	exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms[1].Image = "lab/scan:2"
	})
	config := testConfig(t)
	block := withKeeper(withImages(block(config, exp, 0), design.Images(exp)), config, exp)
	keeper := keeperOf(t, block)
	for name, tc := range map[string]struct{ ok bool }{
		"it lives as long as the block, and is ended after it": {ptr.Deref(keeper.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways},
		"it is the operator's own image":                       {keeper.Image == config.OperatorImage},
		"its user is not that of trials":                       {ptr.Deref(keeper.SecurityContext.RunAsUser, user) != user && ptr.Deref(keeper.SecurityContext.RunAsUser, 0) != 0},
		"it has the store's credentials":                       {mountsKeys(block, keeper)},
		"it takes a key that is replaced":                      {!slices.ContainsFunc(keeper.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil })},
		"it can say which Secret is wrong":                     {strings.Contains(strings.Join(keeper.Command, " "), "--credentials-dir /etc/assay/keys --secret "+exp.Run.Namespace+"/"+config.Bucket.Secret)},
		"its executions are told apart by the pod's uid":       {strings.Contains(strings.Join(keeper.Command, " "), "--executor {{pod.name}}_$(ASSAY_POD_UID) ")},
		"its root is read-only":                                {ptr.Deref(keeper.SecurityContext.ReadOnlyRootFilesystem, false)},
		"the block sets no variables":                          {len(block.Container.Env) == 0},
		"the runner uses it":                                   {strings.Contains(strings.Join(block.Container.Command, " "), " --keeper unix:/assay-keeper/socket --alone ")},
		"its grace period lets it write its attempts":          {strings.Contains(block.PodSpecPatch, `"terminationGracePeriodSeconds":120`)},
	} {
		if !tc.ok {
			t.Errorf("%s: not so in %+v", name, keeper)
		}
	}
	if mountsKeys(block, *block.Container) {
		t.Error("trials have the store's credentials")
	}
	writable := []string{"/tmp"}
	for _, mount := range block.Container.VolumeMounts {
		if !mount.ReadOnly && !slices.Contains(writable, mount.MountPath) {
			t.Errorf("trials can write to %s", mount.MountPath)
		}
	}
	for _, container := range block.InitContainers {
		mounts := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == keeperFolder })
		if mounts != (container.Name == "keeper") {
			t.Errorf("container %s mounts the keeper's socket: %v", container.Name, mounts)
		}
		if mountsKeys(block, container) != (container.Name == "keeper") {
			t.Errorf("container %s has the store's credentials: %v", container.Name, !mounts)
		}
		if container.Name != "keeper" && len(container.Env) > 0 {
			t.Errorf("container %s has variables", container.Name)
		}
	}
}

func TestOverhead_SumsExecutorAndKeeper(t *testing.T) {
	got := testConfig(t).Overhead()
	if cpu, memory := got.Cpu().String(), got.Memory().String(); cpu != "100m" || memory != "256Mi" {
		t.Errorf("%s and %s, want the sum of two containers", cpu, memory)
	}
}
