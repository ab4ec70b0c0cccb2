package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// TestGuard_StatusOfAToken uses a simulated API server with two tokens, one of which may get /metrics.
func TestGuard_StatusOfAToken(t *testing.T) {
	var asked []authorizationv1.SubjectAccessReviewSpec
	away := false
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if away {
			http.Error(w, "{}", http.StatusServiceUnavailable)
			return
		}
		switch r.URL.Path {
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			var review authenticationv1.TokenReview
			decode(t, r, &review)
			user := map[string]string{"of-prometheus": "prometheus", "of-a-tenant": "tenant"}[review.Spec.Token]
			review.Status.Authenticated = user != ""
			review.Status.User = authenticationv1.UserInfo{
				Username: user, UID: "1", Groups: []string{"scrapers"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}},
			}
			encode(t, w, review)
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			var review authorizationv1.SubjectAccessReview
			decode(t, r, &review)
			asked = append(asked, review.Spec)
			review.Status.Allowed = review.Spec.User == "prometheus" &&
				*review.Spec.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
			encode(t, w, review)
		default:
			t.Errorf("asked for %s", r.URL.Path)
		}
	}))
	defer api.Close()
	filter, err := newGuard(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, api.Client())
	if err != nil {
		t.Fatal(err)
	}
	served := 0
	guarded, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, path, authorization string
		away                        bool
		want                        int
	}{
		"an authorized token":                  {authorization: "Bearer of-prometheus", want: http.StatusOK},
		"the scheme in lower case":             {authorization: "bearer  of-prometheus", want: http.StatusOK},
		"a valid token without the permission": {authorization: "Bearer of-a-tenant", want: http.StatusForbidden},
		"another path":                         {path: "/debug", authorization: "Bearer of-prometheus", want: http.StatusForbidden},
		"another method":                       {method: http.MethodPost, authorization: "Bearer of-prometheus", want: http.StatusForbidden},
		"an invalid token":                     {authorization: "Bearer guessed", want: http.StatusUnauthorized},
		"no token":                             {want: http.StatusUnauthorized},
		"an empty token":                       {authorization: "Bearer ", want: http.StatusUnauthorized},
		"a password":                           {authorization: "Basic of-prometheus", want: http.StatusUnauthorized},
		"an unreachable API server":            {away: true, authorization: "Bearer of-prometheus", want: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			before := served
			away = c.away
			if c.method == "" {
				c.method = http.MethodGet
			}
			if c.path == "" {
				c.path = "/metrics"
			}
			request := httptest.NewRequest(c.method, c.path, nil)
			if c.authorization != "" {
				request.Header.Set("Authorization", c.authorization)
			}
			response := httptest.NewRecorder()
			guarded.ServeHTTP(response, request)
			if response.Code != c.want {
				t.Errorf("status %d, want %d: %s", response.Code, c.want, response.Body)
			}
			if let := served > before; let != (c.want == http.StatusOK) {
				t.Errorf("the request was served: %t", let)
			}
		})
	}
	for _, spec := range asked {
		if spec.UID != "1" || len(spec.Groups) != 1 || !maps.EqualFunc(spec.Extra, map[string]authorizationv1.ExtraValue{"pod": {"p"}},
			func(a, b authorizationv1.ExtraValue) bool { return len(a) == 1 && a[0] == b[0] }) {
			t.Errorf("asked for the access of %+v without the user's attributes of the token", spec)
		}
	}
}

// A flood of requests with invalid tokens must not delay scrapes, because all reviews share one limit.
func TestGuard_FloodDoesNotDelayOtherRequests(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "tokenreviews") {
			var review authenticationv1.TokenReview
			decode(t, r, &review)
			review.Status.Authenticated = review.Spec.Token == "of-prometheus"
			encode(t, w, review)
			return
		}
		var review authorizationv1.SubjectAccessReview
		decode(t, r, &review)
		review.Status.Allowed = true
		encode(t, w, review)
	}))
	defer api.Close()
	filter, err := newGuard(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, api.Client())
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, address, token string) int {
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
		request.RemoteAddr = address
		request.Header.Set("Authorization", "Bearer "+token)
		response := httptest.NewRecorder()
		guarded.ServeHTTP(response, request)
		return response.Code
	}
	ctx, stop := context.WithCancel(t.Context())
	answers := [600]atomic.Int64{}
	var flood sync.WaitGroup
	for i := range 100 {
		flood.Go(func() {
			for ctx.Err() == nil {
				answers[ask(ctx, fmt.Sprintf("10.0.0.7:%d", 1024+i), "guessed")].Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	for began := time.Now(); answers[http.StatusTooManyRequests].Load()+answers[http.StatusInternalServerError].Load() == 0; {
		if time.Since(began) > time.Minute {
			stop()
			t.Fatal("a flood of invalid tokens is not limited")
		}
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		began := time.Now()
		if status := ask(ctx, "10.0.0.8:40000", "of-prometheus"); status != http.StatusOK {
			t.Errorf("Prometheus is answered %d after %s", status, time.Since(began))
		}
	}
	if status := ask(ctx, "10.0.0.7:2", "guessed"); status == http.StatusOK {
		t.Errorf("a request with an invalid token has status %d", status)
	}
	if failed := answers[http.StatusInternalServerError].Load(); failed > 0 {
		t.Errorf("%d requests of the flood are errors, each with a line in the log", failed)
	}
	stop()
	flood.Wait()
}

func TestWaiting_RemovesAFinishedRequest(t *testing.T) {
	waiting := &lines{of: map[string]*line{}}
	first, mine := waiting.wait(t.Context(), "a")
	if !mine {
		t.Fatal("the first request has no turn")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, mine := waiting.wait(gone, "a"); mine {
		t.Error("two requests of an address are active")
	}
	if other, mine := waiting.wait(t.Context(), "b"); !mine {
		t.Error("a request waits for one of another address")
	} else {
		other()
	}
	first()
	if len(waiting.of) > 0 {
		t.Errorf("%d empty queues are retained", len(waiting.of))
	}
}

func decode(t *testing.T, r *http.Request, into any) {
	t.Helper()
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		t.Error(err)
	}
}

func encode(t *testing.T, w http.ResponseWriter, value any) {
	t.Helper()
	if err := json.NewEncoder(w).Encode(value); err != nil {
		t.Error(err)
	}
}
