package certificates

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rules = Policy{Authority: "assay-minio", Hosts: []string{"assay-minio.assay-system.svc", "localhost", "127.0.0.1"},
		Lifetime: 365 * day, Lead: 120 * day, Trust: 7 * day}
)

// step applies the policy at a time, and fails the test on an error.
func step(t *testing.T, p Policy, now time.Time, s Set) (Set, Change) {
	t.Helper()
	out, change, err := p.Step(now, rand.Reader, s)
	if err != nil {
		t.Fatal(err)
	}
	return out, change
}

// trusts reports whether a client with these authorities accepts the served certificate under every host.
func trusts(t *testing.T, trusted []byte, served Set, now time.Time, hosts ...string) error {
	t.Helper()
	pair, err := tls.X509KeyPair(served.Certificate, served.Key)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted)
	for _, host := range hosts {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: now}); err != nil {
			return err
		}
	}
	return nil
}

// A client that read the authorities up to Trust ago accepts the certificate of every fifth day for eight years, and each certificate is
// replaced before its end.
func TestStep_ClientsTrustTheServedCertificateForYears(t *testing.T) {
	s, change := step(t, rules, start, Set{})
	if change != Issued {
		t.Fatalf("an empty set is %s, want issued", change)
	}
	var read [][]byte // The authorities of the last days, oldest first.
	changes := map[Change]int{}
	const every = 5
	for n := 0; n < 8*365; n += every {
		now := start.Add(time.Duration(n) * day)
		s, change = step(t, rules, now, s)
		changes[change]++
		read = append(read, s.Trusted)
		if len(read) > int(rules.Trust/day)/every+1 {
			read = read[1:]
		}
		for _, trusted := range [][]byte{read[0], s.Trusted} {
			if err := trusts(t, trusted, s, now, rules.Hosts...); err != nil {
				t.Fatalf("day %d: %v", n, err)
			}
		}
		if end, err := Ends(s); err != nil || end.Sub(now) < rules.Lead-rules.Trust-3*every*day {
			t.Fatalf("day %d: the certificate ends at %s: %v", n, end, err)
		}
		if count := bytes.Count(s.Trusted, []byte("BEGIN")); count > 3 {
			t.Fatalf("day %d: %d authorities are trusted", n, count)
		}
	}
	if changes[Announced] < 10 || changes[Announced]-changes[Served] > 1 || changes[Issued] > 0 {
		t.Errorf("changes %v, want a renewal about every 250 days in two steps", changes)
	}
}

func TestStep_Cases(t *testing.T) {
	fresh, _ := step(t, rules, start, Set{})
	announced, change := step(t, rules, start.Add(250*day), fresh)
	if change != Announced || !bytes.Equal(announced.Certificate, fresh.Certificate) {
		t.Fatalf("near the end: %s", change)
	}
	edit := func(s Set, change func(*Set)) Set {
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		before Set
		at     time.Duration
		rules  Policy
		want   Change
	}{
		"far from the end":                                    {fresh, 200 * day, rules, None},
		"near the end":                                        {fresh, 246 * day, rules, Announced},
		"announced, not yet trusted everywhere":               {announced, 256 * day, rules, None},
		"announced and trusted":                               {announced, 257 * day, rules, Served},
		"announced, and the certificate ends within the hour": {announced, 365*day - time.Minute, Policy{"a", rules.Hosts, 365 * day, 364 * day, 200 * day}, Served},
		"announced, and the certificate has ended":            {announced, 400 * day, rules, Served},
		"ended":                               {fresh, 366 * day, rules, Issued},
		"both ended":                          {announced, 900 * day, rules, Issued},
		"without a key":                       {edit(fresh, func(s *Set) { s.Key = nil }), 0, rules, Issued},
		"with another key":                    {edit(fresh, func(s *Set) { s.Key = announced.NextKey }), 0, rules, Issued},
		"of an authority that is not trusted": {edit(fresh, func(s *Set) { s.Trusted = nil }), 0, rules, Issued},
		"with authorities that are no certificates": {edit(fresh, func(s *Set) { s.Trusted = []byte("x") }), 0, rules, Issued},
		"an announced one without its key":          {edit(announced, func(s *Set) { s.NextKey = nil }), 251 * day, rules, Announced},
		"for a name that it does not have":          {fresh, 0, Policy{"a", append([]string{"other.svc"}, rules.Hosts...), 365 * day, 120 * day, 7 * day}, Announced},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(tc.at)
			after, got := step(t, tc.rules, now, tc.before)
			if got != tc.want {
				t.Fatalf("%s, want %s", got, tc.want)
			}
			if err := trusts(t, after.Trusted, after, now, rules.Hosts[0]); err != nil {
				t.Errorf("clients reject the certificate: %v", err)
			}
			if got == Announced {
				next := Set{Certificate: after.NextCertificate, Key: after.NextKey}
				if err := trusts(t, after.Trusted, next, now, tc.rules.Hosts...); err != nil {
					t.Errorf("clients reject the next certificate: %v", err)
				}
			}
			if tc.rules.Lead != rules.Lead {
				return
			}
			if _, change := step(t, tc.rules, now, after); change != None {
				t.Errorf("a second step at the same time: %s", change)
			}
		})
	}
}

func TestCheck_RejectsTimesThatCannotWork(t *testing.T) {
	for want, p := range map[string]Policy{
		"invalid hosts":      {Lifetime: 3 * day, Lead: 2 * day, Trust: day},
		"invalid trust time": {Hosts: []string{"a"}, Lifetime: 3 * day, Lead: 2 * day, Trust: -day},
		"invalid lead time":  {Hosts: []string{"a"}, Lifetime: 3 * day, Lead: day, Trust: day},
		"invalid lifetime":   {Hosts: []string{"a"}, Lifetime: 2 * day, Lead: 2 * day, Trust: day},
	} {
		if _, _, err := p.Step(start, rand.Reader, Set{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
