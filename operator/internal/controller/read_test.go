package controller

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/observe"
)

// twoReaders are a cache and an API server with different versions of a run.
type twoReaders struct {
	*Reconciler
	t           *testing.T
	cache, live client.Client
	asked       int
}

func newTwoReaders(t *testing.T) *twoReaders {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := assayv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &twoReaders{t: t, cache: fake.NewClientBuilder().WithScheme(scheme).Build()}
	r.live = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			r.asked++
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	r.Reconciler = &Reconciler{Observer: &observe.Observer{Client: r.cache, Live: r.live}}
	return r
}

var scan = client.ObjectKey{Namespace: "lab", Name: "scan"}

// write stores a run with that progress in the API server and, unless it is stale, in the cache.
func (r *twoReaders) write(progress string, behind bool, edits ...func(*assayv1alpha1.BenchmarkRun)) {
	r.t.Helper()
	must := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: scan.Namespace, Name: scan.Name}}
	run.Status.Progress = progress
	for _, edit := range edits {
		edit(run)
	}
	put := func(c client.Client) string {
		current := &assayv1alpha1.BenchmarkRun{}
		if err := c.Get(r.t.Context(), scan, current); apierrors.IsNotFound(err) {
			out := run.DeepCopy()
			must(c.Create(r.t.Context(), out))
			return out.ResourceVersion
		}
		out := run.DeepCopy()
		out.ResourceVersion = current.ResourceVersion
		must(c.Update(r.t.Context(), out))
		return out.ResourceVersion
	}
	version := put(r.live)
	if behind {
		return
	}
	// The fake client counts versions by itself; both are written equally often.
	for put(r.cache) != version {
	}
}

// read returns the progress that a reconcile reads, and the number of requests to the API server.
func (r *twoReaders) read() (progress string, asked int) {
	r.t.Helper()
	r.asked = 0
	run, err := r.readRun(r.t.Context(), scan)
	if apierrors.IsNotFound(err) {
		return "gone", r.asked
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return run.Status.Progress, r.asked
}

func TestRead_LedgerIsReadOnlyAfterChanges(t *testing.T) {
	r := newTwoReaders(t)
	expect := func(why, progress string, asked int) {
		t.Helper()
		if got, times := r.read(); got != progress || times != asked {
			t.Errorf("%s: read %q and asked %d times, want %q and %d", why, got, times, progress, asked)
		}
	}
	expect("a run that does not exist", "gone", 1)
	r.write("0/4", false)
	expect("the first time", "0/4", 1)
	expect("nothing has happened", "0/4", 0)
	r.write("1/4", false)
	expect("it was edited", "1/4", 1)
	expect("and then left alone", "1/4", 0)
	r.write("2/4", true)
	expect("the cache does not know of an edit yet", "1/4", 0)
	r.Observer.Memory.KeepRun(r.now())
	expect("this operator has written it, and the cache does not know it yet", "2/4", 1)
	r.write("4/4", false, func(run *assayv1alpha1.BenchmarkRun) {
		run.Status.CompletionTime = ptr.To(metav1.Now())
	})
	expect("it is over", "4/4", 1)
	expect("and is not remembered", "4/4", 1)
}

// now returns the run in the API server.
func (r *twoReaders) now() *assayv1alpha1.BenchmarkRun {
	r.t.Helper()
	run := &assayv1alpha1.BenchmarkRun{}
	if err := r.live.Get(r.t.Context(), scan, run); err != nil {
		r.t.Fatal(err)
	}
	return run
}

// A run that is deleted before its acceptance has no finalizer, so that the operator may never observe its deletion.
func TestRead_DeletedRunIsForgotten(t *testing.T) {
	r := newTwoReaders(t)
	r.write("0/4", false)
	run := r.now()
	r.Observer.Memory.Note(run, func(n *observe.Notes) { n.Expands = true })
	if r.read(); !r.Observer.Memory.Noted(run).Expands {
		t.Fatal("the notes of an existing run were removed")
	}
	for _, c := range []client.Client{r.cache, r.live} {
		if err := c.Delete(t.Context(), run.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	if progress, _ := r.read(); progress != "gone" || r.Observer.Memory.Noted(run).Expands {
		t.Errorf("read %q, and %+v is noted", progress, r.Observer.Memory.Noted(run))
	}
}
