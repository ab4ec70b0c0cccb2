package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The StatefulSet that starts the replicas and the run that calls them are separate files and must name the same pods.
func TestStudyCURP_ReplicaAddressesMatchRun(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	study := filepath.Join(root, "workflows", "studies", "curp-batch-delay")
	raw, err := os.ReadFile(filepath.Join(study, "pods", "replicas.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(raw), "\n---\n")
	if len(documents) != 2 {
		t.Fatalf("%d documents, want a Service and a StatefulSet", len(documents))
	}
	var service corev1.Service
	var replicas appsv1.StatefulSet
	for i, into := range []any{&service, &replicas} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			t.Fatal(err)
		}
	}

	port := service.Spec.Ports[0].Port
	var addresses []string
	for i := range *replicas.Spec.Replicas {
		addresses = append(addresses, fmt.Sprintf("%s-%d.%s:%d", replicas.Name, i, replicas.Spec.ServiceName, port))
	}
	container := replicas.Spec.Template.Spec.Containers[0]
	where := "--replicas=" + strings.Join(addresses, ",")
	for _, argument := range []string{where, fmt.Sprintf("--listen=0.0.0.0:%d", port), "--id=$(REPLICA)"} {
		if !slices.Contains(container.Args, argument) {
			t.Errorf("the replicas are started with %v, want %s", container.Args, argument)
		}
	}
	set, err := Read(filepath.Join(study, "pods.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := set.Runs[0].Spec.Parameters["replicas"], strings.Join(addresses, ","); got != want {
		t.Errorf("trials call %s, and the replicas are at %s", got, want)
	}
	headless := service.Spec.ClusterIP == corev1.ClusterIPNone
	if service.Name != replicas.Spec.ServiceName || !headless || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("a replica's host name resolves only through the headless service %q with publishNotReadyAddresses: got %+v",
			replicas.Spec.ServiceName, service.Spec)
	}
	for key, value := range service.Spec.Selector {
		if replicas.Spec.Template.Labels[key] != value || replicas.Spec.Selector.MatchLabels[key] != value {
			t.Errorf("the service selects %s=%s, which the pods do not have", key, value)
		}
	}
	// A kubelet with the static policy assigns exclusive CPUs only to containers with whole CPUs as both request and limit.
	cpu := container.Resources.Limits.Cpu()
	if cpu.MilliValue()%1000 != 0 || cpu.IsZero() || !cpu.Equal(*container.Resources.Requests.Cpu()) ||
		!container.Resources.Limits.Memory().Equal(*container.Resources.Requests.Memory()) {
		t.Errorf("a replica has no exclusive CPU with %+v", container.Resources)
	}
}
