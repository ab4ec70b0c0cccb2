package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"assay.dev/assay/operator/internal/store"
)

// errHangs makes operations block until their context ends.
var errHangs = errors.New("the store hangs")

// flakyStore is an object store that can fail for a namespace.
type flakyStore struct {
	store.Store
	mutex  sync.Mutex
	faults map[string]error
}

// fail makes every operation on a namespace's ledgers and history fail; nil repairs it.
func (s *flakyStore) fail(namespace string, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.faults == nil {
		s.faults = map[string]error{}
	}
	s.faults[namespace] = err
}

func (s *flakyStore) fault(ctx context.Context, key string) error {
	err := s.faultOf(key)
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (s *flakyStore) faultOf(key string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for namespace, err := range s.faults {
		if err != nil && (strings.HasPrefix(key, "runs/"+namespace+"/") || strings.HasPrefix(key, "history/"+namespace+"/")) {
			return fmt.Errorf("bucket assay at http://minio:9000: %w", err)
		}
	}
	return nil
}

func (s *flakyStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.fault(ctx, key); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

func (s *flakyStore) Create(ctx context.Context, key string, data []byte) error {
	if err := s.fault(ctx, key); err != nil {
		return err
	}
	return s.Store.Create(ctx, key, data)
}

func (s *flakyStore) Replace(ctx context.Context, key string, data []byte) error {
	if err := s.fault(ctx, key); err != nil {
		return err
	}
	return s.Store.Replace(ctx, key, data)
}

func (s *flakyStore) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	if err := s.fault(ctx, key); err != nil {
		return err
	}
	return s.Store.Update(ctx, key, change)
}

func (s *flakyStore) List(ctx context.Context, prefix string) ([]string, error) {
	if err := s.fault(ctx, prefix); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, prefix)
}

func (s *flakyStore) Page(ctx context.Context, prefix, after string) ([]string, bool, error) {
	if err := s.fault(ctx, prefix); err != nil {
		return nil, false, err
	}
	return s.Store.Page(ctx, prefix, after)
}
