package controller

import (
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// controllerOptions limits concurrency and makes namespaces share the queue fairly.
func controllerOptions(concurrent int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: concurrent, NewQueue: inTurns}
}

// inTurns returns a work queue in which namespaces take turns.
func inTurns(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ctrl.Request]{
		Name: name, Queue: &turns{waiting: map[string][]ctrl.Request{}},
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[ctrl.Request]{Name: name, Queue: queue}),
	})
}

// turns queues objects by namespace. Tenants choose the number of their objects, how often they change and how long a reconcile takes: an
// object waits for one object of each other namespace, not for all of them.
type turns struct {
	// order has the namespaces whose objects wait, the next one first.
	order   []string
	waiting map[string][]ctrl.Request
	length  int
}

// Touch is part of workqueue.Queue: a queued object retains its place.
func (t *turns) Touch(ctrl.Request) {}

// Push is part of workqueue.Queue.
func (t *turns) Push(item ctrl.Request) {
	if len(t.waiting[item.Namespace]) == 0 {
		t.order = append(t.order, item.Namespace)
	}
	t.waiting[item.Namespace] = append(t.waiting[item.Namespace], item)
	t.length++
}

// Len is part of workqueue.Queue.
func (t *turns) Len() int { return t.length }

// Pop is part of workqueue.Queue.
func (t *turns) Pop() ctrl.Request {
	namespace := t.order[0]
	item, left := t.waiting[namespace][0], t.waiting[namespace][1:]
	t.order, t.length = t.order[1:], t.length-1
	if len(left) == 0 {
		delete(t.waiting, namespace)
		return item
	}
	t.order, t.waiting[namespace] = append(t.order, namespace), left
	return item
}
