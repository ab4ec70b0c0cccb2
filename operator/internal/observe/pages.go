package observe

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are held at a time: each may have a megabyte, and whoever may make some may make many.
const pageSize = 16

// EachPage visits the objects of a kind in a namespace as the API server has them, a page at a time. It is the only way to list past the
// caches.
func EachPage[T any, P interface {
	*T
	client.ObjectList
}](ctx context.Context, live client.Reader, namespace string, visit func(page P), options ...client.ListOption) error {
	return each(ctx, live, pageSize, namespace, visit, options...)
}

// inCache has a cache visit what it holds already.
const inCache = 0

// each visits so many objects at a time, or all of a cache, which knows no pages.
func each[T any, P interface {
	*T
	client.ObjectList
}](ctx context.Context, reader client.Reader, size int64, namespace string, visit func(page P), options ...client.ListOption) error {
	for next := ""; ; {
		page := P(new(T))
		more := append(slices.Clone(options), client.InNamespace(namespace))
		if size != inCache {
			more = append(more, client.Limit(size), client.Continue(next))
		}
		if err := reader.List(ctx, page, more...); err != nil {
			return err
		}
		visit(page)
		if next = page.GetContinue(); next == "" || size == inCache {
			return nil
		}
	}
}
