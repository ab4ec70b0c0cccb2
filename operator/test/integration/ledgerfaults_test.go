package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller"
	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/internal/executor/argo"
)

// A run reports every fault of the object store with its remedy, and continues once it is repaired.
func TestLedgerFault_IsReportedAndRecovered(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		reason string
		says   []string
	}{
		"a store that is down":           {storeError(t, "http://127.0.0.1:1", nil), assayv1alpha1.ReasonLedgerUnreachable, []string{"connection refused", "start the store"}},
		"a store that answers 503":       {answering(t, http.StatusServiceUnavailable, "SlowDown"), assayv1alpha1.ReasonLedgerUnreachable, []string{"HTTP 503", "read the store's logs"}},
		"an access key that is unknown":  {answering(t, http.StatusForbidden, "InvalidAccessKeyId"), assayv1alpha1.ReasonLedgerCredentials, []string{"correct the access key in the ledger's Secret"}},
		"a secret key that is wrong":     {answering(t, http.StatusForbidden, "SignatureDoesNotMatch"), assayv1alpha1.ReasonLedgerCredentials, []string{"correct the secret key"}},
		"a bucket that may not be used":  {answering(t, http.StatusForbidden, "AccessDenied"), assayv1alpha1.ReasonLedgerDenied, []string{"s3:PutObject"}},
		"a bucket that does not exist":   {answering(t, http.StatusNotFound, "NoSuchBucket"), assayv1alpha1.ReasonLedgerMissing, []string{"create the bucket"}},
		"clocks that differ":             {answering(t, http.StatusForbidden, "RequestTimeTooSkewed"), assayv1alpha1.ReasonLedgerClock, []string{"clock"}},
		"an authority that is not known": {untrusted(t), assayv1alpha1.ReasonLedgerCertificate, []string{"unknown authority", "objectStore.external.ca"}},
		"a store that writes over all":   {overwriting(t), assayv1alpha1.ReasonLedgerUnsuitable, []string{"If-None-Match", "127.0.0.1", "object-stores.md"}},
		"something else in the bucket":   {errors.New("experiment.json is not JSON"), assayv1alpha1.ReasonLedgerDamaged, []string{"experiment.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			s.fail(w.namespace, tc.err)
			t.Cleanup(func() { s.fail(w.namespace, nil) })
			w.must(admin.Create(w.ctx, w.template))
			w.must(admin.Create(w.ctx, w.run))
			w.untilCondition(assayv1alpha1.ConditionLedgerReady, metav1.ConditionFalse, tc.reason, tc.says...)
			w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, tc.reason, "waiting for the ledger")
			s.fail(w.namespace, nil)
			w.untilCondition(assayv1alpha1.ConditionLedgerReady, metav1.ConditionTrue, assayv1alpha1.ReasonLedgerReady)
			w.until("the first wave's workflow exists", func() error { _, err := w.getWorkflow("scan-w000"); return err })
		})
	}
}

// While the store hangs for many runs, runs that need no store are reconciled: leases are renewed, a cancelled run is stopped, and
// a deleted one is removed. More runs hang than there are reconcile workers.
func TestLedgerFault_HangingStoreBlocksNoOtherRun(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	node := w.namespace + "-node-a"
	held := w.untilHolds(node)
	s.fail(w.namespace, errHangs)
	t.Cleanup(func() { s.fail(w.namespace, nil) })
	for i := range 2 * controller.ConcurrentRuns {
		other := w.run.DeepCopy()
		other.ResourceVersion, other.Name = "", fmt.Sprintf("hangs-%d", i)
		w.must(admin.Create(w.ctx, other))
	}
	w.untilCondition(assayv1alpha1.ConditionLedgerReady, metav1.ConditionFalse, assayv1alpha1.ReasonLedgerUnreachable, "the next try")
	w.until("the lease is renewed", func() error {
		if current := w.leaseOf(node); current.Token != held.Token || !current.Renewed.After(held.Renewed) {
			return fmt.Errorf("it was last renewed at %s", current.Renewed)
		}
		return nil
	})
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Cancel = ptr.To(true) })
	w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
	run := w.get()
	w.must(admin.Delete(w.ctx, run))
	w.until("the run is gone", func() error { return w.gone(run) })
}

// storeError returns the error of a real client for an endpoint.
func storeError(t *testing.T, endpoint string, ca []byte) error {
	t.Helper()
	opened, err := store.Open(t.Context(), "s3://assay?endpoint="+endpoint,
		store.Options{AccessKey: "a", SecretKey: "b", Timeout: 5 * time.Second, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	if err = opened.Check(t.Context()); err == nil {
		t.Fatalf("the store at %s has no fault", endpoint)
	}
	return err
}

func answering(t *testing.T, status int, code string) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	}))
	defer server.Close()
	return storeError(t, server.URL, nil)
}

// overwriting returns the error for a store that ignores preconditions of writes.
func overwriting(t *testing.T) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"x"`) }))
	defer server.Close()
	opened, err := store.Open(t.Context(), "s3://assay?endpoint="+server.URL,
		store.Options{AccessKey: "a", SecretKey: "b", Timeout: 5 * time.Second, Prove: true})
	if err != nil {
		t.Fatal(err)
	}
	return opened.Create(t.Context(), "experiment.json", nil)
}

func untrusted(t *testing.T) error {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return storeError(t, server.URL, nil)
}

// background is a context for cleanup, because the test's context has ended by then.
func background(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }

// established reports whether the API server serves a CRD.
func established(crd *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, condition := range conditions {
		if entry, ok := condition.(map[string]any); ok && entry["type"] == "Established" && entry["status"] == "True" {
			return nil
		}
	}
	return errors.New("it is not established")
}
