package component

// This file issues the certificates and kubeconfigs of the cluster.

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	lifetime = 365 * 24 * time.Hour
	// renewBefore is how long a certificate must still be valid to be kept at a start.
	renewBefore = 30 * 24 * time.Hour
)

// Pair is a certificate and its key, as files.
type Pair struct{ Cert, Key string }

// KeyStore is a folder of certificates.
type KeyStore struct {
	Dir string
	Now func() time.Time
}

// Files returns where a pair of this name lies.
func (s KeyStore) Files(name string) Pair {
	return Pair{Cert: filepath.Join(s.Dir, name+".crt"), Key: filepath.Join(s.Dir, name+".key")}
}

// Authority signs certificates. Its own certificate and key are a pair of files, too.
type Authority struct {
	Pair
	store KeyStore
	cert  *x509.Certificate
	key   crypto.Signer
}

// Authority returns the named authority, made if it is missing, unusable or about to expire.
func (s KeyStore) Authority(name string) (*Authority, error) {
	pair := s.Files(name)
	if cert, key, err := loadPair(pair); err == nil && s.fresh(cert) {
		return &Authority{Pair: pair, store: s, cert: cert, key: key}, nil
	}
	template := s.template(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	cert, key, err := issueCertificate(pair, template, template, nil)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	return &Authority{Pair: pair, store: s, cert: cert, key: key}, nil
}

// In returns the authority with another folder for the certificates that it issues.
func (a *Authority) In(dir string) *Authority {
	out := *a
	out.store.Dir = dir
	return &out
}

// Subject is whom a certificate is for: a user with groups, a server with names, or both.
type Subject struct {
	Name      string // of the files
	User      string
	Groups    []string
	Hosts     []string
	Addresses []net.IP
}

// Issue returns the subject's certificate, kept if it still says the same and is valid for long enough.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	pair := a.store.Files(subject.Name)
	if cert, _, err := loadPair(pair); err == nil && a.store.fresh(cert) && a.matches(cert, subject) {
		return pair, nil
	}
	template := a.store.template(pkix.Name{CommonName: subject.User, Organization: subject.Groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = subject.Hosts, subject.Addresses
	if _, _, err := issueCertificate(pair, template, a.cert, a.key); err != nil {
		return pair, fmt.Errorf("certificate %s: %w", subject.Name, err)
	}
	return pair, nil
}

func (a *Authority) matches(cert *x509.Certificate, subject Subject) bool {
	sameIP := func(x, y net.IP) bool { return x.Equal(y) }
	return cert.CheckSignatureFrom(a.cert) == nil &&
		cert.Subject.CommonName == subject.User &&
		slices.Equal(cert.Subject.Organization, subject.Groups) &&
		slices.Equal(cert.DNSNames, subject.Hosts) &&
		slices.EqualFunc(cert.IPAddresses, subject.Addresses, sameIP)
}

// SigningKey returns a key pair for tokens, made if it is missing.
func (s KeyStore) SigningKey(name string) (Pair, error) {
	pair := Pair{Cert: filepath.Join(s.Dir, name+".pub"), Key: filepath.Join(s.Dir, name+".key")}
	if _, err := os.Stat(pair.Cert); err == nil {
		return pair, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return pair, err
	}
	if err := writeKey(pair.Key, key); err != nil {
		return pair, err
	}
	return pair, writePEM(pair.Cert, "PUBLIC KEY", public, 0o644)
}

func (s KeyStore) fresh(cert *x509.Certificate) bool {
	return s.Now().Add(renewBefore).Before(cert.NotAfter) && s.Now().After(cert.NotBefore)
}

func (s KeyStore) template(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		Subject: subject,
		// An hour of slack, for clocks that are set a little after the machine has started.
		NotBefore: s.Now().Add(-time.Hour),
		NotAfter:  s.Now().Add(lifetime),
	}
}

func issueCertificate(pair Pair, template, parent *x509.Certificate, signer crypto.Signer) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if signer == nil {
		signer = key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	if err := writeKey(pair.Key, key); err != nil {
		return nil, nil, err
	}
	if err := writePEM(pair.Cert, "CERTIFICATE", der, 0o644); err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "PRIVATE KEY", der, 0o600)
}

func writePEM(path, kind string, der []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func loadPair(pair Pair) (*x509.Certificate, crypto.Signer, error) {
	// Refused also if the two do not belong together: a crash between writing the files leaves such a pair.
	loaded, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, nil, err
	}
	return loaded.Leaf, loaded.PrivateKey.(crypto.Signer), nil
}

// Kubeconfig returns a kubeconfig with everything inside, so that it can be copied elsewhere.
func Kubeconfig(clusterName, server, authorityCert string, client Pair) (string, error) {
	var encoded [3]string
	for i, path := range []string{authorityCert, client.Cert, client.Key} {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: %[1]s
  cluster: {server: %[2]q, certificate-authority-data: %[3]s}
users:
- name: %[1]s
  user: {client-certificate-data: %[4]s, client-key-data: %[5]s}
contexts:
- name: %[1]s
  context: {cluster: %[1]s, user: %[1]s}
current-context: %[1]s
`, clusterName, server, encoded[0], encoded[1], encoded[2]), nil
}
