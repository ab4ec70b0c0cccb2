package dependencies

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	testclock "k8s.io/utils/clock/testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/store"
)

// overwrites, used in place of an error code, makes the store ignore preconditions and overwrite objects.
const overwrites = "overwrites"

// newStore returns an S3 client of a fake server without signed links. An empty code makes every request succeed.
func newStore(t *testing.T, code *string) store.Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case *code == overwrites && r.Method == http.MethodPut:
			w.Header().Set("ETag", `"x"`)
		case *code != "" && *code != overwrites:
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", *code)
		case r.Header.Get("X-Amz-Checksum-Sha256") != "":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, "<Error><Code>BadDigest</Code></Error>")
		case r.Method == http.MethodPut:
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = fmt.Fprint(w, "<Error><Code>PreconditionFailed</Code></Error>")
		default:
			_, _ = fmt.Fprint(w, "<ListBucketResult><Contents><Key>runs/assay-write-probe</Key></Contents></ListBucketResult>")
		}
	}))
	t.Cleanup(server.Close)
	opened, err := store.Open(t.Context(), "s3://bench?endpoint="+server.URL,
		store.Options{AccessKey: "a", SecretKey: "b", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestPage_FollowsTheState(t *testing.T) {
	code, engine := "", plan.EngineState{}
	clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	scrapes := &Scrapes{Clock: clock}
	page := New(newStore(t, &code), Engine{"the engine", func() plan.EngineState { return engine }}, scrapes, clock)
	filter, err := scrapes.Filter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := filter(logr.Discard(), http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	get := func(handler http.Handler, path string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil).WithContext(t.Context()))
		return answer
	}
	want := func(when string, check func(Report) bool) {
		t.Helper()
		var report Report
		raw := get(page, Path).Body.Bytes()
		if err := json.Unmarshal(raw, &report); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if !check(report) {
			t.Errorf("%s the page is\n%s", when, raw)
		}
	}
	want("at the start", func(r Report) bool {
		return r.Ledger.OK && strings.Contains(r.Ledger.Found, "s3://bench") && r.Engine.OK && r.Prometheus.OK &&
			strings.HasSuffix(r.Ledger.Found, "refuses to overwrite objects; it lacks signed links") &&
			strings.Contains(r.Ledger.Remedy, "object-stores.md")
	})
	code, engine.Problem, engine.Message = "SignatureDoesNotMatch", assayv1alpha1.ReasonEngineMissing, "no engine"
	want("wrong key and no engine", func(r Report) bool {
		return !r.Ledger.OK && r.Ledger.Reason == assayv1alpha1.ReasonLedgerCredentials && strings.Contains(r.Ledger.Remedy, "secret key") &&
			!r.Engine.OK && r.Engine.Found == "no engine"
	})
	code, engine.Problem = "", ""
	want("once both are repaired", func(r Report) bool { return r.Ledger.OK && r.Engine.OK })
	code = overwrites
	want("store that allows overwrites", func(r Report) bool {
		return !r.Ledger.OK && r.Ledger.Reason == assayv1alpha1.ReasonLedgerUnsuitable && strings.Contains(r.Ledger.Found, "http://127.0.0.1") &&
			strings.Contains(r.Ledger.Found, "If-None-Match") && strings.Contains(r.Ledger.Remedy, "object-stores.md")
	})
	code = ""

	clock.Step(scrapePatience)
	want("no scrape yet", func(r Report) bool {
		return !r.Prometheus.OK && strings.Contains(r.Prometheus.Remedy, "prometheus.mode=bundled")
	})
	get(metrics, "/dependencies")
	want("request for another page", func(r Report) bool { return !r.Prometheus.OK })
	get(metrics, "/metrics")
	want("after a scrape", func(r Report) bool { return r.Prometheus.OK })
	clock.Step(2 * scrapePatience)
	want("after the last scrape became old", func(r Report) bool {
		return !r.Prometheus.OK && strings.Contains(r.Prometheus.Found,
			"for 10m")
	})
}
