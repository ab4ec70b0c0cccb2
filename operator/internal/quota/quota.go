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

	"assay.dev/assay/operator/internal/ledger"
)

// Every is how often what a namespace holds is summed up anew: it grows by megabytes an hour.
const Every = 10 * time.Minute

// Meter sums up the ledgers of the namespaces that were asked for, one after the other.
type Meter struct {
	Store ledger.Store
	Clock clock.Clock

	once  sync.Once
	asked chan struct{}
	mutex sync.Mutex
	known map[string]*reading
}

type reading struct {
	sizes ledger.Sizes
	// at is when it was read last, zero before that; tried is when somebody tried to.
	at, tried time.Time
}

func (m *Meter) prepare() {
	m.once.Do(func() { m.asked, m.known = make(chan struct{}, 1), map[string]*reading{} })
}

// Of is what the ledgers of a namespace held when they were last summed up; false before the first time, which is soon.
func (m *Meter) Of(namespace string) (ledger.Sizes, bool) {
	m.prepare()
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
func (m *Meter) All() map[string]ledger.Sizes {
	m.prepare()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	out := map[string]ledger.Sizes{}
	for namespace, known := range m.known {
		if !known.at.IsZero() {
			out[namespace] = known.sizes
		}
	}
	return out
}

// Start sums up until the context ends.
func (m *Meter) Start(ctx context.Context) error {
	m.prepare()
	for {
		next := m.Refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-m.asked:
		case <-m.Clock.After(next):
		}
	}
}

// Refresh sums up the namespaces whose turn it is, and returns when the next one's is. One that cannot be read keeps what was known.
func (m *Meter) Refresh(ctx context.Context) time.Duration {
	m.prepare()
	next := Every
	for _, namespace := range m.namespaces() {
		m.mutex.Lock()
		tried := m.known[namespace].tried
		m.mutex.Unlock()
		if left := tried.Add(Every).Sub(m.Clock.Now()); !tried.IsZero() && left > 0 {
			next = min(next, left)
			continue
		}
		sizes, err := Sum(ctx, m.Store, "runs/"+namespace+"/", "argo/"+namespace+"/")
		m.mutex.Lock()
		known := m.known[namespace]
		known.tried = m.Clock.Now()
		if err == nil {
			known.sizes, known.at = sizes, known.tried
		}
		m.mutex.Unlock()
		if err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot sum up what a namespace stores", "namespace", namespace)
		}
	}
	return next
}

func (m *Meter) namespaces() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Sorted(maps.Keys(m.known))
}

// Sum adds up everything below prefixes: the keys of a namespace may write its ledgers and what its other workflows keep.
func Sum(ctx context.Context, store ledger.Store, prefixes ...string) (ledger.Sizes, error) {
	sizer, ok := store.(ledger.Sizer)
	if !ok {
		return ledger.Sizes{}, fmt.Errorf("the store %s does not report sizes, which a quota needs", store.URL())
	}
	var out ledger.Sizes
	for _, prefix := range prefixes {
		sizes, err := sizer.Sizes(ctx, prefix)
		if err != nil {
			return ledger.Sizes{}, err
		}
		out.Objects, out.Bytes = out.Objects+sizes.Objects, out.Bytes+sizes.Bytes
	}
	return out, nil
}
