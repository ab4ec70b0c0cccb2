package storeusers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/signer"
	sio "github.com/secure-io/sio-go"

	"assay.dev/assay/operator/internal/store"
)

// Admin is a client of MinIO's admin API. MinIO's own client is under the AGPL, which would extend to a program that contains it, and only
// four requests are needed.
type Admin struct {
	client               *http.Client
	endpoint             *url.URL
	accessKey, secretKey string
	// bucket and under are the location of the ledgers.
	bucket, under string
}

const (
	adminPath    = "/minio/admin/v3/"
	adminTimeout = 30 * time.Second
	// maxAnswer bounds a response in bytes: the policies of thousands of namespaces.
	maxAnswer = 64 << 20
)

// NewAdmin returns a client for the store of a ledger's URL with the credentials of the options.
func NewAdmin(rawURL string, options store.Options) (*Admin, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", store.ErrBadURL, rawURL, err)
	}
	endpoint, err := url.Parse(parsed.Query().Get("endpoint"))
	if err != nil || parsed.Scheme != "s3" || endpoint.Host == "" {
		return nil, fmt.Errorf("%w %q: users can be created in MinIO only: write s3://bucket?endpoint=http://host:port", store.ErrBadURL, rawURL)
	}
	transport, err := store.NewRoundTripper(endpoint.Scheme == "https", options)
	if err != nil {
		return nil, err
	}
	return &Admin{
		client: &http.Client{Transport: transport, Timeout: adminTimeout}, endpoint: endpoint,
		accessKey: cmp.Or(options.AccessKey, os.Getenv("AWS_ACCESS_KEY_ID")),
		secretKey: cmp.Or(options.SecretKey, os.Getenv("AWS_SECRET_ACCESS_KEY")),
		bucket:    parsed.Host, under: strings.Trim(parsed.Path, "/"),
	}, nil
}

// Call sends a signed request and returns the body of the response.
func (a *Admin) Call(ctx context.Context, method, what string, query url.Values, body []byte) ([]byte, error) {
	tried := fmt.Sprintf("%s at %s", what, a.endpoint)
	address := a.endpoint.JoinPath(adminPath, what)
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Amz-Content-Sha256", fmt.Sprintf("%x", sha256.Sum256(body)))
	response, err := a.client.Do(signer.SignV4(*request, a.accessKey, a.secretKey, "", ""))
	if err != nil {
		return nil, store.Explain(tried, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, store.Explain(tried, err)
	}
	if response.StatusCode/100 != 2 {
		refused := minio.ErrorResponse{StatusCode: response.StatusCode, Code: http.StatusText(response.StatusCode)}
		_ = json.Unmarshal(answer, &refused) // The HTTP status suffices if the body is invalid.
		return nil, store.Explain(tried, refused)
	}
	return answer, nil
}

func (a *Admin) putUser(ctx context.Context, accessKey, secretKey string) error {
	body, err := json.Marshal(map[string]string{"secretKey": secretKey, "status": "enabled"})
	if err != nil {
		return err
	}
	sealed, err := Seal(a.secretKey, body)
	if err != nil {
		return err
	}
	_, err = a.Call(ctx, http.MethodPut, "add-user", url.Values{"accessKey": {accessKey}}, sealed)
	return err
}

// putPolicy creates a policy and attaches it to the user of the same name.
func (a *Admin) putPolicy(ctx context.Context, accessKey string, policy []byte) error {
	if _, err := a.Call(ctx, http.MethodPut, "add-canned-policy", url.Values{"name": {accessKey}}, policy); err != nil {
		return err
	}
	_, err := a.Call(ctx, http.MethodPut, "set-user-or-group-policy",
		url.Values{"policyName": {accessKey}, "userOrGroup": {accessKey}, "isGroup": {"false"}}, nil)
	return err
}

// replaced reports whether a user exists with a secret key other than this one.
func (a *Admin) replaced(ctx context.Context, accessKey, secretKey string) bool {
	as := *a
	as.accessKey, as.secretKey = accessKey, secretKey
	// Other errors show when the user is created.
	_, err := as.Call(ctx, http.MethodGet, "accountinfo", nil, nil)
	return store.CauseOf(err) == store.CauseSecretKey
}

// remove deletes a user and its policy, and the sessions and accounts that were created with its keys.
func (a *Admin) remove(ctx context.Context, accessKey string) error {
	for _, one := range []struct {
		method, what string
		query        url.Values
	}{
		// A session is signed by the store, and outlives the user that started it.
		{http.MethodPost, "revoke-tokens/builtin", url.Values{"user": {accessKey}, "fullRevoke": {"true"}}},
		{http.MethodDelete, "remove-user", url.Values{"accessKey": {accessKey}}},
	} {
		if _, err := a.Call(ctx, one.method, one.what, one.query, nil); err != nil && !strings.Contains(err.Error(), "XMinioAdminNoSuchUser") {
			return err
		}
	}
	_, err := a.Call(ctx, http.MethodDelete, "remove-canned-policy", url.Values{"name": {accessKey}}, nil)
	return err
}

// policies returns the names of the policies in the store.
func (a *Admin) policies(ctx context.Context) ([]string, error) {
	raw, err := a.Call(ctx, http.MethodGet, "list-canned-policies", nil, nil)
	if err != nil {
		return nil, err
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(raw, &byName); err != nil {
		return nil, fmt.Errorf("policies of %s: %w", a.endpoint, err)
	}
	return slices.Collect(maps.Keys(byName)), nil
}

// Format of a body encrypted with the caller's own secret key: salt, kind, nonce and ciphertext. The store accepts three kinds; this one
// needs no memory. Its speed is no weakness, because the signature of the same request allows guessing of keys as well.
const (
	saltBytes, nonceBytes = 32, 8
	pbkdf2AES256GCM       = 0x02
	pbkdf2Rounds          = 8192
)

// Seal encrypts a body with the secret key of the sender.
func Seal(password string, data []byte) ([]byte, error) {
	head := make([]byte, saltBytes+1+nonceBytes)
	_, _ = rand.Read(head) // It never fails.
	head[saltBytes] = pbkdf2AES256GCM
	key, err := pbkdf2.Key(sha256.New, password, head[:saltBytes], pbkdf2Rounds, 32)
	if err != nil {
		return nil, err
	}
	stream, err := sio.AES_256_GCM.Stream(key)
	if err != nil {
		return nil, err
	}
	sealed := bytes.NewBuffer(bytes.Clone(head))
	writer := stream.EncryptWriter(sealed, head[saltBytes+1:], nil)
	if _, err := writer.Write(data); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}
