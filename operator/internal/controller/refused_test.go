package controller

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Results are removed only from a status that will always be rejected, not after an error that may be transient.
func TestRefused_ErrorsOfStatusWrites(t *testing.T) {
	runs := schema.GroupResource{Resource: "benchmarkruns"}
	for sentence, tc := range map[string]struct {
		err  error
		want bool
	}{
		"it was written":               {nil, false},
		"the definition refuses it":    {apierrors.NewInvalid(schema.GroupKind{Kind: "BenchmarkRun"}, "scan", nil), true},
		"the API server: too large":    {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"etcd: too large":              {errors.New("etcdserver: request is too large"), true},
		"the connection: too large":    {errors.New("trying to send message larger than max (2097200 vs. 2097152)"), true},
		"a conflict":                   {apierrors.NewConflict(runs, "scan", errors.New("modified")), false},
		"the run is gone":              {apierrors.NewNotFound(runs, "scan"), false},
		"the API server has no answer": {apierrors.NewServiceUnavailable("away"), false},
	} {
		if got := refused(tc.err); got != tc.want {
			t.Errorf("%s: refused for good is %v, want %v", sentence, got, tc.want)
		}
	}
}
