package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"assay.dev/assay/cluster/internal/host"
)

// MaxNodes is the largest number of nodes of one cluster. Each needs 250 MiB and a kubelet's share of the CPUs.
const MaxNodes = 16

// Node names everything one node owns: folders, addresses and the kernel objects that carry its name. The first node also holds the control
// plane: its network namespace, control group and folder are those of the cluster, and the other nodes' folders and groups lie below them.
type Node struct {
	// Index identifies the node in its cluster.
	Index int
	// Name is its name in Kubernetes.
	Name string
	// Suffix is added to the names of its components; empty on the first node.
	Suffix string
	// NetNS is the name of its network namespace, Cgroup the parent of its control groups.
	NetNS, Cgroup string
	// State is the folder that holds everything that dies with the node.
	State string
	// PodCIDR is the range its pods get their addresses from, and IP its own address, which is that of its bridge.
	PodCIDR netip.Prefix
	IP      netip.Addr
}

// Node derives the node of an index. No two nodes of one cluster, nor of two clusters with different names and state folders, have a
// namespace, group, folder or address in common: no name of a cluster has a dot.
func (c Config) Node(index int) Node {
	node := Node{Index: index, Name: NodeName, NetNS: c.Name, Cgroup: c.Name, State: c.State}
	if index > 0 {
		node.Name = fmt.Sprintf("%s-%d", NodeName, index)
		node.Suffix = "@" + node.Name
		node.NetNS = fmt.Sprintf("%s.%d", c.Name, index)
		node.Cgroup = filepath.Join(c.Name, "nodes", node.Name)
		node.State = c.StatePath("nodes", node.Name)
	}
	base := podBase.As4()
	base[2] += byte(index)
	node.PodCIDR = netip.PrefixFrom(netip.AddrFrom4(base), podBits)
	node.IP = node.PodCIDR.Addr().Next()
	return node
}

// SwitchNetNS is the name of the network namespace that connects the nodes of a cluster with several.
func (c Config) SwitchNetNS() string { return c.Name + ".switch" }

// Turns is the folder in which nodes that give away the same CPUs agree which one measures.
func (c Config) Turns() string { return c.StatePath("turns") }

// StatePath joins a path below the node's folder.
func (n Node) StatePath(elem ...string) string {
	return filepath.Join(append([]string{n.State}, elem...)...)
}

// ContainerdSocket is where the node's containerd listens.
func (n Node) ContainerdSocket() string { return n.StatePath("run", "containerd.sock") }

// PoliciesSocket is where the pod network asks whether a pod's rules are in the kernel.
func (n Node) PoliciesSocket() string { return n.StatePath("run", "network-policies.sock") }

// OnlineCPUs is the file of the kernel from which kubelet learns which CPUs there are.
const OnlineCPUs = "/sys/devices/system/cpu/online"

// VisibleCPUs is the file that kubelet sees in the place of OnlineCPUs.
func (n Node) VisibleCPUs() string { return n.StatePath("config", "cpus-online") }

// MountNamespace is where containerd and kubelet mount things. Both, the CNI library and containerd's shim have folders
// that no setting moves; another runtime or kubelet of this machine uses the same ones, so ours must not see them.
func (n Node) MountNamespace() host.MountNamespace {
	covers := map[string]string{}
	for _, folder := range []string{"/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers"} {
		covers[folder] = n.StatePath("covers", strings.ReplaceAll(folder[1:], "/", "-"))
	}
	return host.MountNamespace{
		File: n.StatePath("ns", "mnt"), Covers: covers, Files: map[string]string{OnlineCPUs: n.VisibleCPUs()},
	}
}
