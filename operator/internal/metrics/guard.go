package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// reviewTimeout is the timeout of the API server's reviews of a request.
const reviewTimeout = 10 * time.Second

// guard authenticates requests by token and authorizes them for the path, with reviews by the API server. There is no cache, because
// scrapes are rare and a revoked permission takes effect at once. It replaces controller-runtime's filter, whose API server authenticator
// takes a third of the operator's memory.
type guard struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	lines  *lines
}

// newGuard uses clients with a separate rate limit, so that a flood of requests does not consume the operator's.
func newGuard(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = 5, 10, nil
	authentication, authenticationErr := authenticationclient.NewForConfigAndClient(config, client)
	authorization, authorizationErr := authorizationclient.NewForConfigAndClient(config, client)
	if err := errors.Join(authenticationErr, authorizationErr); err != nil {
		return nil, err
	}
	reviews := guard{authentication.TokenReviews(), authorization.SubjectAccessReviews(), &lines{of: map[string]*line{}}}
	return reviews.filter, nil
}

// lines queues requests for review by client address. The rate limit is shared, and without queues an address that sends many requests
// with invalid tokens would delay all others.
type lines struct {
	mutex sync.Mutex
	of    map[string]*line
}

// line is the queue of an address: turn is held by one request, and the count includes it and the waiting ones.
type line struct {
	turn   chan struct{}
	length int
}

// longestLine is the maximum queue length of an address. Further requests are rejected.
const longestLine = 16

// wait blocks until it is the turn of a request from an address, and returns a release function. It returns false if the queue is full or
// the request was cancelled.
func (l *lines) wait(ctx context.Context, address string) (leave func(), mine bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	own := l.of[address]
	if own == nil {
		own = &line{turn: make(chan struct{}, 1)}
		l.of[address] = own
	}
	if own.length == longestLine {
		return nil, false
	}
	own.length++
	l.mutex.Unlock()
	select {
	case own.turn <- struct{}{}:
		mine = true
	case <-ctx.Done():
	}
	l.mutex.Lock()
	if !mine {
		l.left(address, own)
		return nil, false
	}
	return func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		<-own.turn
		l.left(address, own)
	}, true
}

func (l *lines) left(address string, own *line) {
	if own.length--; own.length == 0 {
		delete(l.of, address)
	}
}

func (g guard) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
		defer cancel()
		status, err := g.inLine(ctx, r)
		switch {
		case r.Context().Err() != nil: // The client has closed the connection.
		case err != nil:
			log.Error(err, "Cannot review a request", "path", r.URL.Path)
			http.Error(w, "review by the API server failed", http.StatusInternalServerError)
		case status != http.StatusOK:
			http.Error(w, http.StatusText(status), status)
		default:
			next.ServeHTTP(w, r)
		}
	}), nil
}

// inLine reviews a request in its turn.
func (g guard) inLine(ctx context.Context, r *http.Request) (int, error) {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	leave, mine := g.lines.wait(ctx, address)
	if !mine {
		return http.StatusTooManyRequests, nil
	}
	defer leave()
	return g.review(ctx, r)
}

// review returns the HTTP status for authentication and authorization of the request.
func (g guard) review(ctx context.Context, r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	known, err := g.tokens.Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review the token: %w", err)
	}
	if !known.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := known.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	allowed, err := g.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review the access of %q: %w", user.Username, err)
	}
	if !allowed.Status.Allowed || allowed.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
