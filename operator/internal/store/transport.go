package store

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/minio/minio-go/v7"
)

// NewRoundTripper returns the HTTP transport for requests to the store and its admin API.
func NewRoundTripper(secure bool, options Options) (http.RoundTripper, error) {
	switch {
	case !secure:
		transport, err := minio.DefaultTransport(false)
		return witness{transport}, err
	case options.CA != nil:
		return witness{&trust{pem: options.CA, server: options.ServerName}}, nil
	default:
		return witness{&trust{file: cmp.Or(options.CAFile, os.Getenv("AWS_CA_BUNDLE")), server: options.ServerName}}, nil
	}
}

// trust is a transport that trusts one certificate authority. It reads changed certificates again, so that a replacement needs no restart.
type trust struct {
	// file holds the authority's certificates, or pem does; with neither, the system's authorities are trusted.
	file string
	pem  []byte
	// server is the expected name in the store's certificate; empty means the host of the URL.
	server string

	mutex   sync.Mutex
	loaded  []byte
	current *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *trust) RoundTrip(request *http.Request) (*http.Response, error) {
	transport, err := t.transport()
	if err != nil {
		return nil, err
	}
	return transport.RoundTrip(request)
}

func (t *trust) transport() (*http.Transport, error) {
	pem := t.pem
	if t.file != "" {
		var err error
		if pem, err = os.ReadFile(t.file); err != nil {
			return nil, fmt.Errorf("%w: %w", errCAFile, err)
		}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.current != nil && bytes.Equal(pem, t.loaded) {
		return t.current, nil
	}
	made, err := newTransport(pem, t.server)
	if err != nil {
		if t.file != "" {
			err = fmt.Errorf("%w in %s", err, t.file)
		}
		return nil, err
	}
	if t.current != nil {
		// Connections verified with the old authority are not reused.
		t.current.CloseIdleConnections()
	}
	t.current, t.loaded = made, pem
	return made, nil
}

func newTransport(pem []byte, server string) (*http.Transport, error) {
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig.ServerName = server
	if pem == nil {
		return transport, nil
	}
	// The system's authorities are not added. Argo's executor behaves the same, so a certificate works in both or in neither.
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: none found", errCAFile)
	}
	transport.TLSClientConfig.RootCAs = pool
	return transport, nil
}
