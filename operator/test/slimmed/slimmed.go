// Package slimmed gives tests what the operator's caches keep of objects, and objects in which every field may say something.
package slimmed

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/cached"
)

// Reader reads objects as the operator's caches would: it returns what they keep, and finds by labels only what they keep of those.
type Reader struct{ All client.Reader }

// Get reads an object.
func (r Reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := r.All.Get(ctx, key, object, options...); err != nil {
		return err
	}
	_, err := cached.Slim(object)
	return err
}

// List lists objects.
func (r Reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	if err := r.All.List(ctx, list, client.InNamespace(asked.Namespace)); err != nil {
		return err
	}
	var kept []runtime.Object
	err := meta.EachListItem(list, func(object runtime.Object) error {
		if _, err := cached.Slim(object); err != nil {
			return err
		}
		of, err := meta.Accessor(object)
		if err == nil && (asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(of.GetLabels()))) {
			kept = append(kept, object.DeepCopyObject())
		}
		return err
	})
	if err != nil {
		return err
	}
	return meta.SetList(list, kept)
}
