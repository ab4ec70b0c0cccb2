// Package config names everything the embedded cluster owns: folders, addresses, ports and the kernel objects that carry its name.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// The addresses below exist only inside the cluster's own network namespace, so they cannot collide with the machine's.
const (
	// BridgeName is the bridge that every pod of a node is plugged into.
	BridgeName = "assay0"
	// UplinkName is the interface of a node to the other nodes, where there are some.
	UplinkName = "assay-up"
	// NodeName is the first node's name in Kubernetes, and the beginning of the others'.
	NodeName = "assay-node"
	// ClusterDomain is the suffix of every Service's DNS name.
	ClusterDomain = "cluster.local"
	// APIServerPort is the API server's port inside the namespace.
	APIServerPort = 6443
)

var (
	// podBase is the first address of the first node's pod range, and podBits how many bits of an address a range fixes.
	podBase = netip.MustParseAddr("10.201.0.0")
	podBits = 24
	// ServiceCIDR is the range of ClusterIPs.
	ServiceCIDR = netip.MustParsePrefix("10.202.0.0/16")
	// NodeIP is the address of the first node's bridge, and so that of the node and of the API server.
	NodeIP = netip.MustParseAddr("10.201.0.1")
	// APIServiceIP is the ClusterIP of the `kubernetes` Service: always the first of its range.
	APIServiceIP = netip.MustParseAddr("10.202.0.1")
	// DNSServiceIP is the ClusterIP of cluster DNS.
	DNSServiceIP = netip.MustParseAddr("10.202.0.10")
)

// Defaults of the settings a user may change.
const (
	DefaultName  = "assay-cluster"
	DefaultState = "/var/lib/assay-cluster"
	DefaultPort  = 16443
)

// Config is one cluster's settings.
type Config struct {
	// Name is the network namespace's name and the cgroup parent's.
	Name string
	// State is the folder that holds everything that dies with the cluster.
	State string
	// Cache is the folder of reusable files: binaries, unpacked packages and image archives.
	Cache string
	// Source is the cluster module's own folder, where the build recipes' go.mod files are.
	Source string
	// Version is that of our own images; empty takes the one of the tree.
	Version string
	// Port is where the API server is reachable on 127.0.0.1 of the machine.
	Port int
}

var validName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$`)

// FromEnv reads the settings from ASSAY_CLUSTER_{NAME,STATE,PORT,SOURCE} and ASSAY_CACHE, with defaults for unset variables.
func FromEnv(getenv func(string) string) (Config, error) {
	c := Config{
		Name:   cmp.Or(getenv("ASSAY_CLUSTER_NAME"), DefaultName),
		State:  cmp.Or(getenv("ASSAY_CLUSTER_STATE"), DefaultState),
		Cache:  getenv("ASSAY_CACHE"),
		Source: getenv("ASSAY_CLUSTER_SOURCE"), Version: getenv("ASSAY_VERSION"),
		Port: DefaultPort,
	}
	if c.Cache == "" {
		home := getenv("HOME")
		if home == "" {
			return c, errors.New("neither ASSAY_CACHE nor HOME is set: set ASSAY_CACHE to a folder for compiled binaries")
		}
		c.Cache = filepath.Join(home, ".cache", "assay")
	}
	if text := getenv("ASSAY_CLUSTER_PORT"); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil {
			return c, fmt.Errorf("ASSAY_CLUSTER_PORT is %q: give a port number", text)
		}
		c.Port = port
	}
	return c, nil
}

// Validate refuses settings that would make the cluster own something it must not delete.
func (c Config) Validate() error {
	if !validName.MatchString(c.Name) {
		return fmt.Errorf("cluster name %q: use at most 32 lower-case letters, digits and dashes, beginning with a letter", c.Name)
	}
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("port %d: choose one between 1 and 65535", c.Port)
	}
	for what, dir := range map[string]string{"state": c.State, "cache": c.Cache} {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return fmt.Errorf("%s folder %q: give a clean absolute path", what, dir)
		}
		if filepath.Dir(dir) == dir || filepath.Dir(filepath.Dir(dir)) == filepath.Dir(dir) {
			return fmt.Errorf("%s folder %q: choose a deeper one, because tear-down deletes it", what, dir)
		}
	}
	if within(c.Cache, c.State) || within(c.State, c.Cache) {
		return fmt.Errorf("state folder %s and cache folder %s contain one another: separate them, because tear-down deletes the state", c.State,
			c.Cache)
	}
	return nil
}

// FindSource returns the cluster module's folder: the given one, or the one at or above the working directory.
func FindSource(given, workingDir string) (string, error) {
	if given != "" {
		return given, nil
	}
	for dir := workingDir; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "cluster")} {
			if _, err := os.Stat(filepath.Join(candidate, "build", "kubernetes", "go.mod")); err == nil {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no build recipes (build/kubernetes/go.mod) at or above %s: run from the checkout or set ASSAY_CLUSTER_SOURCE "+
				"to its cluster folder", workingDir)
		}
	}
}

// StatePath joins a path below the state folder.
func (c Config) StatePath(elem ...string) string {
	return filepath.Join(append([]string{c.State}, elem...)...)
}

// CachePath joins a path below the cache folder.
func (c Config) CachePath(elem ...string) string {
	return filepath.Join(append([]string{c.Cache}, elem...)...)
}

// Kubeconfig is the administrator's kubeconfig.
func (c Config) Kubeconfig() string { return c.StatePath("kubeconfig") }

// Marker is the file that says a state folder is ours.
func (c Config) Marker() string { return c.StatePath("assay-cluster.json") }

// APIServerURL is the API server as seen from inside the namespace.
func APIServerURL() string { return fmt.Sprintf("https://%s:%d", NodeIP, APIServerPort) }

// HostURL is the API server as seen from the machine.
func (c Config) HostURL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.Port) }

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
