// Package registry looks up which digest a tag of an image names now.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/schedule"
)

// RevisionLabel is where the OCI image format keeps the revision that an image was built from.
const RevisionLabel = "org.opencontainers.image.revision"

// patience is how long a registry may take to answer, and mostAnswer how many bytes it may answer with: what describes an image takes some
// KiB, and whoever may push one says how much it is.
const (
	patience   = 20 * time.Second
	mostAnswer = 4 << 20
)

// Client asks registries.
type Client struct {
	// Hosts are those that may be asked; a * is any. An operator asks on behalf of people who could not reach what it can, so it asks
	// none that its administrator did not name.
	Hosts []string
	// Keychain has credentials; nil is none.
	Keychain authn.Keychain
}

// Resolve looks up what a reference names.
func (c *Client) Resolve(ctx context.Context, reference string) schedule.Image {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return problem("invalid image %q: %v; write it as registry/name:tag", reference, err)
	}
	host := ref.Context().RegistryStr()
	if !c.may(host) {
		return problem("the operator may not ask registry %s for %s: it may ask %s; take another image, have CI report revisions by digest "+
			"(a source of type Revisions), or ask the administrator to add the registry (--registries)", host, reference,
			cmp.Or(strings.Join(c.Hosts, ", "), "none"))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Whoever asks asks again later.
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(bounded{remote.DefaultTransport}),
		remote.WithRetryStatusCodes(), remote.WithRetryPredicate(func(error) bool { return false })}
	if c.Keychain != nil {
		options = append(options, remote.WithAuthFromKeychain(c.Keychain))
	}
	descriptor, err := remote.Get(ref, options...)
	if err != nil {
		return unanswered(reference, host, err)
	}
	digest := descriptor.Digest.String()
	out := schedule.Image{Revision: assayv1alpha1.Revision{Revision: digest, Image: untagged(reference) + "@" + digest}}
	revision, err := labelled(descriptor)
	if err != nil {
		return unanswered(reference, host, err)
	}
	if named := (assayv1alpha1.Revision{Revision: revision, Image: out.Image}); named.WellFormed() {
		return schedule.Image{Revision: named}
	}
	if !out.Revision.WellFormed() {
		return problem("invalid image %q: registry %s names it %s, and a digest of sha256 is allowed: write it as registry/name:tag", reference,
			host, digest)
	}
	return out
}

// bounded ends an answer that is longer than any description of an image.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, mostAnswer)
	}
	return response, err
}

func (c *Client) may(host string) bool {
	// The name of Docker's registry is not that of its host.
	return slices.ContainsFunc(c.Hosts, func(h string) bool {
		return h == "*" || h == host || h == "docker.io" && host == name.DefaultRegistry
	})
}

// labelled is the revision that an image names as its own; empty where it names none. An index of several platforms is asked for the
// library's own platform: all are built from one revision.
func labelled(descriptor *remote.Descriptor) (string, error) {
	image, err := descriptor.Image()
	if err == nil {
		config, failed := image.ConfigFile()
		if failed == nil {
			return config.Config.Labels[RevisionLabel], nil
		}
		err = failed
	}
	// What cannot be read as an image has no label; what was not answered may have one.
	var answered *transport.Error
	var network interface{ Timeout() bool }
	if errors.As(err, &answered) && answered.StatusCode >= http.StatusInternalServerError || errors.As(err, &network) {
		return "", err
	}
	return "", nil
}

// unanswered distinguishes an image that is gone from a registry that did not answer.
func unanswered(reference, host string, err error) schedule.Image {
	var answered *transport.Error
	if !errors.As(err, &answered) {
		return problem("registry %s did not answer for %s: %v", host, reference, err)
	}
	switch answered.StatusCode {
	case http.StatusNotFound:
		return schedule.Image{Vanished: fmt.Sprintf("%s is gone: registry %s knows no such tag", reference, host)}
	case http.StatusUnauthorized, http.StatusForbidden:
		return problem("registry %s does not show %s without credentials, and the operator has none: correct the name, or have CI report "+
			"revisions by digest (a source of type Revisions)", host, reference)
	default:
		return problem("registry %s answered %s with HTTP %d: %v", host, reference, answered.StatusCode, err)
	}
}

func problem(format string, args ...any) schedule.Image {
	return schedule.Image{Problem: fmt.Sprintf(format, args...)}
}

// untagged is a reference without its tag and digest.
func untagged(reference string) string {
	out, _, _ := strings.Cut(reference, "@")
	if colon := strings.LastIndex(out, ":"); colon > strings.LastIndex(out, "/") {
		out = out[:colon]
	}
	return out
}
