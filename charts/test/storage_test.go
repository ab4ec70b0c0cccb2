package chart

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A pod that fills its node's disk takes others with it.
func TestNoPodOfTheReleaseFillsADisk(t *testing.T) {
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			for id, pod := range render(t, values).pods(t) {
				room := resource.Quantity{}
				for _, container := range containers(pod) {
					request, limit := container.Resources.Requests.StorageEphemeral(), container.Resources.Limits.StorageEphemeral()
					if request.IsZero() || limit.IsZero() || request.Cmp(*limit) > 0 {
						t.Errorf("%s: container %s asks for %s of the node's disk, and may fill %s", id, container.Name, request, limit)
					}
					room.Add(*limit)
				}
				for _, volume := range pod.Spec.Volumes {
					if volume.EmptyDir == nil {
						continue
					}
					if size := volume.EmptyDir.SizeLimit; size == nil || size.IsZero() {
						t.Errorf("%s: volume %s may fill the node's disk", id, volume.Name)
					} else if size.Cmp(room) > 0 {
						t.Errorf("%s: volume %s may hold %s, and the pod is evicted at %s", id, volume.Name, size, &room)
					}
				}
			}
		})
	}
}
