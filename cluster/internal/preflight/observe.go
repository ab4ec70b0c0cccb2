package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"assay.dev/assay/cluster/internal/component"
	"assay.dev/assay/cluster/internal/embedded"
	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/image"
	"assay.dev/assay/cluster/internal/recipe"
)

// Observe looks at this machine.
func Observe(ctx context.Context, cluster *embedded.Cluster) Machine {
	m := Machine{
		Platform: runtime.GOOS + "/" + runtime.GOARCH, UID: os.Getuid(), Port: cluster.Port,
		CacheDir: cluster.Cache, StateDir: cluster.State,
		Owner: cluster.CheckOwner(),
	}
	m.CacheFree, m.StateFree, m.SameDisk = disks(cluster.Cache, cluster.State)
	m.Compiled = compiled(ctx, cluster)
	// Unknown memory counts as none.
	m.MemoryAvailable, _ = host.Memory("MemAvailable")
	statuses, _ := cluster.Statuses(ctx)
	ours := false
	for _, status := range statuses {
		m.ClusterRuns = m.ClusterRuns || status.PID != 0
		ours = ours || status.Name == component.Forwarder && status.PID != 0
	}
	if !ours {
		m.PortHolder = portHolder(m.Port)
	}
	hierarchies, err := host.DetectCgroups()
	m.CgroupError = err
	for _, hierarchy := range hierarchies {
		m.Controllers = append(m.Controllers, hierarchy.Available()...)
	}
	if m.UID == 0 {
		m.Namespace = errors.Join(cluster.CheckNamespace(), cluster.CheckGroup())
		m.Missing = missingFeatures(ctx)
	}
	return m
}

func compiled(ctx context.Context, cluster *embedded.Cluster) bool {
	table, err := image.ReadTable(cluster.Source, cluster.Version)
	builder := recipe.Builder{Source: cluster.Source, Cache: cluster.Cache}
	return err == nil && builder.Has(ctx, append(table.Programs(), component.Binaries...)...)
}

// disks reports the space left for two folders, which need not exist yet, and whether they share it.
func disks(cache, state string) (cacheFree, stateFree uint64, same bool) {
	var stats [2]unix.Statfs_t
	var devices [2]uint64
	for i, dir := range []string{cache, state} {
		dir = existing(dir)
		var info unix.Stat_t
		if unix.Statfs(dir, &stats[i]) == nil && unix.Stat(dir, &info) == nil {
			devices[i] = info.Dev
		}
	}
	free := func(s unix.Statfs_t) uint64 { return s.Bavail * uint64(s.Bsize) }
	return free(stats[0]), free(stats[1]), devices[0] == devices[1]
}

func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == "/" {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// portHolder names the process that has a TCP port of 127.0.0.1; empty when it is free.
func portHolder(port int) string {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		listener.Close()
		return ""
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for _, inode := range listenerInodes(string(data), port) {
			if holder := socketHolder(inode); holder != "" {
				return holder
			}
		}
	}
	return fmt.Sprintf("an unknown process (%v)", err)
}

// listenerInodes finds the sockets that listen on a port in the text of /proc/net/tcp.
func listenerInodes(table string, port int) []string {
	const listening = "0A"
	var inodes []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) >= 10 && fields[3] == listening && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

func socketHolder(inode string) string {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || target != "socket:["+inode+"]" {
			continue
		}
		pid := strings.Split(link, "/")[2]
		name, _ := os.ReadFile("/proc/" + pid + "/comm")
		return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(name)))
	}
	return ""
}

// missingFeatures tries each kernel feature rather than reading the kernel's configuration, which may not be there.
func missingFeatures(ctx context.Context) []string {
	// Built-in features and automatic loading make this unnecessary on most machines; a failure shows below.
	modules := []string{"-a", "overlay", "bridge", "br_netfilter", "veth", "nf_tables"}
	_, _ = host.OS{}.Output(ctx, host.Command{Path: "modprobe", Args: modules})
	var missing []string
	note := func(ok bool, feature string) {
		if !ok {
			missing = append(missing, feature)
		}
	}
	filesystems, _ := os.ReadFile("/proc/filesystems")
	note(strings.Contains(string(filesystems), "\toverlay\n"), "overlay file system is missing (images' layers)")
	status, _ := os.ReadFile("/proc/self/status")
	note(strings.Contains(string(status), "\nSeccomp:"), "seccomp is missing (containers' system call filter)")
	err := host.InScratchNetNS(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "assay-try0"
		note(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}) == nil, "bridge is missing (the pod network)")
		attrs.Name = "assay-try1"
		note(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "assay-try2"}) == nil, "veth is missing (the pod network)")
		_, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables")
		note(err == nil, "br_netfilter is missing (Services between pods, network policies)")
		note(hasNFTables(), "nf_tables is missing (Services, network policies)")
		return nil
	})
	note(err == nil, fmt.Sprintf("network namespaces cannot be made (%v)", err))
	return missing
}

// hasNFTables asks nf_tables for its generation number, which also makes the kernel load it.
func hasNFTables() bool {
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, 0)
	request.AddData(&nl.Nfgenmsg{})
	_, err := request.Execute(unix.NETLINK_NETFILTER, 0)
	return err == nil
}
