package store

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Files of a mounted Secret with credentials.
const (
	AccessKeyFile = "accessKey"
	SecretKeyFile = "secretKey"
)

// credentialsAge is the time after which credentials from files are read again.
const credentialsAge = 5 * time.Second

// findCredentials returns the source of the credentials, and true if none is available. The order is: explicit options, files, environment,
// workload identity of the cloud.
func findCredentials(options Options) (creds *credentials.Credentials, anonymous bool) {
	access := cmp.Or(options.AccessKey, os.Getenv("AWS_ACCESS_KEY_ID"))
	secret := cmp.Or(options.SecretKey, os.Getenv("AWS_SECRET_ACCESS_KEY"))
	switch {
	case options.AccessKey == "" && options.CredentialsDir != "":
		return credentials.New(&mounted{folder: options.CredentialsDir}), false
	case access == "" && secret == "" && hasIdentity():
		return credentials.NewIAM(""), false
	default:
		return credentials.NewStaticV4(access, secret, ""), access == "" || secret == ""
	}
}

// hasIdentity reports whether the cloud gives this pod a workload identity. Instance metadata is not used, because outside of a cloud the
// request would time out, and inside it would return the node's identity.
func hasIdentity() bool {
	return cmp.Or(os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
		os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) != ""
}

// mounted reads the credentials of a mounted Secret. It reads them repeatedly, so that a corrected or rotated Secret needs no restart.
type mounted struct {
	folder string
	read   time.Time
}

// RetrieveWithCredContext implements credentials.Provider.
func (m *mounted) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	access, err := m.key(AccessKeyFile)
	if err != nil {
		return credentials.Value{}, err
	}
	secret, err := m.key(SecretKeyFile)
	if err != nil {
		return credentials.Value{}, err
	}
	m.read = time.Now()
	return credentials.Value{AccessKeyID: access, SecretAccessKey: secret, SignerType: credentials.SignatureV4}, nil
}

// Retrieve implements credentials.Provider.
func (m *mounted) Retrieve() (credentials.Value, error) { return m.RetrieveWithCredContext(nil) }

// IsExpired implements credentials.Provider.
func (m *mounted) IsExpired() bool { return time.Since(m.read) > credentialsAge }

func (m *mounted) key(name string) (string, error) {
	path := filepath.Join(m.folder, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	// A Secret created from a file often ends in a newline, which no key contains.
	key := strings.TrimSpace(string(raw))
	if key == "" {
		return "", fmt.Errorf("%w: %s is empty", errNoCredentials, path)
	}
	return key, nil
}
