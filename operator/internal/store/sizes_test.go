package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"assay.dev/assay/operator/test/storetest"
)

// If a large namespace could not be measured, its last smaller size would count.
func TestSizes_ListingLongerThanTheTimeoutCompletes(t *testing.T) {
	t.Parallel() // It waits for timeouts.
	fake, endpoint := storetest.StartS3(t)
	fake.Refuse = func(r *http.Request) (int, string) {
		if r.URL.Query().Has("versions") {
			return http.StatusNotImplemented, "NotImplemented"
		}
		return 0, ""
	}
	const objects, timeout = 600, 50 * time.Millisecond
	for i := range objects {
		fake.Objects[fmt.Sprintf("runs/a/r/u/attempts/%06d", i)] = []byte("0123456789")
	}
	options := fakeOptions
	options.Timeout = timeout
	store, err := Open(t.Context(), storetest.URL(endpoint, storetest.Bucket, ""), options)
	if err != nil {
		t.Fatal(err)
	}
	// All pages together take longer than the timeout between two objects.
	fake.Delay = 8 * time.Millisecond
	began := time.Now()
	sizes, err := store.(Sizer).Sizes(t.Context(), "runs/a/")
	if want := (Sizes{objects, 10 * objects}); err != nil || sizes != want {
		t.Errorf("%+v, %v; want %+v", sizes, err, want)
	}
	if took := time.Since(began); took < listings*timeout {
		t.Errorf("it took only %s, so the test has no effect", took)
	}
}

func TestSizes_StalledListingIsATimeout(t *testing.T) {
	ctx, came, end := beginListing(t.Context(), 20*time.Millisecond)
	defer end()
	came()
	<-ctx.Done()
	if err := overdue(ctx, ctx.Err()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	ctx, _, end = beginListing(stopped, time.Hour)
	defer end()
	if err := overdue(ctx, ctx.Err()); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled listing ends with %v", err)
	}
}
