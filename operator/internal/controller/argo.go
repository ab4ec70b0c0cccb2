package controller

import (
	"context"

	"assay.dev/assay/operator/internal/argo"
)

// argoWatch begins to watch workflows once Argo's API is there. A watch that is begun before ends the whole operator when it
// has waited too long.
type argoWatch struct {
	argo  *argo.Monitor
	begin func() error
}

// Start waits for Argo.
func (w *argoWatch) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.argo.Ready():
		return w.begin()
	}
}
