// Package embedded brings the cluster up, tears it down and reports its state.
package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/cluster/internal/component"
	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/image"
	"assay.dev/assay/cluster/internal/recipe"
)

// Cluster is the embedded cluster of one configuration.
type Cluster struct {
	config.Config
	// Out receives progress, for people.
	Out io.Writer

	group   host.Cgroup
	records host.Records
	host    host.Machine
	began   time.Time
}

// New prepares to work on the cluster; it changes nothing.
func New(cfg config.Config, out io.Writer) (*Cluster, error) {
	hierarchies, err := host.DetectCgroups()
	if err != nil {
		return nil, err
	}
	return &Cluster{
		Config:  cfg,
		Out:     out,
		group:   host.Cgroup{Name: cfg.Name, Hierarchies: hierarchies},
		records: host.Records{Dir: cfg.StatePath("processes")},
		host:    host.Machine{Root: "/"},
		began:   time.Now(),
	}, nil
}

// Lock keeps two of us from working on one cluster at a time. It lies in the cache, because the state folder is deleted.
func (c *Cluster) Lock(ctx context.Context) (unlock func(), err error) {
	path := c.CachePath("locks", c.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if !said {
			c.say("another `cluster` command works on %s: waiting for it", c.Name)
			said = true
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("waiting for another `cluster` command (lock %s): %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintf(c.Out, "[%5.1f s] %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// marker is the content of the file that claims the state folder.
type marker struct {
	Owner string `json:"owner"`
	Name  string `json:"name"`
}

const owner = "assay-cluster"

// Claim makes the state folder ours, or says whose it is.
func (c *Cluster) Claim() error {
	if err := c.CheckOwner(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.State, 0o711); err != nil {
		return err
	}
	data, err := json.Marshal(marker{Owner: owner, Name: c.Name})
	if err != nil {
		return err
	}
	return os.WriteFile(c.Marker(), data, 0o644)
}

// CheckOwner rejects a state folder with foreign files, or of another cluster.
func (c *Cluster) CheckOwner() error {
	entries, err := os.ReadDir(c.State)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	data, err := os.ReadFile(c.Marker())
	var marked marker
	if err != nil || json.Unmarshal(data, &marked) != nil || marked.Owner != owner {
		return fmt.Errorf("state folder %s holds files that are not a cluster's (%s, …): empty it or set ASSAY_CLUSTER_STATE to another folder",
			c.State, entries[0].Name())
	}
	if marked.Name != c.Name {
		return fmt.Errorf("state folder %s belongs to the cluster %q, not %q: set ASSAY_CLUSTER_STATE to another folder, or "+
			"ASSAY_CLUSTER_NAME to %q", c.State, marked.Name, c.Name, marked.Name)
	}
	return nil
}

// Layout returns the contents of a node's network namespace, with routes to the nodes of these indices.
func (c *Cluster) Layout(node config.Node, indices ...int) host.Network {
	layout := host.Network{
		Name: node.NetNS, Bridge: config.BridgeName, Address: netip.PrefixFrom(node.IP, node.PodCIDR.Bits()),
		Services: config.ServiceCIDR, Owner: c.owner(), Uplink: config.UplinkName,
	}
	for _, index := range indices {
		if peer := c.Node(index); index != node.Index {
			layout.Peers = append(layout.Peers, host.Peer{Address: peer.IP, Pods: peer.PodCIDR})
		}
	}
	return layout
}

func (c *Cluster) network() host.Switch {
	return host.Switch{Name: c.SwitchNetNS(), Bridge: config.BridgeName, Owner: c.owner()}
}

func (c *Cluster) owner() string { return owner + ":" + c.State }

// every lists all nodes that this cluster could have, because tear-down must find remains without the list of nodes.
func (c *Cluster) every() []config.Node {
	nodes := make([]config.Node, 0, config.MaxNodes)
	for index := range config.MaxNodes {
		nodes = append(nodes, c.Node(index))
	}
	return nodes
}

// CheckNamespace rejects network namespaces of this cluster's names that another program made.
func (c *Cluster) CheckNamespace() error {
	found, err := c.network().Foreign()
	errs := []error{refuseForeign(c.SwitchNetNS(), found, err)}
	for _, node := range c.every() {
		if host.NetNSExists(node.NetNS) && !madeNamespace(node) {
			found, err := c.Layout(node).Foreign()
			errs = append(errs, refuseForeign(node.NetNS, found, err))
		}
	}
	return errors.Join(errs...)
}

func refuseForeign(namespace string, foreign []string, err error) error {
	if err != nil || len(foreign) == 0 {
		return err
	}
	return fmt.Errorf("network namespace %s has interfaces this cluster did not make (%s): set ASSAY_CLUSTER_NAME to another name, or "+
		"delete it with `ip netns delete %s` if it is unused", namespace, strings.Join(foreign, ", "), namespace)
}

// CheckGroup rejects foreign processes in the cgroup of the cluster's name, because up and down kill all processes in it. A cluster claims
// its state folder before it starts a process; if the folder was removed, the processes are recognized by their programs.
func (c *Cluster) CheckGroup() error {
	pids := c.group.Processes()
	if _, err := os.Stat(c.Marker()); err == nil || len(pids) == 0 {
		return nil
	}
	ours := slices.Concat(processesBelow(c.Cache), processesBelow(c.State))
	if slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(ours, pid) }) {
		return nil
	}
	return fmt.Errorf("cgroup %s holds %d processes that this cluster did not start (%d is %s): set ASSAY_CLUSTER_NAME to another name, "+
		"or end them if they are unused", c.Name, len(pids), pids[0], commandName(pids[0]))
}

// madeNamespace reports whether a node's namespace is the one that this cluster made, even if its contents have changed.
func madeNamespace(node config.Node) bool {
	recorded, err := os.ReadFile(namespaceFile(node))
	identity, identityErr := host.NetNSIdentity(node.NetNS)
	return err == nil && identityErr == nil && string(recorded) == identity
}

func namespaceFile(node config.Node) string { return node.StatePath("ns", "net.id") }

// settings gathers the values that configurations depend on, and fetches or compiles missing components.
func (c *Cluster) settings(ctx context.Context, nodes config.Nodes) (component.Settings, error) {
	s := component.Settings{Config: c.Config, Binary: map[string]string{}, RestrictOOM: !mayLowerOOMScore(), Hierarchies: c.group.Hierarchies}
	var err error
	if s.Members, err = c.members(nodes); err != nil {
		return s, err
	}
	if s.OS, err = host.EnsurePackages(ctx, c.Cache, c.Out); err != nil {
		return s, err
	}
	// Cached builds print no progress.
	built, err := recipe.Builder{Source: c.Source, Cache: c.Cache, Progress: withoutCached{c.Out}}.Build(ctx, component.Binaries...)
	if err != nil {
		return s, err
	}
	for _, one := range built {
		s.Binary[one.Name] = one.Path
	}
	s.Self = c.StatePath("bin", "cluster")
	return s, nil
}

// withoutCached removes the progress lines of cached builds.
type withoutCached struct{ io.Writer }

func (w withoutCached) Write(line []byte) (int, error) {
	if strings.HasSuffix(string(line), " cached\n") {
		return len(line), nil
	}
	return w.Writer.Write(line)
}

// Archive is an image's name and where its archive lies.
type Archive struct{ Ref, Path string }

// Images assembles the third-party images in the cache and compiles their programs.
func Images(ctx context.Context, cfg config.Config, out io.Writer) ([]Archive, error) {
	table, err := image.ReadTable(cfg.Source, cfg.Version)
	if err != nil {
		return nil, err
	}
	table = table.Upstream()
	all, err := recipe.Builder{Source: cfg.Source, Cache: cfg.Cache, Progress: out}.Build(ctx, table.Programs()...)
	if err != nil {
		return nil, err
	}
	built := map[string]recipe.Built{}
	for _, one := range all {
		built[one.Name] = one
	}
	var archives []Archive
	for _, row := range table {
		composed, inputs := row.Compose(built)
		archive, err := Assemble(composed, inputs, cfg, out)
		if err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

// Assemble writes, or finds, the archive of one image in the cache. Inputs stand for the contents of its files; nil reads them.
func Assemble(made image.Image, inputs []string, cfg config.Config, out io.Writer) (Archive, error) {
	path, cached, err := made.Archive(cfg.CachePath("images"), inputs)
	if err != nil {
		return Archive{}, err
	}
	state := "assembled"
	if cached {
		state = "cached"
	}
	fmt.Fprintf(out, "image %-63s %s\n", made.Ref, state)
	return Archive{Ref: made.Ref, Path: path}, nil
}

// refOf finds an image's full name among the archives.
func refOf(archives []Archive, repository string) string {
	for _, archive := range archives {
		if strings.HasPrefix(archive.Ref, repository+":") {
			return archive.Ref
		}
	}
	return ""
}

// mayLowerOOMScore reports whether this process has CAP_SYS_RESOURCE.
func mayLowerOOMScore() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// copySelf copies this program into the state folder, because processes that run for days must not depend on the checkout.
func (c *Cluster) copySelf() error {
	source, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	path := c.StatePath("bin", "cluster")
	if existing, err := os.ReadFile(path); err == nil && string(existing) == string(source) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// A running program's file cannot be written, but it can be replaced.
	return host.ReplaceFile(path, source, 0o755)
}

// tailOf returns the end of a log.
func tailOf(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "(no log)"
	}
	return host.Tail(string(data), lines)
}
