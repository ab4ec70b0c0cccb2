package scheduled

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/store"
)

// retainEvery is the interval of retention, and retainAgain the retry interval after an error.
const (
	retainEvery = 24 * time.Hour
	retainAgain = time.Hour
)

// Retainer applies the administrator's retention policy to the histories of all namespaces, including those that no schedule uses any
// more.
type Retainer struct {
	// Store is the root of all ledgers.
	Store store.Store
	// Of returns the retention of a namespace; the zero value retains all records.
	Of func(namespace string) series.Retention
	// Namespaces of this operator; empty means all.
	Namespaces []string
	Clock      clock.Clock

	// due is the next time of each namespace.
	due map[string]time.Time
}

// Start removes expired records until the context ends.
func (r *Retainer) Start(ctx context.Context) error {
	for {
		next := r.Refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.Clock.After(next):
		}
	}
}

// Refresh applies the retention to due namespaces, and returns the next due time. It is idempotent, so the due times are held in memory
// only.
func (r *Retainer) Refresh(ctx context.Context) time.Duration {
	logger := ctrl.LoggerFrom(ctx).WithName("retention")
	namespaces, err := archive.Projects(ctx, r.Store)
	if err != nil {
		logger.Error(err, "Cannot list the histories for retention")
		return retainAgain
	}
	if r.due == nil {
		r.due = map[string]time.Time{}
	}
	next := retainEvery
	for _, namespace := range namespaces {
		policy := r.Of(namespace)
		if policy.Full == 0 || len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, namespace) {
			continue
		}
		now := r.Clock.Now().UTC()
		// A due time more than a day ahead means that the clock was set back.
		if left := r.due[namespace].Sub(now); left > 0 && left <= retainEvery {
			next = min(next, left)
			continue
		}
		wait := retainEvery
		gone, err := archive.Open(store.WithPrefix(r.Store, archive.Prefix(namespace))).Retain(ctx, policy, now)
		if err != nil {
			wait = retainAgain
			logger.Error(err, "Cannot apply the retention of a history", "namespace", namespace)
		}
		if gone > 0 {
			logger.Info("Removed expired records", "namespace", namespace, "records", gone)
		}
		r.due[namespace] = now.Add(wait)
		next = min(next, wait)
	}
	return next
}
