package argo

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/record"
)

// skipContainers is the annotation that excludes containers from a pod's cloud identity.
const skipContainers = "eks.amazonaws.com/skip-containers"

// withImages adds an init container per image of an arm to the template of a block. It copies the files that the wave names into a folder
// of the pod before the block begins. It executes the runner, which the first init container has installed, so that an image needs no
// shell. The names of files are in the wave and never in the Workflow.
//
// Volumes of type image are not used, because the container runtime decides whether programs in them can be executed.
func withImages(block Template, images []record.Image) Template {
	addStored(&block.Container.Resources, int64(len(images))*imageRoom)
	for i, image := range images {
		volume := fmt.Sprintf("%s%d", executor.ImageContainerPrefix, i)
		mount := corev1.VolumeMount{Name: volume, MountPath: image.Root}
		block.Volumes = append(block.Volumes, emptyDir(volume, imageRoom))
		block.InitContainers = append(block.InitContainers, corev1.Container{
			Name: volume, Image: image.Reference,
			Command: []string{
				binFolder + "/assay-runner", "copy", "--wave", planFolder + "/" + executor.WaveFile, "--image", image.Reference,
				// The record of the copy needs room too.
				"--most-bytes", strconv.Itoa(imageRoom - emptyRoom),
			},
			Resources:       stored(block.InitContainers[0].Resources, imageRoom),
			VolumeMounts:    []corev1.VolumeMount{binMount, planMount, mount, noTokenMount},
			SecurityContext: containerSecurity(true),
		})
		// Read-only, so that a trial cannot modify another arm's programs.
		mount.ReadOnly = true
		block.Container.VolumeMounts = append(block.Container.VolumeMounts, mount)
		if names, ok := block.Metadata.Annotations[skipContainers]; ok {
			block.Metadata.Annotations[skipContainers] = names + "," + volume
		}
	}
	return block
}
