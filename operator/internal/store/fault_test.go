package store

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/test/storetest"
)

// Every unusable store that a user can repair has its own cause, tested with real connections.
func TestFault_CauseAndRemedyOfEachFailure(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	hour := time.Hour
	now := time.Now()
	trusting := fakeOptions
	trusting.CA = ours.pem()
	refusing := func(status int, code string) func(t *testing.T) (string, Options) {
		return func(t *testing.T) (string, Options) {
			fake, endpoint := storetest.StartS3(t)
			fake.Refuse = func(*http.Request) (int, string) { return status, code }
			return storetest.URL(endpoint, storetest.Bucket, ""), fakeOptions
		}
	}
	overTLS := func(from, until time.Time, name string, options Options) func(t *testing.T) (string, Options) {
		return func(t *testing.T) (string, Options) {
			return storetest.URL(startTLS(t, storetest.NewS3(), ours.sign(t, from, until, name)), storetest.Bucket, ""), options
		}
	}
	cases := map[string]struct {
		store func(t *testing.T) (string, Options)
		want  Cause
		says  string
	}{
		"a valid certificate":                 {overTLS(now.Add(-hour), now.Add(hour), "", trusting), "", ""},
		"an expired certificate":              {overTLS(now.Add(-2*hour), now.Add(-hour), "", trusting), CauseExpired, "renew the store's certificate"},
		"a certificate that is not yet valid": {overTLS(now.Add(hour), now.Add(2*hour), "", trusting), CauseNotYetValid, "clocks"},
		"an unknown authority": {
			func(t *testing.T) (string, Options) {
				return storetest.URL(startTLS(t, storetest.NewS3(), others.valid(t)), storetest.Bucket, ""), trusting
			}, CauseAuthority, "objectStore.external.ca",
		},
		"a missing authority":            {overTLS(now.Add(-hour), now.Add(hour), "", fakeOptions), CauseAuthority, "AWS_CA_BUNDLE"},
		"a certificate for another name": {overTLS(now.Add(-hour), now.Add(hour), "minio.example.com", trusting), CauseHostname, "IP SANs"},
		"a name allowed by the caller":   {overTLS(now.Add(-hour), now.Add(hour), "minio.example.com", Options{AccessKey: storetest.AccessKey, SecretKey: storetest.SecretKey, Timeout: fakeOptions.Timeout, CA: ours.pem(), ServerName: "minio.example.com"}), "", ""},
		"https to a store without TLS": {
			func(t *testing.T) (string, Options) {
				_, endpoint := storetest.StartS3(t)
				return storetest.URL(strings.Replace(endpoint, "http://", "https://", 1), storetest.Bucket, ""), trusting
			}, CauseNotTLS, "objectStore.external.secure=false",
		},
		"http to a store with TLS": {
			func(t *testing.T) (string, Options) {
				endpoint := startTLS(t, storetest.NewS3(), ours.valid(t))
				return storetest.URL(strings.Replace(endpoint, "https://", "http://", 1), storetest.Bucket, ""), trusting
			}, CauseNeedsTLS, "objectStore.external.secure=true",
		},
		"a missing CA file": {overTLS(now.Add(-hour), now.Add(hour), "", Options{AccessKey: storetest.AccessKey, SecretKey: storetest.SecretKey, Timeout: time.Second, CAFile: "/no/such/ca.crt"}), CauseCAFile, "/no/such/ca.crt"},
		"a CA file without a certificate": {
			func(t *testing.T) (string, Options) {
				file := filepath.Join(t.TempDir(), "ca.crt")
				write(t, file, []byte("none"))
				return storetest.URL(startTLS(t, storetest.NewS3(), ours.valid(t)), storetest.Bucket, ""),
					Options{AccessKey: storetest.AccessKey, SecretKey: storetest.SecretKey, Timeout: time.Second, CAFile: file}
			}, CauseCAFile, "PEM",
		},
		"an unknown host": {
			func(*testing.T) (string, Options) {
				return storetest.URL("http://no-such-host.invalid:9000", storetest.Bucket, ""), fakeOptions
			}, CauseName, "no-such-host.invalid",
		},
		"a port without a listener": {
			func(t *testing.T) (string, Options) {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				listener.Close()
				return storetest.URL("http://"+listener.Addr().String(), storetest.Bucket, ""), fakeOptions
			}, CauseRefused, "connection refused",
		},
		"a store that does not respond": {
			func(t *testing.T) (string, Options) {
				fake, endpoint := storetest.StartS3(t)
				fake.Delay = time.Second
				return storetest.URL(endpoint, storetest.Bucket, ""), Options{AccessKey: storetest.AccessKey, SecretKey: storetest.SecretKey,
					Timeout: 100 * time.Millisecond}
			}, CauseTimeout, "network policy",
		},
		"an unknown access key":         {refusing(http.StatusForbidden, "InvalidAccessKeyId"), CauseAccessKey, "AWS_ACCESS_KEY_ID"},
		"a wrong secret key":            {refusing(http.StatusForbidden, "SignatureDoesNotMatch"), CauseSecretKey, "AWS_SECRET_ACCESS_KEY"},
		"a bucket without permission":   {refusing(http.StatusForbidden, "AccessDenied"), CauseDenied, "s3:ListBucket"},
		"expired temporary credentials": {refusing(http.StatusBadRequest, "ExpiredToken"), CauseToken, "renew"},
		"clocks that differ":            {refusing(http.StatusForbidden, "RequestTimeTooSkewed"), CauseClock, "clock"},
		"another region":                {refusing(http.StatusBadRequest, "AuthorizationHeaderMalformed"), CauseRegion, "objectStore.region"},
		"a missing bucket":              {refusing(http.StatusNotFound, "NoSuchBucket"), CauseBucket, "create the bucket"},
		"a full store":                  {refusing(http.StatusInsufficientStorage, "XMinioStorageFull"), CauseFull, "room"},
		"an unknown error code":         {refusing(http.StatusTeapot, "Teapot"), CauseOther, "Teapot"},
		"a server without the S3 API":   {htmlServer, CauseOther, "418"},
		"no credentials in the mounted files": {func(t *testing.T) (string, Options) {
			_, e := storetest.StartS3(t)
			return storetest.URL(e, storetest.Bucket, ""), Options{CredentialsDir: t.TempDir(), Timeout: time.Second}
		}, CauseNoCredentials, "accessKey"},
		"no credentials at all": {
			func(t *testing.T) (string, Options) {
				t.Setenv("AWS_ACCESS_KEY_ID", "")
				fake, endpoint := storetest.StartS3(t)
				fake.Refuse = func(*http.Request) (int, string) { return http.StatusForbidden, "AccessDenied" }
				return storetest.URL(endpoint, storetest.Bucket, ""), Options{Timeout: time.Second}
			}, CauseNoCredentials, "AWS_ACCESS_KEY_ID",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url, options := tc.store(t)
			store, err := Open(context.Background(), url, options)
			if err != nil {
				t.Fatal(err)
			}
			err = store.Check(context.Background())
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := CauseOf(err); got != tc.want || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s, want %s that contains %q:\n%v", got, tc.want, tc.says, err)
			}
			if errors.Is(err, ErrNoBucket) != (tc.want == CauseBucket) || errors.Is(err, ErrUnreachable) == (tc.want == CauseBucket) {
				t.Errorf("matches ErrNoBucket: %v, ErrUnreachable: %v", errors.Is(err, ErrNoBucket), errors.Is(err, ErrUnreachable))
			}
		})
	}
}

func htmlServer(t *testing.T) (string, Options) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("<html>hello</html>"))
	}))
	t.Cleanup(server.Close)
	return storetest.URL(server.URL, storetest.Bucket, ""), fakeOptions
}

func TestFault_EveryCauseHasARemedy(t *testing.T) {
	for _, cause := range codes {
		if remedies[cause] == "" {
			t.Errorf("%s has no remedy", cause)
		}
	}
	for cause, remedy := range remedies {
		if fault := newFault("list bucket x", cause, "found", errors.New("why")); !strings.HasSuffix(fault.Error(), "found; "+remedy) {
			t.Errorf("%s says %s", cause, fault)
		}
	}
}

// An error in the log of a pod names the Secret that has the wrong key.
func TestFault_RemedyNamesTheSecret(t *testing.T) {
	for code, want := range map[string]string{
		"SignatureDoesNotMatch": "correct the secret key in Secret lab/assay-ledger",
		"InvalidAccessKeyId":    "correct the access key in Secret lab/assay-ledger",
		"AccessDenied":          "allow the credentials in Secret lab/assay-ledger s3:ListBucket",
	} {
		fake, endpoint := storetest.StartS3(t)
		fake.Refuse = func(*http.Request) (int, string) { return http.StatusForbidden, code }
		folder := t.TempDir()
		write(t, filepath.Join(folder, AccessKeyFile), []byte("a"))
		write(t, filepath.Join(folder, SecretKeyFile), []byte("b"))
		store, err := Open(t.Context(), storetest.URL(endpoint, storetest.Bucket, ""), Options{CredentialsDir: folder,
			Secret: "lab/assay-ledger"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not contain %q", err, want)
		}
	}
}

// An open store uses a corrected mounted Secret.
func TestStore_CorrectedSecretIsUsedWithoutRestart(t *testing.T) {
	t.Parallel() // It waits for timeouts.
	ours := newAuthority(t)
	endpoint := startTLS(t, storetest.NewS3(), ours.valid(t))
	folder := t.TempDir()
	authorityFile := filepath.Join(folder, "ca.crt")
	write(t, authorityFile, newAuthority(t).pem())
	write(t, filepath.Join(folder, AccessKeyFile), []byte("nobody\n"))
	write(t, filepath.Join(folder, SecretKeyFile), []byte("x"))
	store, err := Open(context.Background(), storetest.URL(endpoint, storetest.Bucket, ""),
		Options{CredentialsDir: folder, CAFile: authorityFile, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got := CauseOf(store.Check(context.Background())); got != CauseAuthority {
		t.Fatalf("with another authority: %s", got)
	}
	write(t, authorityFile, ours.pem())
	if got := CauseOf(store.Check(context.Background())); got != CauseAccessKey {
		t.Fatalf("with a wrong key: %s", got)
	}
	write(t, filepath.Join(folder, AccessKeyFile), []byte(storetest.AccessKey+"\n"))
	deadline := time.Now().Add(3 * credentialsAge)
	for {
		err := store.Check(context.Background())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the corrected key is not used: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// A pod with a workload identity needs no Secret.
func TestStore_WorkloadIdentityWithoutCredentials(t *testing.T) {
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "token of the pod" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"AccessKeyId": "` + storetest.AccessKey +
			`", "SecretAccessKey": "s", "Token": "t", "Expiration": "2999-01-01T00:00:00Z"}`))
	}))
	t.Cleanup(cloud.Close)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", cloud.URL)
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "token of the pod")
	_, endpoint := storetest.StartS3(t)
	store, err := Open(context.Background(), storetest.URL(endpoint, storetest.Bucket, ""), Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Check(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestStore_PathStyle(t *testing.T) {
	for style, want := range map[string]string{"": "/ledger/", "&pathStyle=true": "/ledger/", "&pathStyle=false": "/"} {
		t.Run("with "+style, func(t *testing.T) {
			var path string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { path = r.URL.Path }))
			t.Cleanup(server.Close)
			// *.localhost resolves to the loopback address without a DNS server.
			endpoint := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
			store, err := Open(context.Background(), "s3://"+storetest.Bucket+"/?endpoint="+endpoint+style,
				Options{AccessKey: "a", SecretKey: "b", Timeout: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			_ = store.Check(context.Background())
			if path != want && !(path == "" && style == "&pathStyle=false") {
				t.Errorf("requested %q, want %q", path, want)
			}
		})
	}
	_, err := Open(context.Background(), "s3://"+storetest.Bucket+"?endpoint=http://x:1&pathStyle=maybe", Options{})
	if !errors.Is(err, ErrBadURL) || !strings.Contains(err.Error(), "true and false") {
		t.Errorf("pathStyle=maybe: %v", err)
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
