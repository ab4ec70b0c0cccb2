// Package registry resolves an image tag to its current digest.
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

// RevisionLabel is the OCI label with the revision that an image was built from.
const RevisionLabel = "org.opencontainers.image.revision"

// patience is the timeout of a registry request. mostAnswer limits a response in bytes: manifests and configurations take some KiB, and
// the size is chosen by the author of the image.
const (
	patience   = 20 * time.Second
	mostAnswer = 4 << 20
)

// Client resolves references at registries.
type Client struct {
	// Hosts are the registries that the operator may query; a * allows any. Tenants could otherwise use the operator to reach hosts that
	// they cannot reach themselves.
	Hosts []string
	// Keychain holds credentials; nil means anonymous.
	Keychain authn.Keychain
}

// Resolve returns the digest and the revision of a reference, or the reason why it has none.
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
	// No retries here, because the caller requeues.
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
		return problem("invalid image %q: registry %s reports digest %s, and only a digest of sha256 is allowed: write it as registry/name:tag", reference,
			host, digest)
	}
	return out
}

// bounded truncates responses that exceed mostAnswer.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, mostAnswer)
	}
	return response, err
}

func (c *Client) may(host string) bool {
	// The alias docker.io stands for the host index.docker.io.
	return slices.ContainsFunc(c.Hosts, func(h string) bool {
		return h == "*" || h == host || h == "docker.io" && host == name.DefaultRegistry
	})
}

// labelled returns the revision label of an image; empty without one. For a multi-platform index it reads the library's default platform,
// because all platforms are built from one revision.
func labelled(descriptor *remote.Descriptor) (string, error) {
	image, err := descriptor.Image()
	if err == nil {
		config, failed := image.ConfigFile()
		if failed == nil {
			return config.Config.Labels[RevisionLabel], nil
		}
		err = failed
	}
	// Content that is not an image has no label. After a failed request the label is unknown.
	var answered *transport.Error
	var network interface{ Timeout() bool }
	if errors.As(err, &answered) && answered.StatusCode >= http.StatusInternalServerError || errors.As(err, &network) {
		return "", err
	}
	return "", nil
}

// unanswered distinguishes a deleted image from a registry that did not respond.
func unanswered(reference, host string, err error) schedule.Image {
	var answered *transport.Error
	if !errors.As(err, &answered) {
		return problem("registry %s did not answer for %s: %v", host, reference, err)
	}
	switch answered.StatusCode {
	case http.StatusNotFound:
		return schedule.Image{Vanished: fmt.Sprintf("%s does not exist: registry %s has no such tag", reference, host)}
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

// untagged returns a reference without its tag and digest.
func untagged(reference string) string {
	out, _, _ := strings.Cut(reference, "@")
	if colon := strings.LastIndex(out, ":"); colon > strings.LastIndex(out, "/") {
		out = out[:colon]
	}
	return out
}
