// Package quota knows how much the ledgers of a namespace hold, without listing them whenever somebody asks.
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

// Every is how often what a namespace holds is summed up anew: it grows by megabytes an hour.
const Every = 10 * time.Minute

// Meter sums up the ledgers of the namespaces that were asked for.
type Meter struct {
	store store.Store
	clock clock.Clock
	asked chan struct{}
	mutex sync.Mutex
	known map[string]*reading
}

type reading struct {
	sizes store.Sizes
	// at is when it was read last, zero before that; tried is when somebody began to, and busy means that this goes on.
	at, tried time.Time
	busy      bool
}

// New is a meter that knows nothing yet.
func New(store store.Store, now clock.Clock) *Meter {
	return &Meter{store: store, clock: now, asked: make(chan struct{}, 1), known: map[string]*reading{}}
}

// Of is what the ledgers of a namespace held when they were last summed up; false before the first time, which is soon.
func (m *Meter) Of(namespace string) (store.Sizes, bool) {
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

// All are the namespaces that are known.
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

// Start sums up until the context ends, each namespace by itself: how long one takes is what its authors choose, by how many objects they
// write, and no run of another begins before that one was summed up.
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

// begin begins to sum up the namespaces whose turn it is, and returns when the next one's is. One that cannot be read keeps what was known.
func (m *Meter) begin(ctx context.Context, run func(sum func())) time.Duration {
	next := Every
	m.mutex.Lock()
	namespaces := slices.Sorted(maps.Keys(m.known))
	m.mutex.Unlock()
	for _, namespace := range namespaces {
		now := m.clock.Now()
		m.mutex.Lock()
		known := m.known[namespace]
		left := period.Left(known.tried, Every, now)
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
		ctrl.LoggerFrom(ctx).Error(err, "Cannot sum up what a namespace stores", "namespace", namespace)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known.busy = false
	if err == nil {
		known.sizes, known.at = sizes, m.clock.Now()
	}
}

// Sum adds up everything below prefixes: the keys of a namespace may write its ledgers and what its other workflows keep.
func Sum(ctx context.Context, s store.Store, prefixes ...string) (store.Sizes, error) {
	sizer, ok := s.(store.Sizer)
	if !ok {
		return store.Sizes{}, fmt.Errorf("the store %s does not report sizes, which a quota needs", s.URL())
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
