// Package certificates renews the certificate of a server with a new authority each time, in two steps: clients trust the new authority
// first, and the server serves its certificate once they have had time to read it. Time and randomness are arguments.
package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// skew is how far the clocks of clients may be behind.
const skew = time.Hour

// Set is the certificate that a server serves, the one that will follow it, and the authorities that clients trust, all in PEM form.
type Set struct {
	Trusted                  []byte
	Certificate, Key         []byte
	NextCertificate, NextKey []byte
}

// Policy is the names of a server and the times of its certificates.
type Policy struct {
	// Authority is the common name of the authorities. Hosts are the DNS names and IP addresses of the server, the first its common name.
	Authority string
	Hosts     []string
	// Lifetime is the validity of a new certificate and its authority.
	Lifetime time.Duration
	// Lead is how long before the end of a certificate the next one is made.
	Lead time.Duration
	// Trust is the time from the moment at which the next authority is trusted until its certificate is served.
	Trust time.Duration
}

// Change is the effect of a step.
type Change string

const (
	// None is no change.
	None Change = "kept"
	// Announced is a next certificate whose authority is trusted and that is not served yet.
	Announced Change = "announced"
	// Served is the announced certificate, which is served from now on.
	Served Change = "served"
	// Issued is a new certificate that is served at once, because the one before was missing, invalid or expired.
	Issued Change = "issued"
)

// Check returns an error for times with which a certificate would be served before it is trusted, or renewed all the time.
func (p Policy) Check() error {
	switch {
	case len(p.Hosts) == 0:
		return errors.New("invalid hosts: none given, at least one is needed: name the DNS name by which clients reach the server")
	case p.Trust < 0:
		return fmt.Errorf("invalid trust time %s: it is negative, use 0s or more", p.Trust)
	case p.Lead <= p.Trust:
		return fmt.Errorf("invalid lead time %s: it is at most the trust time %s, after which the next certificate is served; make it longer",
			p.Lead, p.Trust)
	case p.Lifetime <= p.Lead:
		return fmt.Errorf("invalid lifetime %s: it is at most the lead time %s, so every certificate would be renewed at once; make it longer",
			p.Lifetime, p.Lead)
	}
	return nil
}

// Step returns the set after at most one change. A set of which clients could trust nothing is issued again; authorities that have expired
// are removed.
func (p Policy) Step(now time.Time, random io.Reader, before Set) (Set, Change, error) {
	if err := p.Check(); err != nil {
		return before, None, err
	}
	out := before
	trusted := unexpired(before.Trusted, now)
	out.Trusted = encode(trusted)
	current := leaf(before.Certificate, before.Key, trusted, now)
	next := leaf(before.NextCertificate, before.NextKey, trusted, now)
	if next == nil {
		out.NextCertificate, out.NextKey = nil, nil
	}
	switch {
	case next != nil && (current == nil || !now.Before(next.NotBefore.Add(skew+p.Trust)) || current.NotAfter.Sub(now) <= skew):
		out.Certificate, out.Key, out.NextCertificate, out.NextKey = before.NextCertificate, before.NextKey, nil, nil
		return out, Served, nil
	case next != nil:
		return out, None, nil
	case current != nil && current.NotAfter.Sub(now) > p.Lead && p.names(current):
		return out, None, nil
	}
	authority, certificate, key, err := p.issue(now, random)
	if err != nil {
		return before, None, err
	}
	out.Trusted = append(authority, out.Trusted...)
	if current == nil {
		out.Certificate, out.Key = certificate, key
		return out, Issued, nil
	}
	out.NextCertificate, out.NextKey = certificate, key
	return out, Announced, nil
}

// Ends returns the time at which the certificate of a set expires.
func Ends(s Set) (time.Time, error) {
	parsed, err := cert.ParseCertsPEM(s.Certificate)
	if err != nil {
		return time.Time{}, err
	}
	return parsed[0].NotAfter, nil
}

// LastEnd returns the time at which the last of the authorities expires.
func LastEnd(trusted []byte) (end time.Time, err error) {
	parsed, err := cert.ParseCertsPEM(trusted)
	for _, authority := range parsed {
		if authority.NotAfter.After(end) {
			end = authority.NotAfter
		}
	}
	return end, err
}

// names reports whether a certificate holds for all hosts.
func (p Policy) names(certificate *x509.Certificate) bool {
	for _, host := range p.Hosts {
		if certificate.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// issue makes an authority, whose key is forgotten, and a certificate of it.
func (p Policy) issue(now time.Time, random io.Reader) (authority, certificate, key []byte, err error) {
	from, until := now.Add(-skew).UTC(), now.Add(p.Lifetime).UTC()
	root := &x509.Certificate{
		Subject: pkix.Name{CommonName: p.Authority}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		Subject: pkix.Name{CommonName: p.Hosts[0]}, NotBefore: from, NotAfter: until,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range p.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, host)
		}
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, nil, nil, err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, nil, nil, err
	}
	authority, err = sign(random, root, root, rootKey.Public(), rootKey)
	if err != nil {
		return nil, nil, nil, err
	}
	// As parsed, it has the identifier of its key, by which clients tell it from the authorities before it, which have the same name.
	parsed, err := cert.ParseCertsPEM(authority)
	if err != nil {
		return nil, nil, nil, err
	}
	if certificate, err = sign(random, server, parsed[0], serverKey.Public(), rootKey); err != nil {
		return nil, nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(serverKey)
	return authority, certificate, key, err
}

// sign returns a certificate in PEM form, with a random serial number.
func sign(random io.Reader, template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	serial := make([]byte, 16)
	if _, err := io.ReadFull(random, serial); err != nil {
		return nil, err
	}
	serial[0] &= 0x7f
	template.SerialNumber = new(big.Int).SetBytes(serial)
	raw, err := x509.CreateCertificate(random, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return encode([]*x509.Certificate{{Raw: raw}}), nil
}

// leaf returns the certificate that a server with this pair serves, or nil if it could not serve it or clients would not trust it.
func leaf(certificate, key []byte, trusted []*x509.Certificate, now time.Time) *x509.Certificate {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil
	}
	parsed, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil
	}
	roots := x509.NewCertPool()
	for _, authority := range trusted {
		roots.AddCert(authority)
	}
	if _, err := parsed.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
		return nil
	}
	return parsed
}

// unexpired returns the authorities that are valid now or later. A text without certificates has none.
func unexpired(trusted []byte, now time.Time) (out []*x509.Certificate) {
	parsed, err := cert.ParseCertsPEM(trusted)
	if err != nil {
		return nil
	}
	for _, authority := range parsed {
		if now.Before(authority.NotAfter) {
			out = append(out, authority)
		}
	}
	return out
}

func encode(certificates []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, certificate := range certificates {
		encoded, _ := cert.EncodeCertificates(certificate)
		out.Write(encoded)
	}
	return out.Bytes()
}
