package host

// This file downloads the system packages that the cluster needs and unpacks them into the cache without installing them, so that no
// service starts and no file of the machine changes.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// packageNames lists the packages with the tools and the libraries these need beyond the C library.
var packageNames = []string{
	"containerd", "runc", "libseccomp2", "containernetworking-plugins",
	"iptables", "libxtables12", "libip4tc2", "libip6tc2", "libnftnl11", "libmnl0",
	"libnetfilter-conntrack3", "libnfnetlink0", "conntrack",
	"nftables", "libnftables1", "libjansson4", "libgmp10", "libedit2", "libbsd0", "libmd0", "libtinfo6",
}

// packagesLayout changes when the unpacked tree's shape does.
const packagesLayout = "2"

// Packages is the tree of unpacked packages.
type Packages struct{ Root string }

// Bin is the folder to put on PATH: every tool under its plain name.
func (t Packages) Bin() string { return filepath.Join(t.Root, "bin") }

// CNI is the folder of the network plugins.
func (t Packages) CNI() string { return filepath.Join(t.Root, "usr/lib/cni") }

// Env makes the tools find one another, their libraries and their plugins.
func (t Packages) Env(path string) []string {
	return []string{
		"PATH=" + t.Bin() + ":" + path,
		"LD_LIBRARY_PATH=" + filepath.Join(t.Root, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(t.Root, "lib/x86_64-linux-gnu"),
		"XTABLES_LIBDIR=" + filepath.Join(t.Root, "usr/lib/x86_64-linux-gnu/xtables"),
	}
}

// packageLinks are the names under which the tools are called, and where the packages hold them.
var packageLinks = map[string]string{
	"containerd": "usr/bin/containerd", "containerd-shim-runc-v2": "usr/bin/containerd-shim-runc-v2", "ctr": "usr/bin/ctr",
	"runc": "usr/sbin/runc", "conntrack": "usr/sbin/conntrack", "nft": "usr/sbin/nft",
	"iptables": "usr/sbin/xtables-nft-multi", "iptables-save": "usr/sbin/xtables-nft-multi", "iptables-restore": "usr/sbin/xtables-nft-multi",
	"ip6tables": "usr/sbin/xtables-nft-multi", "ip6tables-save": "usr/sbin/xtables-nft-multi",
	"ip6tables-restore": "usr/sbin/xtables-nft-multi",
}

// EnsurePackages returns the tree, fetched on first use.
func EnsurePackages(ctx context.Context, cache string, progress io.Writer) (Packages, error) {
	tree := Packages{Root: filepath.Join(cache, "os", osRelease()+"-"+packagesLayout)}
	if _, err := os.Stat(tree.Bin()); err == nil {
		return tree, nil
	}
	started := time.Now()
	fmt.Fprintf(progress, "fetch %-24s %s …\n", "system packages", strings.Join(packageNames, " "))
	unfinished := fmt.Sprintf("%s.%d", tree.Root, os.Getpid())
	defer os.RemoveAll(unfinished)
	if err := fetch(ctx, unfinished); err != nil {
		return tree, fmt.Errorf("fetching system packages: %w", err)
	}
	if err := os.Rename(unfinished, tree.Root); err != nil && !errors.Is(err, os.ErrExist) {
		return tree, err
	}
	fmt.Fprintf(progress, "fetch %-24s %.0f s\n", "system packages", time.Since(started).Seconds())
	return tree, nil
}

func fetch(ctx context.Context, root string) error {
	run := OS{}.Output
	downloads := filepath.Join(root, "download")
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return err
	}
	download := Command{
		Path: "apt-get", Args: append([]string{"-q", "-o", "APT::Sandbox::User=root", "download"}, packageNames...), Dir: downloads,
		Env: []string{"DEBIAN_FRONTEND=noninteractive"},
	}
	if _, err := run(ctx, download); err != nil {
		// The package lists are missing on a fresh machine and stale on an old one.
		if _, err := run(ctx, Command{Path: "apt-get", Args: []string{"-q", "update"}}); err != nil {
			return err
		}
		if _, err := run(ctx, download); err != nil {
			return err
		}
	}
	archives, err := fs.Glob(os.DirFS(downloads), "*.deb")
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if _, err := run(ctx, Command{Path: "dpkg-deb", Args: []string{"-x", filepath.Join(downloads, archive), root}}); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(downloads); err != nil {
		return err
	}
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for name, target := range packageLinks {
		if _, err := os.Stat(filepath.Join(root, target)); err != nil {
			return fmt.Errorf("the packages of this distribution hold no %s; Debian 12 is supported: %w", target, err)
		}
		if err := os.Symlink(filepath.Join("..", target), filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// osRelease names the distribution, because one cache may be shared by several (a mounted home folder, say).
func osRelease() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "unknown"
	}
	values := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[key] = strings.Trim(value, `"`)
		}
	}
	return values["ID"] + values["VERSION_ID"]
}
