// Package component defines how each part of the control plane and the node is configured: pure functions from settings to
// command lines and files.
package component

import (
	"fmt"
	"path/filepath"
	"strings"

	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/turn"
)

// The kinds of components: those of the control plane, and those of a node.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Forwarder         = "forwarder"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"

	Containerd = "containerd"
	Proxy      = "kube-proxy"
	Policies   = "network-policies"
	Kubelet    = "kubelet"
)

// Part is one component's kind and the node it runs on.
type Part struct {
	Kind string
	Node config.Node
}

// Name is how `cluster status` and `cluster logs` call the component.
func (p Part) Name() string { return p.Kind + p.Node.Suffix }

// ControlPlane lists the components of the control plane, which run on the first node, in the order they start.
func ControlPlane(first config.Node) []Part {
	return parts(first, Etcd, APIServer, Forwarder, ControllerManager, Scheduler)
}

// OfNode lists the components of each node in the order they start.
func OfNode(node config.Node) []Part { return parts(node, Containerd, Proxy, Policies, Kubelet) }

// Parts lists the components of a cluster, with the control plane first and then node by node.
func Parts(nodes []config.Node) []Part {
	all := ControlPlane(nodes[0])
	for _, node := range nodes {
		all = append(all, OfNode(node)...)
	}
	return all
}

func parts(node config.Node, kinds ...string) []Part {
	out := make([]Part, 0, len(kinds))
	for _, kind := range kinds {
		out = append(out, Part{Kind: kind, Node: node})
	}
	return out
}

// Binaries are the compiled programs the control plane and the node need.
var Binaries = []string{Etcd, APIServer, ControllerManager, Scheduler, Proxy, Policies, Kubelet, "kubectl"}

// CNINetwork names the pod network in the CNI library's own records.
const CNINetwork = "assay-pods"

// Settings holds the values that configurations depend on.
type Settings struct {
	config.Config
	// Members are the nodes that run, the first one first.
	Members []Member
	// Hierarchies are those of control groups.
	Hierarchies []host.Hierarchy
	// Binary maps a program's name to its path.
	Binary map[string]string
	// Self is this program, which is also the forwarder.
	Self string
	OS   host.Packages
	// PauseImage holds every pod's namespaces open.
	PauseImage string
	// RestrictOOM is set where the kernel does not let us lower a process's OOM score.
	RestrictOOM bool
}

// Member is a node with its share of the machine.
type Member struct {
	config.Node
	config.Share
}

// File is a configuration file.
type File struct{ Path, Text string }

// Component is a program with its configuration.
type Component struct {
	Part
	host.Spec
	Files []File
}

// Name is that of the part.
func (c Component) Name() string { return c.Part.Name() }

// HealthURL is where a component of this kind tells, inside its namespace, whether it is well. It is empty for kinds without one.
func HealthURL(kind string) string {
	return map[string]string{
		Etcd:              "http://127.0.0.1:2381/health",
		APIServer:         config.APIServerURL() + "/readyz",
		ControllerManager: "https://127.0.0.1:10257/healthz",
		Scheduler:         "https://127.0.0.1:10259/healthz",
		Proxy:             "http://127.0.0.1:10256/healthz",
		Policies:          "http://" + policiesHealth + "/healthz",
		Kubelet:           "http://127.0.0.1:10248/healthz",
	}[kind]
}

// Certificates are the files Issue makes.
type Certificates struct {
	Cluster, FrontProxy, EtcdCA *Authority
	Tokens                      Pair
	APIServer, APIServerEtcd    Pair
	APIServerKubelet            Pair
	FrontProxyClient            Pair
	EtcdServer                  Pair
	// Kubelet holds the certificates of the nodes' kubelets as servers, by node.
	Kubelet map[string]Pair
	// Fingerprint changes when any of them does, except those of a kubelet; those of a node are the fingerprint's value for it.
	Fingerprint     string
	NodeFingerprint map[string]string
}

// All returns every component, fully configured.
func All(s Settings, certs Certificates) []Component {
	var all []Component
	for _, part := range ControlPlane(s.Members[0].Node) {
		c := map[string]func() Component{
			Etcd: func() Component { return s.etcd(certs) }, APIServer: func() Component { return s.apiServer(certs) },
			Forwarder: s.forwarder, ControllerManager: func() Component { return s.controllerManager(certs) }, Scheduler: s.scheduler,
		}[part.Kind]()
		all = append(all, s.finished(c, part, certs))
	}
	for _, member := range s.Members {
		for _, part := range OfNode(member.Node) {
			c := map[string]func() Component{
				Containerd: func() Component { return s.containerd(member) }, Proxy: func() Component { return s.proxy(member) },
				Policies: func() Component { return s.policies(member) }, Kubelet: func() Component { return s.kubelet(certs, member) },
			}[part.Kind]()
			all = append(all, s.finished(c, part, certs))
		}
	}
	return all
}

// finished adds the fields that depend on the part alone.
func (s Settings) finished(c Component, part Part, certs Certificates) Component {
	c.Part, c.Spec.Name = part, part.Name()
	c.Cgroup = filepath.Join(part.Node.Cgroup, "system", part.Kind)
	if part.Kind != Forwarder {
		c.NetNS = part.Node.NetNS
	}
	if part.Kind == Containerd || part.Kind == Kubelet {
		c.MountNS = part.Node.MountNamespace().File
	}
	if c.Path == "" {
		c.Path = s.Binary[part.Kind]
	}
	if part.Kind != Containerd && part.Kind != Forwarder {
		c.Inputs = append(c.Inputs, certs.Fingerprint)
	}
	if part.Kind == Kubelet {
		c.Inputs = append(c.Inputs, certs.NodeFingerprint[part.Node.Name], config.CPUList(s.shareOf(part.Node).CPUs))
	}
	for _, file := range c.Files {
		c.Inputs = append(c.Inputs, file.Text)
	}
	return c
}

func (s Settings) shareOf(node config.Node) config.Share {
	for _, member := range s.Members {
		if member.Name == node.Name {
			return member.Share
		}
	}
	return config.Share{}
}

func (s Settings) etcd(certs Certificates) Component {
	return Component{Spec: host.Spec{Args: []string{
		"--name=assay",
		"--data-dir=" + s.StatePath("etcd"),
		"--listen-client-urls=https://127.0.0.1:2379", "--advertise-client-urls=https://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=assay=http://127.0.0.1:2380",
		"--listen-metrics-urls=http://127.0.0.1:2381",
		"--client-cert-auth", "--trusted-ca-file=" + certs.EtcdCA.Cert,
		"--cert-file=" + certs.EtcdServer.Cert, "--key-file=" + certs.EtcdServer.Key,
		"--auto-compaction-retention=1h", "--snapshot-count=10000",
		"--log-level=warn",
	}}}
}

func (s Settings) apiServer(certs Certificates) Component {
	return Component{
		Spec: host.Spec{Args: []string{
			"--advertise-address=" + config.NodeIP.String(),
			fmt.Sprintf("--secure-port=%d", config.APIServerPort),
			"--service-cluster-ip-range=" + config.ServiceCIDR.String(),
			"--etcd-servers=https://127.0.0.1:2379", "--etcd-cafile=" + certs.EtcdCA.Cert,
			"--etcd-certfile=" + certs.APIServerEtcd.Cert, "--etcd-keyfile=" + certs.APIServerEtcd.Key,
			"--tls-cert-file=" + certs.APIServer.Cert, "--tls-private-key-file=" + certs.APIServer.Key,
			"--client-ca-file=" + certs.Cluster.Cert,
			"--kubelet-certificate-authority=" + certs.Cluster.Cert,
			"--kubelet-client-certificate=" + certs.APIServerKubelet.Cert, "--kubelet-client-key=" + certs.APIServerKubelet.Key,
			"--kubelet-preferred-address-types=InternalIP",
			"--requestheader-client-ca-file=" + certs.FrontProxy.Cert,
			"--proxy-client-cert-file=" + certs.FrontProxyClient.Cert, "--proxy-client-key-file=" + certs.FrontProxyClient.Key,
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--service-account-issuer=https://kubernetes.default.svc." + config.ClusterDomain,
			"--service-account-key-file=" + certs.Tokens.Cert, "--service-account-signing-key-file=" + certs.Tokens.Key,
			"--authorization-mode=Node,RBAC",
			"--allow-privileged=true",
			"--profiling=false",
			// A single API server needs no grace for others to take over.
			"--shutdown-delay-duration=0s",
		}},
	}
}

func (s Settings) controllerManager(certs Certificates) Component {
	kubeconfig := s.kubeconfig(ControllerManager)
	return Component{
		Spec: host.Spec{Args: []string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			"--service-account-private-key-file=" + certs.Tokens.Key,
			"--root-ca-file=" + certs.Cluster.Cert,
			"--cluster-signing-cert-file=" + certs.Cluster.Cert, "--cluster-signing-key-file=" + certs.Cluster.Key,
			"--use-service-account-credentials=true",
			"--leader-elect=false",
			"--kube-api-qps=100", "--kube-api-burst=200",
			"--flex-volume-plugin-dir=" + s.StatePath("kubelet", "volume-plugins"),
			"--profiling=false",
		}},
	}
}

func (s Settings) scheduler() Component {
	kubeconfig := s.kubeconfig(Scheduler)
	return Component{
		Spec: host.Spec{Args: []string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--kube-api-qps=100", "--kube-api-burst=200",
			"--profiling=false",
		}},
	}
}

func (s Settings) proxy(m Member) Component {
	file := File{Path: m.StatePath("config", "kube-proxy.yaml"), Text: fill(kubeProxyConfig, map[string]string{
		"KUBECONFIG": s.kubeconfig(Proxy), "POD_CIDR": m.PodCIDR.String(), "BRIDGE": config.BridgeName, "NODE": m.Name,
	})}
	return Component{
		Files: []File{file},
		Spec:  host.Spec{Args: []string{"--config=" + file.Path}, Env: s.OS.Env(host.SearchPath)},
	}
}

// policiesHealth is where the enforcer of network policies reports whether the kernel has the rules that the API asks for.
const policiesHealth = "127.0.0.1:10260"

func (s Settings) policies(m Member) Component {
	return Component{Spec: host.Spec{Env: s.OS.Env(host.SearchPath), Args: []string{
		"--kubeconfig=" + s.kubeconfig(Policies),
		"--health=" + policiesHealth,
		"--socket=" + m.PoliciesSocket(),
		"--nft=" + filepath.Join(s.OS.Bin(), "nft"),
	}}}
}

// CNIPlugins maps the names of the pod network's plugins to the programs.
func (s Settings) CNIPlugins() map[string]string {
	plugins := map[string]string{Policies: s.Binary[Policies], turn.Plugin: s.Self}
	for _, name := range []string{"bridge", "host-local", "loopback", "portmap"} {
		plugins[name] = filepath.Join(s.OS.CNI(), name)
	}
	return plugins
}

// CNIBinDir is where a node's containerd looks for the plugins.
func CNIBinDir(n config.Node) string { return n.StatePath("cni", "bin") }

func (s Settings) kubelet(certs Certificates, m Member) Component {
	resolv := File{Path: m.StatePath("config", "resolv.conf"), Text: "# No name server: nothing in this cluster reaches beyond the machine.\n"}
	file := File{Path: m.StatePath("config", "kubelet.yaml"), Text: fill(kubeletConfig, map[string]string{
		"CLIENT_CA": certs.Cluster.Cert, "CERT": certs.Kubelet[m.Name].Cert, "KEY": certs.Kubelet[m.Name].Key,
		"CONTAINERD": m.ContainerdSocket(), "CGROUP": m.Cgroup, "RESOLV": resolv.Path, "STATE": m.State,
		"DNS": config.DNSServiceIP.String(), "DOMAIN": config.ClusterDomain, "OTHERS_MEMORY": othersMemory(m.OthersMemory),
	})}
	return Component{
		Files: []File{resolv, file},
		Spec: host.Spec{Env: s.OS.Env(host.SearchPath), Args: []string{
			"--config=" + file.Path,
			"--kubeconfig=" + kubeletKubeconfig(m.Node),
			"--root-dir=" + KubeletRoot(m.Node),
			"--cert-dir=" + m.StatePath("kubelet", "pki"),
			"--hostname-override=" + m.Name,
			"--node-ip=" + m.IP.String(),
		}},
	}
}

// othersMemory is the reservation, in kubelet's words, of the memory that belongs to other nodes; empty without any.
func othersMemory(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", memory: %q", fmt.Sprint(bytes))
}

func (s Settings) containerd(m Member) Component {
	file := File{Path: m.StatePath("config", "containerd.toml"), Text: fill(containerdConfig, map[string]string{
		"STATE": m.State, "SOCKET": m.ContainerdSocket(), "PAUSE": s.PauseImage, "CNI_BIN": CNIBinDir(m.Node), "CNI_CONF": CNIConfDir(m.Node),
		"RUNC": filepath.Join(s.OS.Bin(), "runc"), "RESTRICT_OOM": fmt.Sprint(s.RestrictOOM),
	})}
	return Component{
		Files: []File{file},
		Spec: host.Spec{
			Path: filepath.Join(s.OS.Bin(), "containerd"),
			Args: []string{"--config", file.Path}, Env: s.OS.Env(host.SearchPath),
		},
	}
}

func (s Settings) forwarder() Component {
	return Component{Spec: host.Spec{Path: s.Self, Args: []string{
		ForwardCommand, "--netns", s.Name,
		"--listen", fmt.Sprintf("127.0.0.1:%d", s.Port),
		"--to", fmt.Sprintf("%s:%d", config.NodeIP, config.APIServerPort),
	}}}
}

// ForwardCommand is the hidden command of this program that carries connections into the namespace.
const ForwardCommand = "forward"

// CNIConf is a node's pod network. It is written last, because kubelet starts pods as soon as it is there.
func (s Settings) CNIConf(n config.Node) File {
	return File{Path: filepath.Join(CNIConfDir(n), "10-assay.conflist"), Text: fill(cniConfig, map[string]string{
		"NETWORK": CNINetwork, "BRIDGE": config.BridgeName, "POD_CIDR": n.PodCIDR.String(), "GATEWAY": n.IP.String(),
		"DATA": n.StatePath("cni", "networks"), "POLICIES": Policies, "POLICIES_SOCKET": n.PoliciesSocket(),
		"TURN": s.turnPlugin(n),
	})}
}

// turnPlugin is the entry of the plugin that makes nodes measure by turns; empty where none shares its CPUs.
func (s Settings) turnPlugin(n config.Node) string {
	if !s.shareOf(n).Turns {
		return ""
	}
	pods := make([]string, 0, len(s.Hierarchies))
	for _, hierarchy := range s.Hierarchies {
		pods = append(pods, fmt.Sprintf("%q", filepath.Join(hierarchy.Root, n.Cgroup, "kubepods")))
	}
	return fmt.Sprintf("\n    {\"type\": %q, \"folder\": %q, \"node\": %q, \"pods\": [%s]},", turn.Plugin, s.Turns(), n.Name,
		strings.Join(pods, ", "))
}

// CNIConfDir is where a node's containerd looks for the pod network.
func CNIConfDir(n config.Node) string { return n.StatePath("cni", "net.d") }

// KubeletRoot is a kubelet's own folder: volumes, checkpoints, plugins.
func KubeletRoot(n config.Node) string { return n.StatePath("kubelet") }

func kubeletKubeconfig(n config.Node) string { return n.StatePath("config", Kubelet+".kubeconfig") }

func (s Settings) kubeconfig(name string) string { return s.StatePath("config", name+".kubeconfig") }

// fill replaces {{NAME}} in a template, by itself and not by text/template, because values are paths and never code.
func fill(template string, values map[string]string) string {
	pairs := make([]string, 0, 2*len(values))
	for name, value := range values {
		pairs = append(pairs, "{{"+name+"}}", value)
	}
	return strings.NewReplacer(pairs...).Replace(template)
}
