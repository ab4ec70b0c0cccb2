// Package slimmed provides objects as the operator's caches store them, and objects with random values in every field.
package slimmed

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/cached"
	"assay.dev/assay/operator/internal/executor/argo"
)

// Reader reads objects as the operator's caches would: it returns only cached fields, and selects only by cached labels.
type Reader struct{ All client.Reader }

// Slim removes the fields that the operator's caches do not hold.
func Slim(object any) error {
	_, err := argo.Slim(object)
	if _, engines := object.(*argo.Workflow); !engines {
		_, err = cached.Slim(object)
	}
	return err
}

// Get reads an object.
func (r Reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := r.All.Get(ctx, key, object, options...); err != nil {
		return err
	}
	return Slim(object)
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
		if err := Slim(object); err != nil {
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
