package metrics

import (
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// filterProvider creates the authentication filter of the endpoint.
type filterProvider = func(*rest.Config, *http.Client) (metricsserver.Filter, error)

// ServerOptions returns the options of the metrics server. A secure one uses TLS with a self-signed certificate, and requires a token with
// permission to get the path. The filter is passed to seen.
func ServerOptions(address string, secure bool, seen filterProvider) metricsserver.Options {
	out := metricsserver.Options{BindAddress: address, FilterProvider: seen}
	if !secure {
		return out
	}
	out.SecureServing = true
	// Disable HTTP/2, which lets one client hold many requests open and which scrapers do not require.
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
