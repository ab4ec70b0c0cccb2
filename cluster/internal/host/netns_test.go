package host

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func link(index, master int, name, alias string) netlink.Link {
	return &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: index, MasterIndex: master, Name: name, Alias: alias,
		HardwareAddr: net.HardwareAddr{}}}
}

func TestForeignLinks_AreFound(t *testing.T) {
	layout := Network{Bridge: "assay0", Owner: "assay-cluster:/state", Uplink: "assay-up"}
	lo, ours := link(1, 0, "lo", ""), link(2, 0, "assay0", layout.Owner)
	for reason, tc := range map[string]struct {
		links []netlink.Link
		want  []string
	}{
		"a namespace that was just made":          {[]netlink.Link{lo}, nil},
		"ours, with pods plugged in":              {[]netlink.Link{lo, ours, link(5, 2, "veth1", "")}, nil},
		"tunnel devices come by themselves":       {[]netlink.Link{lo, link(3, 0, "tunl0", "")}, nil},
		"a foreign interface":                     {[]netlink.Link{lo, link(4, 0, "wg0", "")}, []string{"wg0"}},
		"a bridge of our name with another owner": {[]netlink.Link{lo, link(2, 0, "assay0", "assay-cluster:/other")}, []string{"assay0"}},
		"our uplink": {[]netlink.Link{lo, ours, link(8, 0, "assay-up", layout.Owner)}, nil},
		"an uplink of our name with another owner":   {[]netlink.Link{lo, ours, link(8, 0, "assay-up", "")}, []string{"assay-up"}},
		"a pair that is plugged into another bridge": {[]netlink.Link{lo, ours, link(7, 9, "veth2", "")}, []string{"veth2"}},
	} {
		if diff := cmp.Diff(tc.want, foreignLinks(tc.links, layout)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// The first `ip netns add` on a machine mounts the folder of all names on itself: the mount of a name that was there lies below it then.
func TestNetns_IsRemovedDespiteAnotherMount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	// In a new mount namespace, because with shared mounts an unmount also removes the mount below.
	const inside = "ASSAY_NETNS_TEST"
	if os.Getenv(inside) == "" {
		again := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), inside+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if out, err := again.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
			t.Errorf("in a new mount namespace: %v\n%s", err, out)
		}
		return
	}
	const name = "assay-netns-test"
	if err := CreateNetNS(name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := unix.Mount(NetNSDir, NetNSDir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeNetNS(name); !errors.Is(err, unix.EBUSY) {
		t.Fatalf("the test makes no name that is busy: %v", err)
	}
	if err := DeleteNetNS(name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(NetNSPath(name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", NetNSPath(name), err)
	}
}
