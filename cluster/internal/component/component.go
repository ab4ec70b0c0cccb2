// Package component defines how each part of the control plane and the node is configured: pure functions from settings to
// command lines and files.
package component

import (
	"fmt"
	"path/filepath"
	"strings"

	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
)

// Names of the components, as `cluster status` and `cluster logs` know them, in the order they start.
const (
	Etcd              = "etcd"
	Containerd        = "containerd"
	APIServer         = "kube-apiserver"
	Forwarder         = "forwarder"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Proxy             = "kube-proxy"
	Policies          = "network-policies"
	Kubelet           = "kubelet"
)

// Names lists the components in the order they start.
var Names = []string{Etcd, Containerd, APIServer, Forwarder, ControllerManager, Scheduler, Proxy, Policies, Kubelet}

// Binaries are the compiled programs the control plane and the node need.
var Binaries = []string{Etcd, APIServer, ControllerManager, Scheduler, Proxy, Policies, Kubelet, "kubectl"}

// CNINetwork names the pod network in the CNI library's own records.
const CNINetwork = "assay-pods"

// Settings holds the values that configurations depend on.
type Settings struct {
	config.Config
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

// File is a configuration file.
type File struct{ Path, Text string }

// Component is a program with its configuration.
type Component struct {
	host.Spec
	Files []File
}

// HealthURL is where a component tells, inside the namespace, whether it is well. It is empty for components without one.
func HealthURL(name string) string {
	return map[string]string{
		Etcd:              "http://127.0.0.1:2381/health",
		APIServer:         config.APIServerURL() + "/readyz",
		ControllerManager: "https://127.0.0.1:10257/healthz",
		Scheduler:         "https://127.0.0.1:10259/healthz",
		Proxy:             "http://127.0.0.1:10256/healthz",
		Policies:          "http://" + policiesHealth + "/healthz",
		Kubelet:           "http://127.0.0.1:10248/healthz",
	}[name]
}

// Certificates are the files Issue makes.
type Certificates struct {
	Cluster, FrontProxy, EtcdCA *Authority
	Tokens                      Pair
	APIServer, APIServerEtcd    Pair
	APIServerKubelet            Pair
	FrontProxyClient            Pair
	EtcdServer                  Pair
	KubeletServer               Pair
	// Fingerprint changes when any of them does.
	Fingerprint string
}

// All returns every component, fully configured.
func All(s Settings, certs Certificates) []Component {
	all := []Component{
		s.etcd(certs), s.containerd(), s.apiServer(certs), s.forwarder(), s.controllerManager(certs),
		s.scheduler(), s.proxy(), s.policies(), s.kubelet(certs),
	}
	for i := range all {
		c := &all[i]
		c.Cgroup = filepath.Join(s.Name, "system", c.Name)
		if c.Name != Forwarder {
			c.NetNS = s.Name
		}
		if c.Name == Containerd || c.Name == Kubelet {
			c.MountNS = s.MountNamespace().File
		}
		if c.Path == "" {
			c.Path = s.Binary[c.Name]
		}
		if c.Name != Containerd && c.Name != Forwarder {
			c.Inputs = append(c.Inputs, certs.Fingerprint)
		}
		for _, file := range c.Files {
			c.Inputs = append(c.Inputs, file.Text)
		}
	}
	return all
}

func (s Settings) etcd(certs Certificates) Component {
	return Component{Spec: host.Spec{Name: Etcd, Args: []string{
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
		Spec: host.Spec{Name: APIServer, Args: []string{
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
		Spec: host.Spec{Name: ControllerManager, Args: []string{
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
		Spec: host.Spec{Name: Scheduler, Args: []string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--kube-api-qps=100", "--kube-api-burst=200",
			"--profiling=false",
		}},
	}
}

func (s Settings) proxy() Component {
	file := File{Path: s.StatePath("config", "kube-proxy.yaml"), Text: fill(kubeProxyConfig, map[string]string{
		"KUBECONFIG": s.kubeconfig(Proxy), "POD_CIDR": config.PodCIDR.String(), "BRIDGE": config.BridgeName, "NODE": config.NodeName,
	})}
	return Component{
		Files: []File{file},
		Spec:  host.Spec{Name: Proxy, Args: []string{"--config=" + file.Path}, Env: s.OS.Env(host.SearchPath)},
	}
}

// policiesHealth is where the enforcer of network policies reports whether the kernel has the rules that the API asks for.
const policiesHealth = "127.0.0.1:10260"

func (s Settings) policies() Component {
	return Component{Spec: host.Spec{Name: Policies, Env: s.OS.Env(host.SearchPath), Args: []string{
		"--kubeconfig=" + s.kubeconfig(Policies),
		"--health=" + policiesHealth,
		"--socket=" + s.PoliciesSocket(),
		"--nft=" + filepath.Join(s.OS.Bin(), "nft"),
	}}}
}

// CNIPlugins maps the names of the pod network's plugins to the programs.
func (s Settings) CNIPlugins() map[string]string {
	plugins := map[string]string{Policies: s.Binary[Policies]}
	for _, name := range []string{"bridge", "host-local", "loopback", "portmap"} {
		plugins[name] = filepath.Join(s.OS.CNI(), name)
	}
	return plugins
}

// CNIBinDir is where containerd looks for the plugins.
func (s Settings) CNIBinDir() string { return s.StatePath("cni", "bin") }

func (s Settings) kubelet(certs Certificates) Component {
	resolv := File{Path: s.StatePath("config", "resolv.conf"), Text: "# No name server: nothing in this cluster reaches beyond the machine.\n"}
	file := File{Path: s.StatePath("config", "kubelet.yaml"), Text: fill(kubeletConfig, map[string]string{
		"CLIENT_CA": certs.Cluster.Cert, "CERT": certs.KubeletServer.Cert, "KEY": certs.KubeletServer.Key,
		"CONTAINERD": s.ContainerdSocket(), "CGROUP": s.Name, "RESOLV": resolv.Path, "STATE": s.State,
		"DNS": config.DNSServiceIP.String(), "DOMAIN": config.ClusterDomain,
	})}
	return Component{
		Files: []File{resolv, file},
		Spec: host.Spec{Name: Kubelet, Env: s.OS.Env(host.SearchPath), Args: []string{
			"--config=" + file.Path,
			"--kubeconfig=" + s.kubeconfig(Kubelet),
			"--root-dir=" + s.KubeletRoot(),
			"--cert-dir=" + s.StatePath("kubelet", "pki"),
			"--hostname-override=" + config.NodeName,
			"--node-ip=" + config.NodeIP.String(),
		}},
	}
}

func (s Settings) containerd() Component {
	file := File{Path: s.StatePath("config", "containerd.toml"), Text: fill(containerdConfig, map[string]string{
		"STATE": s.State, "SOCKET": s.ContainerdSocket(), "PAUSE": s.PauseImage, "CNI_BIN": s.CNIBinDir(), "CNI_CONF": s.CNIConfDir(),
		"RUNC": filepath.Join(s.OS.Bin(), "runc"), "RESTRICT_OOM": fmt.Sprint(s.RestrictOOM),
	})}
	return Component{
		Files: []File{file},
		Spec: host.Spec{
			Name: Containerd, Path: filepath.Join(s.OS.Bin(), "containerd"),
			Args: []string{"--config", file.Path}, Env: s.OS.Env(host.SearchPath),
		},
	}
}

func (s Settings) forwarder() Component {
	return Component{Spec: host.Spec{Name: Forwarder, Path: s.Self, Args: []string{
		ForwardCommand, "--netns", s.Name,
		"--listen", fmt.Sprintf("127.0.0.1:%d", s.Port),
		"--to", fmt.Sprintf("%s:%d", config.NodeIP, config.APIServerPort),
	}}}
}

// ForwardCommand is the hidden command of this program that carries connections into the namespace.
const ForwardCommand = "forward"

// CNIConf is the pod network. It is written last, because kubelet starts pods as soon as it is there.
func (s Settings) CNIConf() File {
	return File{Path: filepath.Join(s.CNIConfDir(), "10-assay.conflist"), Text: fill(cniConfig, map[string]string{
		"NETWORK": CNINetwork, "BRIDGE": config.BridgeName, "POD_CIDR": config.PodCIDR.String(), "GATEWAY": config.NodeIP.String(),
		"DATA": s.StatePath("cni", "networks"), "POLICIES": Policies, "POLICIES_SOCKET": s.PoliciesSocket(),
	})}
}

// CNIConfDir is where containerd looks for the pod network.
func (s Settings) CNIConfDir() string { return s.StatePath("cni", "net.d") }

// KubeletRoot is kubelet's own folder: volumes, checkpoints, plugins.
func (s Settings) KubeletRoot() string { return s.StatePath("kubelet") }

func (s Settings) kubeconfig(name string) string { return s.StatePath("config", name+".kubeconfig") }

// fill replaces {{NAME}} in a template, by itself and not by text/template, because values are paths and never code.
func fill(template string, values map[string]string) string {
	pairs := make([]string, 0, 2*len(values))
	for name, value := range values {
		pairs = append(pairs, "{{"+name+"}}", value)
	}
	return strings.NewReplacer(pairs...).Replace(template)
}
