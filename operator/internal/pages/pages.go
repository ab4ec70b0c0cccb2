// Package pages lists objects of the API server one page at a time, so that a list of large objects never has to fit in memory.
package pages

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Size is the number of objects per page. One object may have a megabyte, and tenants choose how many there are.
const Size = 16

// Each visits the objects of a list in a namespace as the API server has them, one page at a time. All code that lists past the caches
// uses it. The list itself stays empty.
func Each[T client.Object](ctx context.Context, live client.Reader, list client.ObjectList, namespace string, visit func(object T),
	options ...client.ListOption) error {
	return each(ctx, live, Size, list, namespace, visit, options...)
}

// Cached visits the objects of a list in a namespace that a cache holds. A cache has no pages.
func Cached[T client.Object](ctx context.Context, cache client.Reader, list client.ObjectList, namespace string, visit func(object T),
	options ...client.ListOption) error {
	return each(ctx, cache, 0, list, namespace, visit, options...)
}

// each visits pages of size objects until the last page; size 0 is a single list without pages.
func each[T client.Object](ctx context.Context, reader client.Reader, size int64, list client.ObjectList, namespace string,
	visit func(object T), options ...client.ListOption) error {
	for next := ""; ; {
		page := list.DeepCopyObject().(client.ObjectList)
		all := append(slices.Clone(options), client.InNamespace(namespace), client.Limit(size), client.Continue(next))
		if err := reader.List(ctx, page, all...); err != nil {
			return err
		}
		if err := meta.EachListItem(page, func(object runtime.Object) error { visit(object.(T)); return nil }); err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" || size == 0 {
			return nil
		}
	}
}
