package observe

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/test/fakeexecutor"
)

// The pods of a namespace that is gone are gone. In any other namespace an error is not an answer.
func TestBusy_NamespaceThatMayNotBeRead(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "", nil)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	ending := namespace.DeepCopy()
	ending.DeletionTimestamp, ending.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes"}
	for name, tc := range map[string]struct {
		objects []client.Object
		list    error
		state   NamespaceState
		fails   bool
	}{
		"it is gone":                       {nil, forbidden, NamespaceGone, false},
		"it is being deleted":              {[]client.Object{ending}, forbidden, NamespaceEnding, true},
		"it is another operator's":         {[]client.Object{namespace}, forbidden, NamespaceActive, true},
		"the API server fails another way": {nil, errors.New("connection refused"), NamespaceGone, true},
		"it may be read and has no pod":    {[]client.Object{namespace}, nil, NamespaceActive, false},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithObjects(tc.objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if tc.list != nil {
						return tc.list
					}
					return c.List(ctx, list, options...)
				},
			}).Build()
			if state, err := Namespace(t.Context(), reader, "team"); err != nil || state != tc.state {
				t.Errorf("state %d, %v; want %d", state, err, tc.state)
			}
			found, err := Busy(t.Context(), &fakeexecutor.Executor{}, reader, lease.Holder{Namespace: "team", Name: "scan", UID: "1"}, "node-a", "")
			if found != "" || (err != nil) != tc.fails {
				t.Errorf("found %q, error %v, want one: %t", found, err, tc.fails)
			}
		})
	}
}
