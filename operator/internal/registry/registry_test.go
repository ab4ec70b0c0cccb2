package registry

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	served "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pushed pushes an image to a new registry, with a revision label unless label is empty.
func pushed(t *testing.T, label string) (host string, digest string) {
	t.Helper()
	server := httptest.NewServer(served.New(served.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(64, 1)
	if err == nil && label != "" {
		image, err = mutate.Config(image, v1.Config{Labels: map[string]string{RevisionLabel: label}})
	}
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(address.Host + "/acme/app:main")
	if err == nil {
		err = remote.Write(reference, image)
	}
	if err != nil {
		t.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return address.Host, hash.String()
}

func TestResolve_DigestAndRevisionOfImage(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for name, tc := range map[string]struct{ label, want string }{
		"the label is its revision":            {commit, commit},
		"without a label its digest is":        {"", "sha256:"},
		"an invalid revision label is ignored": {"$(rm -rf /)", "sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			host, digest := pushed(t, tc.label)
			got := (&Client{Hosts: []string{host}}).Resolve(t.Context(), host+"/acme/app:main")
			if got.Problem != "" || got.Vanished != "" || got.Image != host+"/acme/app@"+digest ||
				!strings.HasPrefix(got.Revision.Revision, tc.want) {
				t.Errorf("it is %+v, want digest %s", got, digest)
			}
		})
	}
}

func TestResolve_FailuresAreClassified(t *testing.T) {
	host, _ := pushed(t, "")
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		switch {
		case strings.Contains(r.URL.Path, "private"):
			status = http.StatusForbidden
		case strings.Contains(r.URL.Path, "broken"):
			status = http.StatusInternalServerError
		}
		w.WriteHeader(status)
	}))
	defer refusing.Close()
	other := strings.TrimPrefix(refusing.URL, "http://")
	gone := httptest.NewServer(http.NotFoundHandler())
	away := strings.TrimPrefix(gone.URL, "http://")
	gone.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx       context.Context
		reference string
		hosts     []string
		vanished  bool
		want      string
	}{
		"a deleted tag has vanished":                     {t.Context(), host + "/acme/app:old", []string{"*"}, true, "has no such tag"},
		"a deleted repository has vanished":              {t.Context(), host + "/acme/gone:main", []string{"*"}, true, "has no such tag"},
		"an image behind credentials":                    {t.Context(), other + "/private/app:main", []string{other}, false, "type Revisions"},
		"a registry that is broken":                      {t.Context(), other + "/broken/app:main", []string{other}, false, "HTTP 500"},
		"an unreachable registry":                        {t.Context(), away + "/acme/app:main", []string{away}, false, "did not answer"},
		"a cancelled context":                            {cancelled, host + "/acme/app:main", []string{"*"}, false, "did not answer"},
		"a registry that the administrator did not name": {t.Context(), host + "/acme/app:main", []string{"ghcr.io"}, false, "it may ask ghcr.io"},
		"no registry at all":                             {t.Context(), host + "/acme/app:main", nil, false, "it may ask none"},
		"Docker's own, which is not the host's name":     {t.Context(), "acme/app:main", []string{"ghcr.io"}, false, "may not ask registry index.docker.io"},
		"an invalid reference":                           {t.Context(), "UPPER/case:tag:tag", []string{"*"}, false, "registry/name:tag"},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Client{Hosts: tc.hosts}).Resolve(tc.ctx, tc.reference)
			text := got.Problem
			if tc.vanished {
				text = got.Vanished
			}
			if !strings.Contains(text, tc.want) || (got.Vanished != "") != tc.vanished || got.Image != "" {
				t.Errorf("it is %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestResolve_DockerRegistryAlias(t *testing.T) {
	if !(&Client{Hosts: []string{"docker.io"}}).may(name.DefaultRegistry) {
		t.Error("docker.io does not allow its own host")
	}
}

func TestUntagged_RemovesTagAndDigest(t *testing.T) {
	for reference, want := range map[string]string{
		"ghcr.io/acme/app:main":           "ghcr.io/acme/app",
		"localhost:5000/app":              "localhost:5000/app",
		"localhost:5000/app:main":         "localhost:5000/app",
		"ghcr.io/acme/app:main@sha256:00": "ghcr.io/acme/app",
		"app":                             "app",
	} {
		if got := untagged(reference); got != want {
			t.Errorf("%s is %s, want %s", reference, got, want)
		}
	}
}

// The author of an image chooses the size of its manifest and configuration, so reading is bounded.
func TestResolve_EndlessAnswerIsTruncated(t *testing.T) {
	const endless = 64 << 20
	manifest := func(size int) string {
		return fmt.Sprintf(`{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
			"config": {"mediaType": "application/vnd.oci.image.config.v1+json", "size": %d, "digest": "sha256:%s"}, "layers": []}`,
			size, strings.Repeat("0", 64))
	}
	for name, tc := range map[string]struct {
		manifest string
		problem  bool
	}{
		"a configuration without end": {manifest(endless), false},
		"a manifest without end":      {strings.Repeat(" ", endless), true},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := tc.manifest
				if strings.Contains(r.URL.Path, "/blobs/") {
					text = strings.Repeat(" ", endless)
				}
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				for len(text) > 0 && r.URL.Path != "/v2/" {
					n, err := io.WriteString(w, text[:min(len(text), 64<<10)])
					sent.Add(int64(n))
					if err != nil {
						return
					}
					text = text[n:]
				}
			}))
			defer server.Close()
			host := strings.TrimPrefix(server.URL, "http://")
			got := (&Client{Hosts: []string{host}}).Resolve(t.Context(), host+"/acme/app:main")
			if (got.Problem != "") != tc.problem || got.Vanished != "" {
				t.Errorf("it is %+v", got)
			}
			// The server also counts the bytes buffered in the connection.
			if most := int64(mostAnswer + 16<<20); sent.Load() > most {
				t.Errorf("%d bytes were read, want at most %d", sent.Load(), most)
			}
		})
	}
}

func TestResolve_DigestOtherThanSHA256IsRejected(t *testing.T) {
	host, _ := pushed(t, "")
	// The status and the runs of a schedule take digests of sha256 only.
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		if r.URL.Path != "/v2/" {
			_, _ = io.WriteString(w, "{}")
		}
	}))
	defer served.Close()
	other := strings.TrimPrefix(served.URL, "http://")
	sum := sha512.Sum512([]byte("{}"))
	got := (&Client{Hosts: []string{"*"}}).Resolve(t.Context(), other+"/acme/app@sha512:"+hex.EncodeToString(sum[:]))
	if !strings.Contains(got.Problem, "a digest of sha256 is allowed") || got.Image != "" {
		t.Errorf("it is %+v", got)
	}
	if got := (&Client{Hosts: []string{"*"}}).Resolve(t.Context(), host+"/acme/app:main"); !got.WellFormed() {
		t.Errorf("it is %+v", got)
	}
}
