package component

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/cluster/internal/config"
)

// Issue makes, or keeps, every certificate and kubeconfig.
func Issue(s Settings, now func() time.Time) (certs Certificates, err error) {
	store := KeyStore{Dir: s.StatePath("pki"), Now: now}
	for name, authority := range map[string]**Authority{
		"ca": &certs.Cluster, "front-proxy-ca": &certs.FrontProxy, "etcd-ca": &certs.EtcdCA,
	} {
		if *authority, err = store.Authority(name); err != nil {
			return certs, err
		}
	}
	if certs.Tokens, err = store.SigningKey("service-account"); err != nil {
		return certs, err
	}
	for _, want := range []struct {
		authority *Authority
		subject   Subject
		pair      *Pair
	}{
		{certs.Cluster, apiServerSubject(), &certs.APIServer},
		{certs.Cluster, Subject{Name: "apiserver-kubelet", User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
			&certs.APIServerKubelet},
		{certs.FrontProxy, Subject{Name: "front-proxy-client", User: "front-proxy-client"}, &certs.FrontProxyClient},
		{certs.EtcdCA, Subject{Name: "etcd-server", User: "etcd", Hosts: []string{"localhost"},
			Addresses: ips(netip.MustParseAddr("127.0.0.1"))}, &certs.EtcdServer},
		{certs.EtcdCA, Subject{Name: "apiserver-etcd", User: "kube-apiserver"}, &certs.APIServerEtcd},
	} {
		if *want.pair, err = want.authority.Issue(want.subject); err != nil {
			return certs, err
		}
	}
	if err := s.writeKubeconfigs(certs); err != nil {
		return certs, err
	}
	if certs.Fingerprint, err = fingerprint(store.Dir, isKubelet); err != nil {
		return certs, err
	}
	certs.Kubelet, certs.NodeFingerprint = map[string]Pair{}, map[string]string{}
	for _, member := range s.Members {
		if certs.Kubelet[member.Name], err = s.issueNode(certs.Cluster, member.Node); err != nil {
			return certs, err
		}
		notKubelet := func(file string) bool { return !isKubelet(file) }
		if certs.NodeFingerprint[member.Name], err = fingerprint(member.StatePath("pki"), notKubelet); err != nil {
			return certs, err
		}
	}
	return certs, nil
}

// isKubelet reports whether a certificate is one of a node's own. They lie in the node's folder, so that they come and go with it, and
// change no other component's fingerprint.
func isKubelet(file string) bool { return strings.HasPrefix(file, Kubelet) }

// issueNode makes, or keeps, the certificates and the kubeconfig of a node's kubelet.
func (s Settings) issueNode(authority *Authority, node config.Node) (server Pair, err error) {
	authority = authority.In(node.StatePath("pki"))
	server, err = authority.Issue(Subject{Name: "kubelet-server", User: "kubelet", Hosts: []string{node.Name}, Addresses: ips(node.IP)})
	if err != nil {
		return server, err
	}
	client, err := authority.Issue(Subject{Name: Kubelet, User: "system:node:" + node.Name, Groups: []string{"system:nodes"}})
	if err != nil {
		return server, err
	}
	return server, s.writeKubeconfig(kubeletKubeconfig(node), config.APIServerURL(), authority.Cert, client)
}

// fingerprint changes when a certificate does, except those that are left out: programs that still use the old ones must be restarted.
func fingerprint(dir string, except func(file string) bool) (string, error) {
	folder := os.DirFS(dir)
	files, err := fs.Glob(folder, "*.crt")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range slices.DeleteFunc(files, except) {
		data, err := fs.ReadFile(folder, file)
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func apiServerSubject() Subject {
	return Subject{
		Name: "apiserver", User: "kube-apiserver",
		Hosts: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc." + config.ClusterDomain},
		Addresses: ips(netip.MustParseAddr("127.0.0.1"), config.NodeIP, config.APIServiceIP),
	}
}

// users are the API server's clients, except kubelets: the rights of each come with its name or group.
var users = []Subject{
	{Name: "admin", User: "assay-admin", Groups: []string{"system:masters"}},
	{Name: ControllerManager, User: "system:kube-controller-manager"},
	{Name: Scheduler, User: "system:kube-scheduler"},
	{Name: Proxy, User: "system:kube-proxy"},
	{Name: Policies, User: policiesUser},
}

func (s Settings) writeKubeconfigs(certs Certificates) error {
	for _, user := range users {
		pair, err := certs.Cluster.Issue(user)
		if err != nil {
			return err
		}
		path, server := s.kubeconfig(user.Name), config.APIServerURL()
		if user.Name == "admin" {
			path, server = s.Kubeconfig(), s.HostURL()
		}
		if err := s.writeKubeconfig(path, server, certs.Cluster.Cert, pair); err != nil {
			return err
		}
	}
	return nil
}

func (s Settings) writeKubeconfig(path, server, authorityCert string, client Pair) error {
	text, err := Kubeconfig(s.Name, server, authorityCert, client)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// policiesUser enforces network policies. Kubernetes defines no such user, so PoliciesManifest grants its rights.
const policiesUser = "assay:" + Policies

// PoliciesManifest lets the enforcer of network policies read policies, pods and namespaces.
func PoliciesManifest() string {
	return fill(policiesManifest, map[string]string{"USER": policiesUser})
}

// CoreDNSManifest is cluster DNS, with the given image.
func CoreDNSManifest(image string) string {
	return fill(coreDNSManifest, map[string]string{
		"IMAGE": image, "DOMAIN": config.ClusterDomain, "DNS": config.DNSServiceIP.String(), "NODE": config.NodeName,
	})
}

func ips(addresses ...netip.Addr) []net.IP {
	out := make([]net.IP, 0, len(addresses))
	for _, address := range addresses {
		out = append(out, address.AsSlice())
	}
	return out
}
