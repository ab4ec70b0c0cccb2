package controller

import (
	"sync"
	"time"

	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// queueLasts is how old the queue may be. Whoever takes a node on an old one does so against the version of its lease, so that no
// node has two runs; a run that came this moment may find that another was quicker.
const queueLasts = 250 * time.Millisecond

// queues keep the newest queue for the passes that follow each other closely, as they do when many runs wait.
type queues struct {
	mutex sync.Mutex
	made  time.Time
	queue *lease.Queue
}

// of gives a world the queue, made anew from this world when the last one is too old.
func (q *queues) of(world *observe.World, settings plan.Settings, now time.Time) {
	if len(world.Waiting) == 0 {
		return
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if age := now.Sub(q.made); q.queue == nil || age < 0 || age >= queueLasts {
		q.queue, q.made = plan.NewQueue(&world.Observed, settings), now
	}
	world.Queue = q.queue
}
