// Package quota caches the total size of the ledgers of each namespace, so that admission needs no listing.
package quota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"assay.dev/assay/operator/internal/period"
	"assay.dev/assay/operator/internal/store"
)

// Every is the interval at which the size of a namespace is measured again. It grows by megabytes an hour.
const Every = 10 * time.Minute

// firstRetry is the interval of attempts before the first measurement, for which runs wait.
const firstRetry = 10 * time.Second

// Meter measures the ledgers of the namespaces that were queried.
type Meter struct {
	store store.Store
	clock clock.Clock
	asked chan struct{}
	mutex sync.Mutex
	known map[string]*reading
}

type reading struct {
	sizes store.Sizes
	// at is the time of the last measurement, or zero; tried is the start of the last attempt, and busy means that an attempt is in
	// progress.
	at, tried time.Time
	busy      bool
}

// New returns a Meter without measurements.
func New(store store.Store, now clock.Clock) *Meter {
	return &Meter{store: store, clock: now, asked: make(chan struct{}, 1), known: map[string]*reading{}}
}

// Size returns the size of a namespace's ledgers at the last measurement, and false before the first one. A namespace that is queried for
// the first time is measured soon.
func (m *Meter) Size(namespace string) (store.Sizes, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.known[namespace]
	if known == nil {
		known = &reading{}
		m.known[namespace] = known
		select {
		case m.asked <- struct{}{}:
		default:
		}
	}
	return known.sizes, !known.at.IsZero()
}

// All returns the namespaces with a measurement.
func (m *Meter) All() map[string]store.Sizes {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	out := map[string]store.Sizes{}
	for namespace, known := range m.known {
		if !known.at.IsZero() {
			out[namespace] = known.sizes
		}
	}
	return out
}

// Start measures until the context ends. Each namespace is measured in its own goroutine, because its users choose the number of objects
// and must not delay the runs of other namespaces.
func (m *Meter) Start(ctx context.Context) error {
	for {
		next := m.begin(ctx, func(sum func()) { go sum() })
		select {
		case <-ctx.Done():
			return nil
		case <-m.asked:
		case <-m.clock.After(next):
		}
	}
}

// begin starts the measurements that are due and returns the time until the next one. If a namespace cannot be read, its last measurement
// stays.
func (m *Meter) begin(ctx context.Context, run func(sum func())) time.Duration {
	next := Every
	m.mutex.Lock()
	namespaces := slices.Sorted(maps.Keys(m.known))
	m.mutex.Unlock()
	for _, namespace := range namespaces {
		now := m.clock.Now()
		m.mutex.Lock()
		known := m.known[namespace]
		every := Every
		if known.at.IsZero() {
			every = firstRetry
		}
		left := period.Left(known.tried, every, now)
		due := !known.busy && left <= 0
		if due {
			known.busy, known.tried = true, now
		}
		m.mutex.Unlock()
		if due {
			run(func() { m.sum(ctx, namespace, known) })
		} else if left > 0 {
			next = min(next, left)
		}
	}
	return next
}

func (m *Meter) sum(ctx context.Context, namespace string, known *reading) {
	sizes, err := Sum(ctx, m.store, "runs/"+namespace+"/", "argo/"+namespace+"/")
	if err != nil && ctx.Err() == nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot measure the storage of a namespace", "namespace", namespace)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known.busy = false
	if err == nil {
		known.sizes, known.at = sizes, m.clock.Now()
		return
	}
	select {
	case m.asked <- struct{}{}: // The next attempt may be due earlier.
	default:
	}
}

// Sum adds up all objects below the prefixes. A namespace's key may write its ledgers and the artifacts of its other workflows.
func Sum(ctx context.Context, s store.Store, prefixes ...string) (store.Sizes, error) {
	sizer, ok := s.(store.Sizer)
	if !ok {
		return store.Sizes{}, fmt.Errorf("the quota cannot be enforced: store %s does not report sizes", s.URL())
	}
	var out store.Sizes
	for _, prefix := range prefixes {
		sizes, err := sizer.Sizes(ctx, prefix)
		if err != nil {
			return store.Sizes{}, err
		}
		out.Objects, out.Bytes = out.Objects+sizes.Objects, out.Bytes+sizes.Bytes
	}
	return out, nil
}
