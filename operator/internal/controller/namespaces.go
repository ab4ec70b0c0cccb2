package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/observe"
)

// Namespaces are the namespaces of runs that an operator is told to watch. The cache of one that is gone never fills, and no controller
// would start for any other, so that those that cannot be watched are left out until the operator restarts.
type Namespaces struct {
	Live client.Reader
	All  []string
	// Interval is how often the namespaces that were left out are looked at.
	Interval time.Duration
}

// Watchable returns the namespaces that can be watched, and waits while there is none of them.
func (n *Namespaces) Watchable(ctx context.Context) ([]string, error) {
	for {
		var out []string
		for _, namespace := range n.All {
			why, err := n.unwatchable(ctx, namespace)
			if err != nil {
				return nil, err
			}
			if why == "" {
				out = append(out, namespace)
				continue
			}
			ctrl.LoggerFrom(ctx).Info("A namespace of runs is left out", "namespace", namespace, "reason", why)
		}
		if len(out) > 0 || len(n.All) == 0 { // An empty list means every namespace.
			return out, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(n.Interval):
		}
	}
}

// Others ends the operator, so that it restarts, once a namespace can be watched that was left out. It also runs without leadership.
type Others struct {
	*Namespaces
	Watched []string
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (o Others) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (o Others) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.Interval):
		}
		for _, namespace := range o.All {
			if slices.Contains(o.Watched, namespace) {
				continue
			}
			if why, err := o.unwatchable(ctx, namespace); err == nil && why == "" {
				return fmt.Errorf("namespace %s can be watched now: the operator restarts to watch it", namespace)
			}
		}
	}
}

// unwatchable is why a namespace cannot be watched; empty if it can.
func (n *Namespaces) unwatchable(ctx context.Context, namespace string) (why string, err error) {
	state, err := observe.Namespace(ctx, n.Live, namespace)
	switch {
	case apierrors.IsForbidden(err): // The rights are those of an earlier version.
	case err != nil:
		return "", err
	case state == observe.NamespaceGone:
		return "it does not exist", nil
	case state == observe.NamespaceEnding:
		return "it is being deleted", nil
	}
	err = n.Live.List(ctx, &assayv1alpha1.BenchmarkRunList{}, client.InNamespace(namespace), client.Limit(1))
	if apierrors.IsForbidden(err) {
		return err.Error(), nil
	}
	if meta.IsNoMatchError(err) {
		return "", nil // The definitions of the kinds are missing everywhere.
	}
	return "", err
}
