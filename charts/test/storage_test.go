package chart

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A pod that fills its node's disk takes others with it.
func TestStorage_PodsAreLimited(t *testing.T) {
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

// Pod templates within other objects follow the same rules.
func TestStorage_CreatedPodsAreLimited(t *testing.T) {
	checked := 0
	var walk func(id string, value any)
	walk = func(id string, value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				walk(id, item)
			}
		case map[string]any:
			if empty, ok := value["emptyDir"].(map[string]any); ok {
				if checked++; empty["sizeLimit"] == nil {
					t.Errorf("%s: volume %v may fill the node's disk", id, value["name"])
				}
			}
			_, image := value["image"].(string)
			_, command := value["command"].([]any)
			if image && command {
				checked++
				if limit, _, _ := unstructured.NestedString(value, "resources", "limits", "ephemeral-storage"); limit == "" {
					t.Errorf("%s: container %v may fill the node's disk", id, value["name"])
				}
			}
			for _, item := range value {
				walk(id, item)
			}
		}
	}
	for _, object := range render(t, `{benchmarkGate: {enabled: true}}`).of("WorkflowTemplate") {
		walk(identity(object), object.Object)
	}
	if checked != 2 {
		t.Errorf("%d volumes and containers were looked at, want 2", checked)
	}
}
