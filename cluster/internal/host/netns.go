package host

// This file manages the network namespace of the cluster, with its bridge and addresses.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// NetNSDir is where named network namespaces live, so that `ip netns` shows ours.
const NetNSDir = "/run/netns"

// NetNSPath is the file that keeps a named namespace alive.
func NetNSPath(name string) string { return filepath.Join(NetNSDir, name) }

// NetNSExists reports whether the namespace is there and alive: after a reboot, or a half-done deletion, only a plain file is left.
func NetNSExists(name string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(NetNSPath(name), &stat) == nil && stat.Type == unix.NSFS_MAGIC
}

// NetNSIdentity names this very namespace: another of the same name, or after a reboot, has another identity.
func NetNSIdentity(name string) (string, error) {
	var stat unix.Stat_t
	if err := unix.Stat(NetNSPath(name), &stat); err != nil {
		return "", fmt.Errorf("network namespace %s: %w", name, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d %s", stat.Dev, stat.Ino, strings.TrimSpace(string(boot))), nil
}

// CreateNetNS makes the namespace, with nothing but a loopback interface in it.
func CreateNetNS(name string) error {
	if err := DeleteNetNS(name); err != nil {
		return err
	}
	return onOwnThread(func() error {
		handle, err := vnetns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("making network namespace %s: %w", name, err)
		}
		return handle.Close()
	})
}

// DeleteNetNS drops the namespace's name. The kernel takes it down, with everything in it, when its last process is gone.
func DeleteNetNS(name string) error {
	err := removeNetNS(name)
	if errors.Is(err, unix.EBUSY) {
		err = removeNetNSBelow(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting network namespace %s: %w", name, err)
	}
	return nil
}

// layers are more mounts on one another than interrupted runs and other programs leave.
const layers = 8

func removeNetNS(name string) error {
	for range layers {
		if err := unix.Unmount(NetNSPath(name), unix.MNT_DETACH); err != nil {
			break
		}
	}
	return os.Remove(NetNSPath(name))
}

// removeNetNSBelow removes a name whose mount lies below a mount of the whole folder, since the first `ip netns add` after a boot mounts
// the folder on itself. Others may use that mount, so it is taken away in a mount namespace of this thread only. Removing the name there
// takes its mounts out of all mount namespaces.
func removeNetNSBelow(name string) error {
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		for range layers {
			if err := unix.Unmount(NetNSDir, unix.MNT_DETACH); err != nil {
				break
			}
			if err := removeNetNS(name); !errors.Is(err, unix.EBUSY) {
				return err
			}
		}
		return unix.EBUSY
	})
}

// EnterNetNS moves this thread into the namespace for good. Call it with the thread locked.
func EnterNetNS(name string) error {
	handle, err := vnetns.GetFromPath(NetNSPath(name))
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", name, err)
	}
	defer handle.Close()
	if err := vnetns.Set(handle); err != nil {
		return fmt.Errorf("entering network namespace %s: %w", name, err)
	}
	return nil
}

// InNetNS calls f inside the namespace.
func InNetNS(name string, f func() error) error {
	return onOwnThread(func() error {
		if err := EnterNetNS(name); err != nil {
			return err
		}
		return f()
	})
}

// onOwnThread calls f on a thread that is thrown away afterwards, because its namespace is no longer the program's.
func onOwnThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread with this goroutine
		result <- f()
	}()
	return <-result
}

// DialInNetNS connects to an address inside the namespace. The connection then works from everywhere.
func DialInNetNS(ctx context.Context, name, network, address string) (conn net.Conn, err error) {
	err = InNetNS(name, func() error {
		// A numeric address, so that the whole dial happens on this thread.
		conn, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Network describes the contents of the namespace.
type Network struct {
	Name     string
	Bridge   string
	Address  netip.Prefix // the bridge's own
	Services netip.Prefix // routed to the bridge, so that a ClusterIP has a route and is then translated
	Owner    string       // written on the bridge and the uplink, so that they are recognised
	Uplink   string       // interface to the other nodes, plugged into a Switch
	Peers    []Peer       // routed to the uplink
}

// Peer is another node: its own address, which is also the gateway of its pods.
type Peer struct {
	Address netip.Addr
	Pods    netip.Prefix
}

// sysctls are set inside the namespace only. Order matters: writing ip_forward resets others.
var sysctls = [][2]string{
	{"net/ipv4/ip_forward", "1"},
	{"net/ipv6/conf/all/disable_ipv6", "1"},
	{"net/ipv6/conf/default/disable_ipv6", "1"},
	// Traffic between two pods of one node crosses the bridge only; Service translation must see it too.
	{"net/bridge/bridge-nf-call-iptables", "1"},
	// The machine's strictness is inherited, and would drop translated packets that come back another way.
	{"net/ipv4/conf/all/rp_filter", "0"},
	{"net/ipv4/conf/default/rp_filter", "0"},
}

// Setup makes the namespace match the layout, and leaves matching parts unchanged.
func (l Network) Setup() error {
	return InNetNS(l.Name, func() error {
		for _, sysctl := range sysctls {
			if err := writeSysctl(sysctl[0], sysctl[1]); err != nil {
				return err
			}
		}
		loopback, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("network namespace %s: loopback: %w", l.Name, err)
		}
		if err := netlink.LinkSetUp(loopback); err != nil {
			return fmt.Errorf("network namespace %s: loopback: %w", l.Name, err)
		}
		return l.setupBridge()
	})
}

// routePeers makes the routes to the other nodes, and removes those to nodes that are no more. Each is reached at its bridge's address,
// which is on no common network: it answers for that address on its uplink too.
func (l Network) routePeers() error {
	uplink, err := netlink.LinkByName(l.Uplink)
	if err != nil {
		return fmt.Errorf("interface %s: %w", l.Uplink, err)
	}
	wanted := map[string]bool{}
	for _, peer := range l.Peers {
		route := &netlink.Route{
			LinkIndex: uplink.Attrs().Index, Dst: ipNet(peer.Pods), Gw: peer.Address.AsSlice(), Src: l.Address.Addr().AsSlice(),
			Flags: int(netlink.FLAG_ONLINK),
		}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("interface %s: route to %s: %w", l.Uplink, peer.Pods, err)
		}
		wanted[peer.Pods.String()] = true
	}
	routes, err := netlink.RouteList(uplink, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("interface %s: %w", l.Uplink, err)
	}
	for _, route := range routes {
		if route.Dst == nil || wanted[route.Dst.String()] {
			continue
		}
		if err := netlink.RouteDel(&route); err != nil {
			return fmt.Errorf("interface %s: route to %s: %w", l.Uplink, route.Dst, err)
		}
	}
	return nil
}

func (l Network) setupBridge() error {
	bridge, err := netlink.LinkByName(l.Bridge)
	if err != nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = l.Bridge
		// A fixed address: otherwise it follows the pods that come and go, and established connections break.
		attrs.HardwareAddr = net.HardwareAddr{0x02, 0xa5, 0x5a, 0x00, 0x00, 0x01}
		bridge = &netlink.Bridge{LinkAttrs: attrs}
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("bridge %s: %w", l.Bridge, err)
		}
	}
	if err := netlink.LinkSetAlias(bridge, l.Owner); err != nil {
		return fmt.Errorf("bridge %s: %w", l.Bridge, err)
	}
	address := &netlink.Addr{IPNet: ipNet(l.Address)}
	if err := netlink.AddrReplace(bridge, address); err != nil {
		return fmt.Errorf("bridge %s: address %s: %w", l.Bridge, l.Address, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("bridge %s: %w", l.Bridge, err)
	}
	route := &netlink.Route{LinkIndex: bridge.Attrs().Index, Dst: ipNet(l.Services), Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("bridge %s: route to %s: %w", l.Bridge, l.Services, err)
	}
	return nil
}

// Foreign lists interfaces in the namespace that the cluster does not make. If there are any, another program owns the namespace.
func (l Network) Foreign() ([]string, error) {
	var foreign []string
	err := InNetNS(l.Name, func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		foreign = foreignLinks(links, l)
		return nil
	})
	return foreign, err
}

func foreignLinks(links []netlink.Link, l Network) []string {
	bridge := -1
	for _, link := range links {
		if link.Attrs().Name == l.Bridge && link.Attrs().Alias == l.Owner {
			bridge = link.Attrs().Index
		}
	}
	var foreign []string
	// Tunnel devices appear in every new namespace by themselves when their module is loaded.
	automatic := []string{"lo", "tunl0", "sit0", "ip6tnl0", "ip6_vti0", "ip_vti0", "gre0", "gretap0", "erspan0", "ip6gre0"}
	for _, link := range links {
		attrs := link.Attrs()
		plugged := bridge >= 0 && attrs.MasterIndex == bridge
		uplink := attrs.Name == l.Uplink && attrs.Alias == l.Owner
		if attrs.Index != bridge && !plugged && !uplink && !slices.Contains(automatic, attrs.Name) {
			foreign = append(foreign, attrs.Name)
		}
	}
	return foreign
}

func writeSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", name)
	current, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "net/ipv6/") {
		return nil // a kernel without IPv6
	}
	if err == nil && strings.TrimSpace(string(current)) == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		return fmt.Errorf("setting %s inside the cluster's network namespace: %w (is the module br_netfilter loaded?)",
			strings.ReplaceAll(name, "/", "."), err)
	}
	return nil
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// InScratchNetNS calls f in a new namespace that no other process can enter and that ends with the call.
func InScratchNetNS(f func() error) error {
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}
