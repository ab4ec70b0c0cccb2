// Package clitest has fake clusters, ledgers and untrusted texts for tests of the CLI.
package clitest

import (
	"errors"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Handwritten is the folder of the hand-written ledger, relative to packages below operator/internal/cli.
const Handwritten = "../../analysis/analyze/testdata/handwritten"

// HandwrittenLedger returns a temporary copy of the hand-written ledger.
func HandwrittenLedger(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(Handwritten)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Client returns a client of an API server that holds these objects.
func Client(t *testing.T, calls interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), assayv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&assayv1alpha1.BenchmarkRun{}).
		WithIndex(&assayv1alpha1.BenchmarkRun{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(objects...).WithInterceptorFuncs(calls).Build()
}

// Run returns a run with the given changes.
func Run(namespace, name string, edit ...func(*assayv1alpha1.BenchmarkRun)) *assayv1alpha1.BenchmarkRun {
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-" + "x"}}
	for _, e := range edit {
		e(run)
	}
	return run
}

// Complete changes a run to a complete one with the verdict.
func Complete(verdict assayv1alpha1.Verdict) func(*assayv1alpha1.BenchmarkRun) {
	return func(run *assayv1alpha1.BenchmarkRun) {
		run.Status.Phase, run.Status.Verdict = assayv1alpha1.PhaseSucceeded, verdict
		run.Status.Conditions = []metav1.Condition{{Type: assayv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Done"}}
	}
}
