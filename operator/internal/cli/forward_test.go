package cli

import (
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A pod that the Service does not select could impersonate the store.
func TestForward_SelectsPodsOfService(t *testing.T) {
	pod := func(name string) client.Object {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name, Labels: map[string]string{"app": name}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "s3", ContainerPort: 9001}}}}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
	}
	service := func(selector map[string]string, port corev1.ServicePort) client.Object {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "minio"},
			Spec:       corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{port}},
		}
	}
	ours := map[string]string{"app": "minio"}
	plain, named := corev1.ServicePort{Port: 9000}, corev1.ServicePort{Port: 9000, TargetPort: intstr.FromString("s3")}
	for name, tc := range map[string]struct {
		endpoint string
		service  client.Object
		pod      string
		port     int32
		says     string
	}{
		"a pod that it selects": {"http://minio.storage.svc:9000", service(ours, plain), "minio", 9000, ""},
		"a port by its name":    {"http://minio.storage.svc:9000", service(ours, named), "minio", 9001, ""},
		"the usual port":        {"http://minio.storage.svc", service(ours, corev1.ServicePort{Port: 80}), "minio", 80, ""},
		"the usual port of TLS": {"https://minio.storage.svc", service(ours, corev1.ServicePort{Port: 443}), "minio", 443, ""},
		"no unrelated pod":      {"http://minio.storage.svc:9000", service(nil, plain), "", 0, "has no selector"},
		"no port of another":    {"http://minio.storage.svc:9001", service(ours, plain), "", 0, "no port 9001"},
	} {
		endpoint, err := url.Parse(tc.endpoint)
		if err != nil {
			t.Fatal(err)
		}
		cluster := fakeCluster(t, interceptor.Funcs{}, pod("another"), pod("minio"), tc.service)
		got, port, err := podBehind(t.Context(), cluster, types.NamespacedName{Namespace: "storage", Name: "minio"}, portOf(endpoint))
		switch {
		case tc.says != "":
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v, want %q", name, err, tc.says)
			}
		case err != nil || got.Name != tc.pod || port != tc.port:
			t.Errorf("%s: pod %v, port %d, %v", name, got, port, err)
		}
	}
}
