package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// One namespace that is gone must not keep the operator from watching the others.
func TestNamespaces_ThoseThatCannotBeWatchedAreLeftOut(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := assayv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	named := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	ending := named("ending")
	ending.DeletionTimestamp, ending.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes"}
	built := fake.NewClientBuilder().WithScheme(scheme).WithObjects(named("team"), named("foreign"), ending)
	live := built.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if (&client.ListOptions{}).ApplyOptions(options).Namespace == "foreign" {
				return apierrors.NewForbidden(assayv1alpha1.GroupVersion.WithResource("benchmarkruns").GroupResource(), "", nil)
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	namespaces := &Namespaces{Live: live, All: []string{"gone", "team", "ending", "foreign"}, Interval: time.Millisecond}
	watched, err := namespaces.Watchable(t.Context())
	if err != nil || !slices.Equal(watched, []string{"team"}) {
		t.Fatalf("watches %q, %v; want team", watched, err)
	}

	// It restarts once another one exists, and waits while there is none: an empty list would be every namespace.
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if err := (Others{namespaces, watched}).Start(ctx); err != nil {
		t.Errorf("it restarts although nothing changed: %v", err)
	}
	none := &Namespaces{Live: live, All: []string{"gone"}, Interval: time.Millisecond}
	ctx, stop = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if got, err := none.Watchable(ctx); err == nil {
		t.Errorf("without any namespace it watches %q", got)
	}
	if err := live.Create(t.Context(), named("gone")); err != nil {
		t.Fatal(err)
	}
	if got, err := none.Watchable(t.Context()); err != nil || !slices.Equal(got, []string{"gone"}) {
		t.Errorf("it watches %q, %v", got, err)
	}
	if err := (Others{namespaces, watched}).Start(t.Context()); err == nil || !strings.Contains(err.Error(), "namespace gone") {
		t.Errorf("it does not restart: %v", err)
	}
	if got, err := (&Namespaces{Live: live}).Watchable(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("an operator of all namespaces watches %q, %v", got, err)
	}
}
