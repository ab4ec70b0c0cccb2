// Package registry resolves the tag of an image to its current digest.
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

// RevisionLabel is the label in which the OCI image format records the source revision of an image.
const RevisionLabel = "org.opencontainers.image.revision"

// patience is the timeout of a registry, and mostAnswer the largest accepted response in bytes. A manifest or configuration takes a few
// KiB, but anyone with push rights chooses its size.
const (
	patience   = 20 * time.Second
	mostAnswer = 4 << 20
)

// Client resolves images at registries.
type Client struct {
	// Hosts are the registries that may be contacted; a * allows all. The operator has network access that authors of schedules may lack,
	// so it contacts only registries that its administrator has allowed.
	Hosts []string
	// Keychain provides credentials; nil means anonymous access.
	Keychain authn.Keychain
}

// Resolve looks up the digest and the revision of an image reference. Failures are reported in the returned Image.
func (c *Client) Resolve(ctx context.Context, reference string) schedule.Image {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return problem("invalid image %q: %v; write it as registry/name:tag", reference, err)
	}
	host := ref.Context().RegistryStr()
	if !c.may(host) {
		return problem("the operator may not contact registry %s for %s, allowed: %s; take another image, have CI report revisions by digest "+
			"(a source of type Revisions), or ask the administrator to add the registry (--registries)", host, reference,
			cmp.Or(strings.Join(c.Hosts, ", "), "none"))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The library does not retry, because the caller requeues.
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
		return problem("invalid image %q: registry %s resolves it to %s, and only a sha256 digest is allowed: write it as registry/name:tag",
			reference, host, digest)
	}
	return out
}

// bounded cuts off responses that are larger than mostAnswer.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, mostAnswer)
	}
	return response, err
}

func (c *Client) may(host string) bool {
	// Docker Hub's registry name differs from its host name.
	return slices.ContainsFunc(c.Hosts, func(h string) bool {
		return h == "*" || h == host || h == "docker.io" && host == name.DefaultRegistry
	})
}

// labelled returns the value of RevisionLabel of an image, or "". Of a multi-platform index it reads the library's own platform, because
// all platforms are built from one revision.
func labelled(descriptor *remote.Descriptor) (string, error) {
	image, err := descriptor.Image()
	if err == nil {
		config, failed := image.ConfigFile()
		if failed == nil {
			return config.Config.Labels[RevisionLabel], nil
		}
		err = failed
	}
	// An image that cannot be parsed has no label. If the registry failed to answer, the label is unknown and the error is returned.
	var answered *transport.Error
	var network interface{ Timeout() bool }
	if errors.As(err, &answered) && answered.StatusCode >= http.StatusInternalServerError || errors.As(err, &network) {
		return "", err
	}
	return "", nil
}

// unanswered distinguishes a deleted image from an unreachable registry.
func unanswered(reference, host string, err error) schedule.Image {
	var answered *transport.Error
	if !errors.As(err, &answered) {
		return problem("registry %s did not answer for %s: %v", host, reference, err)
	}
	switch answered.StatusCode {
	case http.StatusNotFound:
		return schedule.Image{Vanished: fmt.Sprintf("%s does not exist: registry %s has no such tag", reference, host)}
	case http.StatusUnauthorized, http.StatusForbidden:
		return problem("registry %s does not serve %s without credentials, and the operator has none: correct the name, or have CI report "+
			"revisions by digest (a source of type Revisions)", host, reference)
	default:
		return problem("registry %s answered %s with HTTP %d: %v", host, reference, answered.StatusCode, err)
	}
}

func problem(format string, args ...any) schedule.Image {
	return schedule.Image{Problem: fmt.Sprintf(format, args...)}
}

// untagged returns a reference without its tag and digest.
func untagged(reference string) string {
	out, _, _ := strings.Cut(reference, "@")
	if colon := strings.LastIndex(out, ":"); colon > strings.LastIndex(out, "/") {
		out = out[:colon]
	}
	return out
}
