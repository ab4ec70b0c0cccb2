// Package enforcer keeps the kernel's rules in step with the API's policies, pods and namespaces.
package enforcer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"

	"assay.dev/assay/cluster/cmd/network-policies/internal/rules"
)

// Enforcer applies rules. Its methods may be called side by side.
type Enforcer struct {
	// Apply gives rules to the kernel, all or none.
	Apply func(ctx context.Context, text string) error

	factory    informers.SharedInformerFactory
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
	policies   networkinglisters.NetworkPolicyLister
	changed    chan struct{}
	// listed is closed when all policies, namespaces and pods are known for the first time.
	listed chan struct{}

	mutex sync.Mutex
	// addresses are those that the pod network has just given, before kubelet updates the API.
	addresses map[types.UID]netip.Addr
	applied   string
	state     error
}

var errStarting = errors.New("no rules yet: waiting for the API server")

// New watches nothing yet.
func New(client kubernetes.Interface, apply func(context.Context, string) error) (*Enforcer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	e := &Enforcer{
		Apply: apply, factory: factory, state: errStarting,
		changed: make(chan struct{}, 1), listed: make(chan struct{}), addresses: map[types.UID]netip.Addr{},
		pods:       factory.Core().V1().Pods().Lister(),
		namespaces: factory.Core().V1().Namespaces().Lister(),
		policies:   factory.Networking().V1().NetworkPolicies().Lister(),
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Pods().Informer(), factory.Core().V1().Namespaces().Informer(),
		factory.Networking().V1().NetworkPolicies().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { e.notice() }, UpdateFunc: func(any, any) { e.notice() }, DeleteFunc: func(any) { e.notice() },
		}); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// slim drops the fields of a pod that no rule depends on.
func slim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
		accessor.SetAnnotations(nil)
	}
	if pod, ok := object.(*corev1.Pod); ok {
		spec := corev1.PodSpec{HostNetwork: pod.Spec.HostNetwork}
		for _, container := range pod.Spec.Containers {
			spec.Containers = append(spec.Containers, corev1.Container{Ports: container.Ports})
		}
		for _, container := range pod.Spec.InitContainers {
			spec.InitContainers = append(spec.InitContainers, corev1.Container{Ports: container.Ports})
		}
		pod.Spec, pod.Status = spec, corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP}
	}
	return object, nil
}

func (e *Enforcer) notice() {
	select {
	case e.changed <- struct{}{}:
	default: // a sync is already pending
	}
}

// Run keeps the rules current until ctx ends.
func (e *Enforcer) Run(ctx context.Context, report func(error)) {
	e.factory.Start(ctx.Done())
	for kind, synced := range e.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			report(fmt.Errorf("%v: never listed", kind))
			return
		}
	}
	close(e.listed)
	for {
		var again <-chan time.Time
		if err := e.sync(ctx); err != nil {
			report(err)
			again = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.changed:
		case <-again:
		}
	}
}

// sync computes the rules from the cached objects and loads them into the kernel.
func (e *Enforcer) sync(ctx context.Context) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.state = e.apply(ctx)
	return e.state
}

func (e *Enforcer) apply(ctx context.Context) error {
	world, err := e.world()
	if err != nil {
		return err
	}
	text, err := rules.Render(world)
	if err != nil || text == e.applied {
		return err
	}
	if err := e.Apply(ctx, text); err != nil {
		return err
	}
	e.applied = text
	return nil
}

func (e *Enforcer) world() (rules.World, error) {
	world := rules.World{Namespaces: map[string]labels.Set{}}
	var err error
	if world.Policies, err = e.policies.List(labels.Everything()); err != nil {
		return world, err
	}
	namespaces, err := e.namespaces.List(labels.Everything())
	if err != nil {
		return world, err
	}
	for _, namespace := range namespaces {
		world.Namespaces[namespace.Name] = namespace.Labels
	}
	pods, err := e.pods.List(labels.Everything())
	if err != nil {
		return world, err
	}
	world.Pods = e.withAddresses(pods)
	return world, nil
}

// withAddresses returns the pods that have one. An address belongs to whom the pod network gave it last: a status may be late.
func (e *Enforcer) withAddresses(pods []*corev1.Pod) []rules.Pod {
	owner, given, live := map[netip.Addr]*corev1.Pod{}, map[netip.Addr]*corev1.Pod{}, map[types.UID]bool{}
	for _, pod := range pods {
		if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		live[pod.UID] = true
		if address, ok := e.addresses[pod.UID]; ok {
			given[address] = pod
		} else if address, err := netip.ParseAddr(pod.Status.PodIP); err == nil {
			owner[address] = pod
		}
	}
	maps.Copy(owner, given)
	maps.DeleteFunc(e.addresses, func(uid types.UID, _ netip.Addr) bool { return !live[uid] })
	var out []rules.Pod
	for address, pod := range owner {
		one := rules.Pod{Namespace: pod.Namespace, Labels: pod.Labels, Address: address}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			one.Ports = append(one.Ports, container.Ports...)
		}
		out = append(out, one)
	}
	return out
}

// Expect returns when the rules for a pod that is about to start, with the address it was given, are in the kernel.
func (e *Enforcer) Expect(ctx context.Context, namespace, name string, uid types.UID, address netip.Addr) error {
	select {
	case <-e.listed:
	case <-ctx.Done():
		return errStarting
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// kubelet may know of the pod a moment before this watch does.
		pod, err := e.pods.Pods(namespace).Get(name)
		if err == nil && (uid == "" || pod.UID == uid) {
			e.give(pod.UID, address)
			return e.sync(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pod %s/%s (%s): not known yet: %w", namespace, name, uid, ctx.Err())
		case <-tick.C:
		}
	}
}

// give assigns an address to a pod and removes it from its previous owner.
func (e *Enforcer) give(uid types.UID, address netip.Addr) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	maps.DeleteFunc(e.addresses, func(_ types.UID, taken netip.Addr) bool { return taken == address })
	e.addresses[uid] = address
}

// Healthy returns nil if the rules in the kernel are those that the API asks for.
func (e *Enforcer) Healthy() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.state
}

// ServeHealth answers 200, or why policies are not enforced.
func (e *Enforcer) ServeHealth(w http.ResponseWriter, _ *http.Request) {
	if err := e.Healthy(); err != nil {
		http.Error(w, "network policies are not enforced: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "network policies are enforced")
}

// ServeExpect answers the requests of the CNI plugin.
func (e *Enforcer) ServeExpect(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	address, err := netip.ParseAddr(query.Get("address"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	if err := e.Expect(ctx, query.Get("namespace"), query.Get("name"), types.UID(query.Get("uid")), address); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}
