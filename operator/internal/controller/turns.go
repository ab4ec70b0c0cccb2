package controller

import (
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// passes are the options of a controller that looks at so many objects of namespaces at a time.
func passes(concurrent int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: concurrent, NewQueue: inTurns}
}

// inTurns is a queue like any other controller's, in which namespaces take turns.
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

// turns has the objects that are to be looked at. How many there are, how often each is looked at and how long that takes is what people
// in their namespaces choose: whoever comes next waits for one object of each namespace, and not for all of them.
type turns struct {
	// order has the namespaces whose objects wait, the next one first.
	order   []string
	waiting map[string][]ctrl.Request
	length  int
}

// Touch is part of workqueue.Queue: what waits already keeps its place.
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
