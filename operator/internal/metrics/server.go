package metrics

import (
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// filterProvider makes what stands before the metrics.
type filterProvider = func(*rest.Config, *http.Client) (metricsserver.Filter, error)

// ServerOptions are those of the server of the metrics. A secure one speaks TLS, with a certificate that it makes itself, and answers
// only to tokens that the API server knows and allows to get the path. What it answers is shown to seen.
func ServerOptions(address string, secure bool, seen filterProvider) metricsserver.Options {
	out := metricsserver.Options{BindAddress: address, FilterProvider: seen}
	if !secure {
		return out
	}
	out.SecureServing = true
	// HTTP/2 lets one client hold many requests open, and nobody who reads metrics needs it.
	out.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	out.FilterProvider = func(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
		reviewed, guardErr := newGuard(config, client)
		notice, noticeErr := seen(config, client)
		if err := errors.Join(guardErr, noticeErr); err != nil {
			return nil, err
		}
		return func(log logr.Logger, next http.Handler) (http.Handler, error) {
			noticed, err := notice(log, next)
			if err != nil {
				return nil, err
			}
			return reviewed(log, noticed)
		}, nil
	}
	return out
}
