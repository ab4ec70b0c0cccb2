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

// retainEvery is how often what has grown too old is removed, and retainAgain how soon it is tried again where it could not be.
const (
	retainEvery = 24 * time.Hour
	retainAgain = time.Hour
)

// Retainer removes of the histories of all namespaces what the administrator's policy does not keep, whether or not a schedule still adds
// to them.
type Retainer struct {
	// Store is the root of all ledgers.
	Store store.Store
	// Of is what stays of the histories of a namespace; the zero value keeps all.
	Of func(namespace string) series.Retention
	// Namespaces are those of this operator; none is all.
	Namespaces []string
	Clock      clock.Clock

	// due is when it is the turn of a namespace next.
	due map[string]time.Time
}

// Start removes what is too old until the context ends.
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

// Refresh retains the histories whose turn it is, and returns when the next one's is. Doing it twice removes nothing more, so that nothing
// of it has to outlive the operator.
func (r *Retainer) Refresh(ctx context.Context) time.Duration {
	logger := ctrl.LoggerFrom(ctx).WithName("retention")
	namespaces, err := archive.Projects(ctx, r.Store)
	if err != nil {
		logger.Error(err, "Cannot list the histories to retain")
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
		// A turn that is further away than a day is that of a clock that has jumped back.
		if left := r.due[namespace].Sub(now); left > 0 && left <= retainEvery {
			next = min(next, left)
			continue
		}
		wait := retainEvery
		gone, err := archive.Open(store.WithPrefix(r.Store, archive.Prefix(namespace))).Retain(ctx, policy, now)
		if err != nil {
			wait = retainAgain
			logger.Error(err, "Cannot retain a history", "namespace", namespace)
		}
		if gone > 0 {
			logger.Info("Removed records that are older than the policy keeps", "namespace", namespace, "records", gone)
		}
		r.due[namespace] = now.Add(wait)
		next = min(next, wait)
	}
	return next
}
