package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A namespace that is deleted takes the RoleBinding of the operator along, usually before its runs. The rights for removing their
// finalizers are therefore those of the ClusterRole: to read a namespace, and to read and patch runs.

// NamespaceState is the state of a namespace that matters for the runs in it.
type NamespaceState int

// States of a namespace. Everything in one that is ending is being deleted, and nothing can be created. In one that is gone nothing is
// left.
const (
	NamespaceActive NamespaceState = iota
	NamespaceEnding
	NamespaceGone
)

// Namespace reads the state of a namespace from the API server.
func Namespace(ctx context.Context, live client.Reader, name string) (NamespaceState, error) {
	var namespace corev1.Namespace
	switch err := live.Get(ctx, client.ObjectKey{Name: name}, &namespace); {
	case apierrors.IsNotFound(err):
		return NamespaceGone, nil
	case err != nil:
		return NamespaceActive, fmt.Errorf("get namespace %s: %w", name, err)
	case !namespace.DeletionTimestamp.IsZero():
		return NamespaceEnding, nil
	}
	return NamespaceActive, nil
}

// gone reports whether an error means that objects may not be read because their namespace is gone.
func gone(ctx context.Context, live client.Reader, namespace string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	state, failed := Namespace(ctx, live, namespace)
	return failed == nil && state == NamespaceGone
}
