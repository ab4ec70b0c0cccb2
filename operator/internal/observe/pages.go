package observe

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are held at a time: each may have a megabyte, and whoever may make some may make many.
const pageSize = 16

// Each visits the objects of a list in a namespace as the API server has them, and holds a page of them at a time. It is the only way to
// list past the caches. The list itself stays empty.
func Each[T client.Object](ctx context.Context, live client.Reader, list client.ObjectList, namespace string, visit func(object T),
	options ...client.ListOption) error {
	return each(ctx, live, pageSize, list, namespace, visit, options...)
}

// inCache has a cache visit what it holds already.
const inCache = 0

// each visits so many objects at a time, or all of a cache, which knows no pages.
func each[T client.Object](ctx context.Context, reader client.Reader, size int64, list client.ObjectList, namespace string,
	visit func(object T), options ...client.ListOption) error {
	for next := ""; ; {
		page := list.DeepCopyObject().(client.ObjectList)
		of := append(slices.Clone(options), client.InNamespace(namespace), client.Limit(size), client.Continue(next))
		if err := reader.List(ctx, page, of...); err != nil {
			return err
		}
		if err := meta.EachListItem(page, func(object runtime.Object) error { visit(object.(T)); return nil }); err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" || size == inCache {
			return nil
		}
	}
}
