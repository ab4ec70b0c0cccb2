package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isClusterService reports whether host has the form service.namespace.svc, with or without the cluster domain.
func isClusterService(host string) bool {
	parts := strings.Split(host, ".")
	return len(parts) >= 3 && parts[2] == "svc"
}

// forwardService forwards a free local port to a pod behind the service until the context ends, and returns the port.
func forwardService(ctx context.Context, cluster *Cluster, endpoint *url.URL) (port int, err error) {
	parts := strings.Split(endpoint.Hostname(), ".")
	name := types.NamespacedName{Namespace: parts[1], Name: parts[0]}
	pod, target, err := podBehind(ctx, cluster, name, portOf(endpoint))
	if err != nil {
		return 0, err
	}
	return ForwardPod(ctx, cluster, pod, target)
}

// portOf returns the port of a URL, or the default port of its scheme.
func portOf(endpoint *url.URL) string {
	return cmp.Or(endpoint.Port(), map[string]string{"http": "80", "https": "443"}[endpoint.Scheme])
}

// ForwardPod forwards a free local port to a port of a pod until the context ends, and returns the local port.
func ForwardPod(ctx context.Context, cluster *Cluster, pod *corev1.Pod, target int32) (port int, err error) {
	transport, upgrader, err := spdy.RoundTripperFor(cluster.Config)
	if err != nil {
		return 0, err
	}
	server, err := url.Parse(cluster.Config.Host)
	if err != nil {
		return 0, err
	}
	server = server.JoinPath("api", "v1", "namespaces", pod.Namespace, "pods", pod.Name, "portforward")
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, server)

	ready, failed := make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", target)}, ctx.Done(), ready,
		io.Discard, io.Discard)
	if err != nil {
		return 0, err
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return 0, fmt.Errorf("port-forward to pod %s/%s: %w", pod.Namespace, pod.Name, cmp.Or(err, ctx.Err()))
	case <-time.After(30 * time.Second):
		return 0, fmt.Errorf("port-forward to pod %s/%s: not ready after 30s", pod.Namespace, pod.Name)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return 0, err
	}
	return int(ports[0].Local), nil
}

// podBehind returns a ready pod that the service selects, and the container port for the given service port.
func podBehind(ctx context.Context, cluster *Cluster, name types.NamespacedName, port string) (*corev1.Pod, int32, error) {
	var service corev1.Service
	if err := cluster.Get(ctx, name, &service); err != nil {
		return nil, 0, fmt.Errorf("read Service %s: %w", name, err)
	}
	if len(service.Spec.Selector) == 0 {
		// An empty selector would match all pods, and an unrelated pod could impersonate the store.
		return nil, 0,
			fmt.Errorf("service %s has no selector, so that no pod can be forwarded; name the ledger by a URL with an endpoint that this "+
				"machine reaches", name)
	}
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace(name.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return nil, 0, fmt.Errorf("pods of Service %s: %w", name, err)
	}
	pod := FirstReadyPod(pods.Items)
	if pod == nil {
		return nil, 0, fmt.Errorf("no ready pod behind Service %s: see kubectl get pods -n %s", name, name.Namespace)
	}
	for _, servicePort := range service.Spec.Ports {
		if strconv.Itoa(int(servicePort.Port)) == port {
			return pod, containerPort(pod, &servicePort), nil
		}
	}
	return nil, 0, fmt.Errorf("service %s has no port %s", name, port)
}

func containerPort(pod *corev1.Pod, port *corev1.ServicePort) int32 {
	for _, container := range pod.Spec.Containers {
		for _, candidate := range container.Ports {
			if candidate.Name != "" && candidate.Name == port.TargetPort.StrVal {
				return candidate.ContainerPort
			}
		}
	}
	return cmp.Or(port.TargetPort.IntVal, port.Port)
}

// FirstReadyPod returns the first ready pod, or nil.
func FirstReadyPod(pods []corev1.Pod) *corev1.Pod {
	for i := range pods {
		for _, condition := range pods[i].Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return &pods[i]
			}
		}
	}
	return nil
}
