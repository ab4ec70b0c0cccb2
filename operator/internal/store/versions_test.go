package store

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"assay.dev/assay/operator/test/storetest"
)

// An outage during a listing of versions does not mean that no object was overwritten.
func TestFirsts_OutageIsNotTheAbsenceOfVersions(t *testing.T) {
	t.Parallel() // It waits for timeouts.
	const page = `<ListVersionsResult><Name>ledger</Name><IsTruncated>%v</IsTruncated><NextKeyMarker>attempts/a</NextKeyMarker>` +
		`<NextVersionIdMarker>1</NextVersionIdMarker><EncodingType>url</EncodingType>` +
		`<Version><Key>attempts/a</Key><VersionId>2</VersionId></Version><Version><Key>attempts/a</Key><VersionId>1</VersionId></Version>` +
		`</ListVersionsResult>`
	const objects = "<ListBucketResult><Contents/></ListBucketResult>"
	whole, first := fmt.Sprintf(page, false), fmt.Sprintf(page, true)
	answer := func(status int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	short := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)+100))
			_, _ = io.WriteString(w, text)
		}
	}
	refuses := func(status int, code string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { storetest.Fail(w, status, code) }
	}
	for name, tc := range map[string]struct {
		pages []func(http.ResponseWriter)
		over  int
		away  bool
	}{
		"it lists them":                          {[]func(http.ResponseWriter){answer(200, whole)}, 1, false},
		"it lists them on several pages":         {[]func(http.ResponseWriter){answer(200, first), answer(200, whole)}, 1, false},
		"it denies access to them":               {[]func(http.ResponseWriter){refuses(403, "AccessDenied")}, 0, false},
		"it does not implement them":             {[]func(http.ResponseWriter){refuses(501, "NotImplemented")}, 0, false},
		"it lists objects in place of them":      {[]func(http.ResponseWriter){answer(200, objects)}, 0, false},
		"it is unreachable":                      {[]func(http.ResponseWriter){refuses(503, "ServiceUnavailable")}, 0, true},
		"it throttles requests":                  {[]func(http.ResponseWriter){refuses(429, "TooManyRequests")}, 0, true},
		"its response is cut off":                {[]func(http.ResponseWriter){short(whole[:len(whole)/2])}, 0, true},
		"its response ends early":                {[]func(http.ResponseWriter){answer(200, whole[:len(whole)/2])}, 0, true},
		"its second page is cut off":             {[]func(http.ResponseWriter){answer(200, first), short(whole[:len(whole)/2])}, 0, true},
		"it denies access to the second page":    {[]func(http.ResponseWriter){answer(200, first), refuses(403, "AccessDenied")}, 0, true},
		"its connections end without a response": {[]func(http.ResponseWriter){func(http.ResponseWriter) { panic(http.ErrAbortHandler) }}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at := 0
				if r.URL.Query().Get("key-marker") != "" {
					at = len(tc.pages) - 1
				}
				tc.pages[at](w)
			}))
			defer server.Close()
			store, err := Open(t.Context(), storetest.URL(server.URL, storetest.Bucket, ""), fakeOptions)
			if err != nil {
				t.Fatal(err)
			}
			firsts, err := store.(Versioned).Firsts(t.Context(), "attempts/")
			if errors.Is(err, ErrUnreachable) != tc.away || err != nil && !tc.away || len(firsts) != tc.over {
				t.Errorf("%v, %v; want %d, and unreachable: %v", firsts, err, tc.over, tc.away)
			}
		})
	}
}
