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

// pushed pushes an image to a new registry, with a revision label unless that is empty.
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

func TestClient_ResolvesDigestAndRevision(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for name, tc := range map[string]struct{ label, want string }{
		"the label is the revision":                  {commit, commit},
		"without a label the digest is the revision": {"", "sha256:"},
		"an invalid label is ignored":                {"$(rm -rf /)", "sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			host, digest := pushed(t, tc.label)
			got := (&Client{Hosts: []string{host}}).Resolve(t.Context(), host+"/acme/app:main")
			if got.Problem != "" || got.Vanished != "" || got.Image != host+"/acme/app@"+digest ||
				!strings.HasPrefix(got.Revision.Revision, tc.want) {
				t.Errorf("got %+v, want digest %s", got, digest)
			}
		})
	}
}

func TestClient_FailuresAreClassified(t *testing.T) {
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
		"an image that needs credentials":                {t.Context(), other + "/private/app:main", []string{other}, false, "type Revisions"},
		"a registry with an internal error":              {t.Context(), other + "/broken/app:main", []string{other}, false, "HTTP 500"},
		"an unreachable registry":                        {t.Context(), away + "/acme/app:main", []string{away}, false, "did not answer"},
		"a canceled reconcile":                           {cancelled, host + "/acme/app:main", []string{"*"}, false, "did not answer"},
		"a registry that the administrator did not name": {t.Context(), host + "/acme/app:main", []string{"ghcr.io"}, false, "allowed: ghcr.io"},
		"no registry is allowed":                         {t.Context(), host + "/acme/app:main", nil, false, "allowed: none"},
		"Docker Hub, whose name is not its host's name":  {t.Context(), "acme/app:main", []string{"ghcr.io"}, false, "may not contact registry index.docker.io"},
		"an invalid reference":                           {t.Context(), "UPPER/case:tag:tag", []string{"*"}, false, "registry/name:tag"},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Client{Hosts: tc.hosts}).Resolve(tc.ctx, tc.reference)
			text := got.Problem
			if tc.vanished {
				text = got.Vanished
			}
			if !strings.Contains(text, tc.want) || (got.Vanished != "") != tc.vanished || got.Image != "" {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestClient_DockerHubIsAllowedByItsName(t *testing.T) {
	if !(&Client{Hosts: []string{"docker.io"}}).may(name.DefaultRegistry) {
		t.Error("docker.io does not allow its host")
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
			t.Errorf("%s becomes %s, want %s", reference, got, want)
		}
	}
}

// Anyone with push rights chooses the size of a manifest, so the client reads only a bounded part of it.
func TestClient_EndlessResponseIsCutOff(t *testing.T) {
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
		"an endless configuration": {manifest(endless), false},
		"an endless manifest":      {strings.Repeat(" ", endless), true},
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
				t.Errorf("got %+v", got)
			}
			// Data in socket buffers counts as sent, too.
			if most := int64(mostAnswer + 16<<20); sent.Load() > most {
				t.Errorf("%d bytes were sent, want at most %d", sent.Load(), most)
			}
		})
	}
}

func TestClient_DigestOtherThanSHA256IsRejected(t *testing.T) {
	host, _ := pushed(t, "")
	// Status and runs of a schedule accept sha256 digests only.
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
	if !strings.Contains(got.Problem, "only a sha256 digest is allowed") || got.Image != "" {
		t.Errorf("got %+v", got)
	}
	if got := (&Client{Hosts: []string{"*"}}).Resolve(t.Context(), host+"/acme/app:main"); !got.WellFormed() {
		t.Errorf("got %+v", got)
	}
}
