package enforcer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"assay.dev/assay/cluster/cmd/network-policies/internal/plugin"
)

// kernel remembers the last rules it took, and takes none while it has an error.
type kernel struct {
	mutex sync.Mutex
	rules string
	err   error
}

func (k *kernel) apply(_ context.Context, text string) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.err == nil {
		k.rules = text
	}
	return k.err
}

func (k *kernel) has(text string) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return strings.Contains(k.rules, text)
}

func (k *kernel) fail(err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.err = err
}

func pod(name, uid, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "runs", Name: name, UID: types.UID(uid), Labels: map[string]string{"app": "run"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address},
	}
}

func closed() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "runs", Name: "closed"},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}},
	}
}

func start(t *testing.T, k *kernel, objects ...runtime.Object) (*Enforcer, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(objects...)
	e, err := New(client, k.apply)
	if err != nil {
		t.Fatal(err)
	}
	go e.Run(t.Context(), func(error) {})
	return e, client
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func TestEnforcer_RulesFollowPoliciesAndPods(t *testing.T) {
	k := &kernel{}
	e, client := start(t, k, pod("a", "1", "10.0.0.5"))
	eventually(t, "healthy", func() bool { return e.Healthy() == nil })
	if k.has("drop") {
		t.Errorf("no pod is isolated, but got rules:\n%s", k.rules)
	}
	if _, err := client.NetworkingV1().NetworkPolicies("runs").Create(t.Context(), closed(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is isolated", func() bool { return k.has("10.0.0.5 : jump egress_10.0.0.5") })
	ended := pod("a", "1", "10.0.0.5")
	ended.Status.Phase = corev1.PodSucceeded
	if _, err := client.CoreV1().Pods("runs").UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the address of a finished pod must be free", func() bool { return !k.has("10.0.0.5") })
}

// The pod network asks through the real plugin, over the real socket.
func TestEnforcer_PodStartsAfterItsRules(t *testing.T) {
	k := &kernel{}
	// Its predecessor of the same name had another address, and the one it was given was another's until now.
	e, _ := start(t, k, closed(), pod("a", "2", ""), pod("b", "3", "10.0.0.6"))
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(e.ServeExpect)}}
	server.Start()
	defer server.Close()

	stdin := `{"type": "network-policies", "socket": "` + socket +
		`", "prevResult": {"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.0.0.6/24"}]}}`
	add := func() ([]byte, error) {
		return plugin.Run(t.Context(), "ADD", "IgnoreUnknown=1;K8S_POD_NAMESPACE=runs;K8S_POD_NAME=a;K8S_POD_UID=2", strings.NewReader(stdin))
	}
	out, err := add()
	if err != nil || !strings.Contains(string(out), `"10.0.0.6/24"`) {
		t.Fatalf("want the result of the previous plugin, got %s, %v", out, err)
	}
	if !k.has("10.0.0.6 : jump egress_10.0.0.6") {
		t.Errorf("the pod starts without its rules:\n%s", k.rules)
	}

	k.fail(errors.New("the kernel refuses"))
	stdin = strings.Replace(stdin, "10.0.0.6", "10.0.0.7", 1)
	if _, err := add(); err == nil || !strings.Contains(err.Error(), "the kernel refuses") {
		t.Errorf("a pod whose rules the kernel does not take must not start; got %v", err)
	}
	response := httptest.NewRecorder()
	e.ServeHealth(response, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if response.Code != http.StatusServiceUnavailable || !strings.Contains(response.Body.String(), "not enforced: the kernel refuses") {
		t.Errorf("health: %d %s", response.Code, response.Body)
	}
}

func TestEnforcer_NoPodStartsBeforeThePolicies(t *testing.T) {
	k := &kernel{}
	e, err := New(fake.NewClientset(pod("a", "1", "")), k.apply)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := e.Expect(ctx, "runs", "a", "1", netip.MustParseAddr("10.0.0.5")); !errors.Is(err, errStarting) {
		t.Errorf("want that it is starting, got %v", err)
	}
}
