package platform

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	coordinationv1 "k8s.io/api/coordination/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/test/clitest"
)

func TestRetire_WaitsUntilNoRunHoldsAnything(t *testing.T) {
	run := func(namespace, name string, edit func(*assayv1alpha1.BenchmarkRun)) client.Object {
		out := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1"},
			Status: assayv1alpha1.BenchmarkRunStatus{Phase: assayv1alpha1.PhaseRunning}}
		edit(out)
		return out
	}
	finalizer := func(r *assayv1alpha1.BenchmarkRun) { r.Finalizers = []string{plan.Finalizer} }
	over := func(r *assayv1alpha1.BenchmarkRun) { r.Status.CompletionTime = ptr.To(metav1.Now()) }
	leased := func(node, namespace string) client.Object {
		l := lease.Lease{Node: node}.TakenBy(lease.Holder{Namespace: namespace, Name: "scan", UID: "1"}, true, time.Hour, time.Now())
		out := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "assay-system", Name: lease.Name(node),
			Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy}}}
		if err := l.Write(out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	list := func(err error) interceptor.Funcs {
		return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			if _, runs := l.(*assayv1alpha1.BenchmarkRunList); runs && err != nil {
				return err
			}
			return c.List(ctx, l, options...)
		}}
	}
	resource := schema.GroupResource{Group: "assay.dev", Resource: "benchmarkruns"}
	for name, tc := range map[string]struct {
		objects []client.Object
		list    error
		// fails are parts of the error; none when the command succeeds.
		fails     []string
		cancelled bool
	}{
		"no run":                                   {},
		"a run that has ended":                     {objects: []client.Object{run("team", "scan", over)}},
		"a run that has not started":               {objects: []client.Object{run("team", "scan", func(*assayv1alpha1.BenchmarkRun) {})}, cancelled: true},
		"a run with a finalizer":                   {objects: []client.Object{run("team", "scan", finalizer)}, fails: []string{"run team/scan (Running)", "assay-system"}, cancelled: true},
		"a run that ended and has its finalizer":   {objects: []client.Object{run("team", "scan", func(r *assayv1alpha1.BenchmarkRun) { finalizer(r); over(r) })}, fails: []string{"run team/scan"}},
		"a run of another installation":            {objects: []client.Object{run("elsewhere", "scan", finalizer), leased("node-b", "elsewhere")}},
		"a lease of a run that is gone":            {objects: []client.Object{leased("node-a", "team")}, fails: []string{"node node-a (leased by team/scan)"}},
		"the definition is gone":                   {list: apierrors.NewNotFound(resource, "")},
		"the namespace and with it the rights":     {list: apierrors.NewForbidden(resource, "", errors.New("no role"))},
		"the same, and its run still holds a node": {list: apierrors.NewForbidden(resource, "", nil), objects: []client.Object{leased("node-a", "team")}, fails: []string{"node node-a"}},
		"the API server does not answer":           {list: errors.New("connection refused"), fails: []string{"connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c := clitest.Client(t, list(tc.list), tc.objects...)
			r := &retirement{client: c, namespaces: []string{"team"}, system: "assay-system", out: &out,
				cancelled: map[string]bool{}, unreadable: map[string]bool{}}
			err := r.run(t.Context(), 10*time.Millisecond)
			if (err != nil) != (len(tc.fails) > 0) {
				t.Fatalf("error %v, want one: %t", err, len(tc.fails) > 0)
			}
			for _, want := range tc.fails {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q", err, want)
				}
			}
			if got := strings.Contains(out.String(), "run team/scan is being cancelled"); got != tc.cancelled {
				t.Errorf("cancelled %t, want %t: %s", got, tc.cancelled, out.String())
			}
		})
	}
}
