package component

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func store(t *testing.T, at time.Time) KeyStore {
	return KeyStore{Dir: t.TempDir(), Now: func() time.Time { return at }}
}

var server = Subject{Name: "server", User: "server", Hosts: []string{"localhost"}, Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}}

func issued(t *testing.T, s KeyStore, subject Subject) (Pair, *x509.Certificate) {
	t.Helper()
	authority, err := s.Authority("ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	cert, _, err := loadPair(pair)
	if err != nil {
		t.Fatal(err)
	}
	return pair, cert
}

func TestCertificate_IsValidForItsNamesAndUser(t *testing.T) {
	s := store(t, time.Now())
	subject := server
	subject.User, subject.Groups = "system:node:n", []string{"system:nodes"}
	pair, cert := issued(t, s, subject)
	ca, _, err := loadPair(s.Files("ca"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, name := range []string{"127.0.0.1", "localhost"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("for %s: %v", name, err)
		}
	}
	if cert.Subject.CommonName != "system:node:n" || cert.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject: %v", cert.Subject)
	}
	if _, err := tls.LoadX509KeyPair(pair.Cert, pair.Key); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(pair.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key can be read by others: %v %v", info.Mode(), err)
	}
}

func TestCertificate_IsReusedOrRenewed(t *testing.T) {
	for reason, tc := range map[string]struct {
		change func(s *KeyStore, subject *Subject, pair Pair)
		renew  bool
	}{
		"nothing changed":                  {func(*KeyStore, *Subject, Pair) {}, false},
		"it expires soon":                  {func(s *KeyStore, _ *Subject, _ Pair) { later(s, lifetime-renewBefore+time.Hour) }, true},
		"it stays valid long enough":       {func(s *KeyStore, _ *Subject, _ Pair) { later(s, lifetime-renewBefore-2*time.Hour) }, false},
		"another name is wanted":           {func(_ *KeyStore, subject *Subject, _ Pair) { subject.Hosts = []string{"other"} }, true},
		"a crash left half of the pair":    {func(_ *KeyStore, _ *Subject, pair Pair) { _ = os.Truncate(pair.Key, 0) }, true},
		"its authority was made afresh":    {func(s *KeyStore, _ *Subject, _ Pair) { _ = os.Remove(s.Files("ca").Cert) }, true},
		"the clock was set far backwards,": {func(s *KeyStore, _ *Subject, _ Pair) { later(s, -48*time.Hour) }, true},
	} {
		s, subject := store(t, time.Now()), server
		pair, before := issued(t, s, subject)
		tc.change(&s, &subject, pair)
		_, after := issued(t, s, subject)
		if renewed := !before.Equal(after); renewed != tc.renew {
			t.Errorf("%s: renewed is %v, want %v", reason, renewed, tc.renew)
		}
	}
}

func later(s *KeyStore, by time.Duration) {
	at := s.Now().Add(by)
	s.Now = func() time.Time { return at }
}

func TestKubeconfig_IsSelfContained(t *testing.T) {
	s := store(t, time.Now())
	pair, _ := issued(t, s, server)
	text, err := Kubeconfig("c", "https://127.0.0.1:1", s.Files("ca").Cert, pair)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"current-context: c", `server: "https://127.0.0.1:1"`, "client-key-data: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, s.Dir) {
		t.Error("it refers to files, so it cannot be copied elsewhere")
	}
}
