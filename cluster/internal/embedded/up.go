package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"assay.dev/assay/cluster/internal/component"
	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/image"
)

// Up starts the cluster with count nodes; zero keeps those that it has. Healthy components keep running; dead and stale ones are cleaned up
// and restarted. Nodes that were stopped stay so.
func (c *Cluster) Up(ctx context.Context, count int) error {
	nodes, err := config.ReadNodes(c.Config)
	if err == nil && count != 0 {
		err = nodes.Grow(count)
	}
	if err != nil {
		return err
	}
	return c.up(ctx, nodes)
}

// up makes the cluster as the list of nodes says, and remembers the list.
func (c *Cluster) up(ctx context.Context, nodes config.Nodes) error {
	settings, err := c.settings(ctx, nodes)
	if err != nil {
		return err
	}
	archives, err := Images(ctx, c.Config, withoutCached{c.Out})
	if err != nil {
		return err
	}
	settings.PauseImage = refOf(archives, "registry.k8s.io/pause")
	c.began = time.Now()
	if err := errors.Join(c.CheckNamespace(), c.CheckGroup()); err != nil {
		return err
	}
	if err := c.Claim(); err != nil {
		return err
	}
	if err := c.remember(nodes); err != nil {
		return err
	}
	if err := c.host.Prepare(c.snapshotFile(), append(settings.Members[0].MountNamespace().Targets(), host.NetNSDir)); err != nil {
		return err
	}
	if err := c.copySelf(); err != nil {
		return err
	}
	// The folder of a node is made here, because certificates would make it for root alone.
	for _, member := range settings.Members {
		if err := os.MkdirAll(member.State, 0o711); err != nil {
			return err
		}
	}
	certs, err := component.Issue(settings, time.Now)
	if err != nil {
		return err
	}
	if err := c.foundation(settings.Members, nodes); err != nil {
		return err
	}
	up := &upRun{
		Cluster: c, settings: settings, parts: map[string]component.Component{},
		launcher: host.Launcher{Self: settings.Self, LogDir: c.StatePath("log"), Records: c.records},
	}
	for _, part := range component.All(settings, certs) {
		up.parts[part.Name()] = part
	}
	return up.run(ctx, archives)
}

func (c *Cluster) snapshotFile() string { return c.StatePath("host-before.json") }

// foundation provides each node's cgroup and namespaces, and connects them.
func (c *Cluster) foundation(members []component.Member, nodes config.Nodes) error {
	for _, member := range members {
		if err := c.ground(member); err != nil {
			return err
		}
	}
	if nodes.Shares == 1 {
		return nil
	}
	network := c.network()
	if err := network.Setup(); err != nil {
		return err
	}
	for _, member := range members {
		layout := c.Layout(member.Node, nodes.Indices()...)
		if err := network.Plug(portOf(member.Node), layout, nodes.States[member.Index] != config.Isolated); err != nil {
			return err
		}
	}
	return nil
}

// portOf is the name of a node's port in the switch; the kernel takes 15 characters.
func portOf(node config.Node) string { return fmt.Sprintf("node-%d", node.Index) }

// ground provides the cgroup and the namespaces of a node. Processes without their namespaces are killed.
func (c *Cluster) ground(member component.Member) error {
	node, mount := member.Node, member.MountNamespace()
	// The file is the one that kubelet sees already, so it is written in place.
	if err := os.MkdirAll(filepath.Dir(node.VisibleCPUs()), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(node.VisibleCPUs(), []byte(config.CPUList(member.CPUs)), 0o644); err != nil {
		return err
	}
	if !host.NetNSExists(node.NetNS) || !mount.Exists() {
		if pids := c.groupOf(node).Processes(); len(pids) > 0 {
			c.say("a namespace of %s is gone: ending the %d processes it leaves behind", node.NetNS, len(pids))
		}
		if err := c.endNode(node); err != nil {
			return err
		}
		if err := host.CreateNetNS(node.NetNS); err != nil {
			return err
		}
		if err := mount.Create(); err != nil {
			return err
		}
		identity, err := host.NetNSIdentity(node.NetNS)
		if err != nil {
			return err
		}
		if err := os.WriteFile(namespaceFile(node), []byte(identity), 0o600); err != nil {
			return err
		}
	}
	if err := c.Layout(node).Setup(); err != nil {
		return err
	}
	return c.groupOf(node).Create()
}

// upRun is one call of Up.
type upRun struct {
	*Cluster
	settings component.Settings
	launcher host.Launcher
	parts    map[string]component.Component
}

func (u *upRun) run(ctx context.Context, archives []Archive) error {
	for _, part := range u.parts {
		for _, file := range part.Files {
			if err := writeFile(file); err != nil {
				return err
			}
		}
	}
	// Importing images needs containerd only, so it goes on beside the start of the control plane.
	first := u.settings.Members[0].Node
	essential, others := splitArchives(archives)
	importing, stop := context.WithCancel(ctx)
	defer stop()
	imports, importing := errgroup.WithContext(importing)
	essentialDone := make(chan error, 1)
	imports.Go(func() error {
		err := u.start(importing, first, component.Containerd, 30*time.Second)
		if err == nil {
			err = u.load(importing, u.settings, first, essential)
		}
		essentialDone <- err
		if err != nil {
			return err
		}
		return u.load(importing, u.settings, first, others)
	})
	// An import that says only that it was stopped adds nothing.
	abandon := func(err error) error {
		stop()
		if failed := imports.Wait(); !errors.Is(failed, context.Canceled) {
			err = errors.Join(err, failed)
		}
		return err
	}
	if err := u.controlPlane(ctx, first); err != nil {
		return abandon(err)
	}
	if err := <-essentialDone; err != nil {
		return err
	}
	if err := u.node(ctx, first); err != nil {
		return abandon(err)
	}
	if err := u.dns(ctx, refOf(archives, "registry.k8s.io/coredns/coredns")); err != nil {
		return abandon(err)
	}
	if err := imports.Wait(); err != nil {
		return err
	}
	if err := u.others(ctx, append(essential, others...)); err != nil {
		return err
	}
	u.say("cluster %s is ready: export KUBECONFIG=%s", u.Name, u.Kubeconfig())
	return nil
}

// splitArchives separates the archives of the cluster's own images from those of workloads.
func splitArchives(archives []Archive) (essential, others []string) {
	for _, archive := range archives {
		if strings.HasPrefix(archive.Ref, "registry.k8s.io/") {
			essential = append(essential, archive.Path)
		} else {
			others = append(others, archive.Path)
		}
	}
	return essential, others
}

func (u *upRun) controlPlane(ctx context.Context, node config.Node) error {
	if err := u.start(ctx, node, component.Etcd, 30*time.Second); err != nil {
		return err
	}
	if err := u.start(ctx, node, component.APIServer, 90*time.Second); err != nil {
		return err
	}
	if err := u.start(ctx, node, component.Forwarder, 10*time.Second); err != nil {
		return err
	}
	tasks, ctx := errgroup.WithContext(ctx)
	for _, kind := range []string{component.ControllerManager, component.Scheduler} {
		tasks.Go(func() error { return u.start(ctx, node, kind, 45*time.Second) })
	}
	return tasks.Wait()
}

// node starts the components of a node whose containerd runs. Pods wait for the pod network, and that for Service translation and network
// policies: a pod's first packet must not come before the rules that translate or drop it.
func (u *upRun) node(ctx context.Context, node config.Node) error {
	for _, kind := range []string{component.Proxy, component.Policies} {
		if _, alive, current := u.launcher.Running(u.part(node, kind).Spec); !alive || !current {
			if err := host.RemoveFile(u.settings.CNIConf(node).Path); err != nil {
				return err
			}
		}
	}
	network, networking := errgroup.WithContext(ctx)
	network.Go(func() error { return u.start(networking, node, component.Proxy, 60*time.Second) })
	network.Go(func() error {
		if err := u.apply(networking, component.PoliciesManifest()); err != nil {
			return err
		}
		return u.start(networking, node, component.Policies, 60*time.Second)
	})
	tasks, starting := errgroup.WithContext(ctx)
	tasks.Go(func() error { return u.startKubelet(starting, node) })
	tasks.Go(func() error {
		if err := errors.Join(network.Wait(), u.linkPlugins(node)); err != nil {
			return err
		}
		return writeFile(u.settings.CNIConf(node))
	})
	if err := tasks.Wait(); err != nil {
		return err
	}
	return u.awaitReady(ctx, node)
}

// part is the component of a kind on a node.
func (u *upRun) part(node config.Node, kind string) component.Component {
	return u.parts[component.Part{Kind: kind, Node: node}.Name()]
}

// awaitReady waits until the current kubelet has reported the node ready, because after a restart the API server still holds the
// report of its predecessor.
func (u *upRun) awaitReady(ctx context.Context, node config.Node) error {
	record, _ := u.launcher.Records.Load(u.part(node, component.Kubelet).Name())
	started := time.Now().Add(-record.Age())
	return u.awaitTrue(ctx, 60*time.Second, "node "+node.Name+" Ready", node, func(ctx context.Context) error {
		out, err := u.kubectl(ctx, "", "get", "node", node.Name, "-o",
			`jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime} {.message}{end}`)
		if answer := strings.TrimSpace(string(out)); err == nil && !readySince(answer, started) {
			err = fmt.Errorf("its condition Ready is %q", answer)
		}
		return err
	})
}

// readySince reads "True 2026-01-02T03:04:05Z …": ready, and said so after the given time.
func readySince(answer string, started time.Time) bool {
	status, rest, _ := strings.Cut(answer, " ")
	heartbeat, _, _ := strings.Cut(rest, " ")
	at, err := time.Parse(time.RFC3339, heartbeat)
	// Heartbeats are whole seconds, rounded down.
	return status == "True" && err == nil && at.After(started.Truncate(time.Second).Add(-time.Nanosecond))
}

// startKubelet starts kubelet, and again without its record of CPU assignments if it rejects that: after a crash, or when the machine has
// other CPUs than before, kubelet refuses to start rather than to forget.
func (u *upRun) startKubelet(ctx context.Context, node config.Node) error {
	err := u.start(ctx, node, component.Kubelet, 45*time.Second)
	log := u.launcher.LogPath(u.part(node, component.Kubelet).Name())
	if err == nil || !errors.Is(err, errGone) || !strings.Contains(tailOf(log, 40), "cpu_manager_state") {
		return err
	}
	u.say("kubelet rejects its record of CPU assignments: removing it and starting again")
	if err := host.RemoveFile(cpuState(node)); err != nil {
		return err
	}
	return u.start(ctx, node, component.Kubelet, 45*time.Second)
}

// cpuState is kubelet's record of CPU assignments.
func cpuState(node config.Node) string {
	return filepath.Join(component.KubeletRoot(node), "cpu_manager_state")
}

// validCPUState reports whether kubelet can use a record on a node with these CPUs.
func validCPUState(path string, cpus []int) bool {
	data, err := os.ReadFile(path)
	var state struct {
		PolicyName    string                       `json:"policyName"`
		DefaultCPUSet string                       `json:"defaultCpuSet"`
		Entries       map[string]map[string]string `json:"entries"`
	}
	if err != nil || json.Unmarshal(data, &state) != nil || state.PolicyName != "static" {
		return false
	}
	sets := []string{state.DefaultCPUSet}
	for _, containers := range state.Entries {
		sets = slices.AppendSeq(sets, maps.Values(containers))
	}
	var recorded []int
	for _, set := range sets {
		if set == "" {
			continue // No CPU is left for the others.
		}
		some, err := parseCPUs(set)
		if err != nil {
			return false
		}
		recorded = append(recorded, some...)
	}
	slices.Sort(recorded)
	return slices.Equal(recorded, cpus)
}

// dns applies cluster DNS and waits until it answers.
func (u *upRun) dns(ctx context.Context, ref string) error {
	if err := u.apply(ctx, component.CoreDNSManifest(ref)); err != nil {
		return err
	}
	// Asked for real, through its Service: right after a restart the API server still holds the pod's old condition.
	return u.awaitTrue(ctx, 60*time.Second, "cluster DNS answers", u.settings.Members[0].Node, u.resolve)
}

// resolve looks up the API server's name as a pod would.
func (u *upRun) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return host.DialInNetNS(ctx, u.Name, network, net.JoinHostPort(config.DNSServiceIP.String(), "53"))
	}}
	addresses, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+config.ClusterDomain+".")
	if err == nil && !slices.Contains(addresses, config.APIServiceIP.String()) {
		err = fmt.Errorf("the API server's name resolves to %v, want %s", addresses, config.APIServiceIP)
	}
	return err
}

// start brings one component to health: one that runs as wanted is left alone.
func (u *upRun) start(ctx context.Context, node config.Node, kind string, within time.Duration) error {
	part := u.part(node, kind)
	name := part.Name()
	record, alive, current := u.launcher.Running(part.Spec)
	switch {
	case alive && current:
		// An answer may be slow on a busy machine; a hung component gives none.
		if err := poll(ctx, 10*time.Second, 200*time.Millisecond,
			func(ctx context.Context) error { return u.healthy(ctx, part.Part) }); err == nil {
			return nil
		} else if ctx.Err() != nil {
			return ctx.Err()
		} else {
			u.say("%s runs but is not well (%v): restarting it", name, err)
		}
	case alive:
		u.say("%s runs with other settings: restarting it", name)
	}
	if alive {
		if err := record.Stop(5 * time.Second); err != nil {
			return err
		}
	}
	if err := u.clearStale(part); err != nil {
		return err
	}
	started := time.Now()
	if err := u.launcher.Start(part.Spec); err != nil {
		return err
	}
	if err := u.await(ctx, part, within); err != nil {
		return err
	}
	u.say("%-24s ready after %.1f s", name, time.Since(started).Seconds())
	return nil
}

// clearStale removes files of a dead component that would keep its successor from starting.
func (u *upRun) clearStale(part component.Component) error {
	group := host.Cgroup{Name: part.Cgroup, Hierarchies: u.group.Hierarchies}
	if err := group.Create(); err != nil {
		return err
	}
	if part.Kind != component.Containerd {
		// A process whose record was lost (a crash right after its start) holds the ports its successor needs.
		if err := group.Kill(10 * time.Second); err != nil || part.Kind != component.Kubelet {
			return err
		}
		// The node may have another share of the CPUs than before.
		if state := cpuState(part.Node); !validCPUState(state, u.cpusOf(part.Node)) {
			return host.RemoveFile(state)
		}
		return nil
	}
	// It watches the folder itself, so the folder must be there first and must never be replaced.
	if err := os.MkdirAll(component.CNIConfDir(part.Node), 0o755); err != nil {
		return err
	}
	// Its cgroup is not emptied: the shims in it hold the running containers, and the next containerd finds them again.
	if err := os.MkdirAll(filepath.Dir(part.Node.ContainerdSocket()), 0o711); err != nil {
		return err
	}
	return host.RemoveFile(part.Node.ContainerdSocket())
}

func (u *upRun) cpusOf(node config.Node) []int {
	for _, member := range u.settings.Members {
		if member.Name == node.Name {
			return member.CPUs
		}
	}
	return nil
}

// linkPlugins puts the pod network's plugins into one folder: containerd looks into no more.
func (u *upRun) linkPlugins(node config.Node) error {
	if err := os.MkdirAll(component.CNIBinDir(node), 0o755); err != nil {
		return err
	}
	for name, target := range u.settings.CNIPlugins() {
		link := filepath.Join(component.CNIBinDir(node), name)
		if err := host.RemoveFile(link + ".next"); err != nil {
			return err
		}
		if err := os.Symlink(target, link+".next"); err != nil {
			return err
		}
		if err := os.Rename(link+".next", link); err != nil {
			return err
		}
	}
	return nil
}

// kubectl calls kubectl as the administrator.
func (u *upRun) kubectl(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return host.OS{}.Output(ctx, host.Command{
		Path: u.settings.Binary["kubectl"], Args: append([]string{"--kubeconfig", u.Kubeconfig()}, args...), Stdin: strings.NewReader(stdin),
	})
}

func (u *upRun) apply(ctx context.Context, manifest string) error {
	// Retried, because right after its start the API server still sets up its own roles and namespaces.
	return poll(ctx, 30*time.Second, 500*time.Millisecond, func(ctx context.Context) error {
		_, err := u.kubectl(ctx, manifest, "apply", "--server-side", "--force-conflicts", "--field-manager=assay-cluster", "-f", "-")
		return err
	})
}

// awaitTrue waits until check succeeds. On timeout the error includes pods, events and the kubelet's log.
func (u *upRun) awaitTrue(ctx context.Context, within time.Duration, what string, node config.Node,
	check func(context.Context) error,
) error {
	if err := poll(ctx, within, 250*time.Millisecond, check); err != nil {
		log := u.launcher.LogPath(u.part(node, component.Kubelet).Name())
		pods, _ := u.kubectl(ctx, "", "get", "pods", "-A", "-o", "wide")
		events, _ := u.kubectl(ctx, "", "get", "events", "-A", "--sort-by=.lastTimestamp")
		return fmt.Errorf("%s: not after %s: %w\npods:\n%s\nevents:\n%s\nthe end of %s:\n%s",
			what, within, err, pods, host.Tail(string(events), 10), log, tailOf(log, 15))
	}
	u.say("%s", what)
	return nil
}

// Load imports image archives into every node that runs.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	nodes, err := config.ReadNodes(c.Config)
	if err != nil {
		return err
	}
	settings, err := c.settings(ctx, nodes)
	if err != nil {
		return err
	}
	for _, member := range settings.Members {
		if _, err := ctr(ctx, settings, member.Node, "version"); err != nil {
			return fmt.Errorf("node %s of cluster %s is not up: run `cluster up` first: %w", member.Name, c.Name, err)
		}
		if err := c.load(ctx, settings, member.Node, archives); err != nil {
			return err
		}
	}
	return nil
}

// load brings image archives into a node's containerd, except those it holds already.
func (c *Cluster) load(ctx context.Context, settings component.Settings, node config.Node, archives []string) error {
	out, err := ctr(ctx, settings, node, "images", "list")
	if err != nil {
		return err
	}
	present := parseImageList(string(out))
	for _, archive := range archives {
		ref, digest, err := image.Digest(archive)
		if err != nil {
			return err
		}
		name := pinned(ref, digest)
		if present[ref] == digest && present[name] == digest {
			continue
		}
		started := time.Now()
		if _, err := ctr(ctx, settings, node, "images", "import", "--digests=false", archive); err != nil {
			return fmt.Errorf("importing %s: %w", archive, err)
		}
		// A reference by digest resolves as it does after a pull.
		if _, err := ctr(ctx, settings, node, "images", "tag", "--force", ref, name); err != nil {
			return fmt.Errorf("naming %s by its digest: %w", archive, err)
		}
		c.say("image %s imported%s in %.1f s", ref, node.Suffix, time.Since(started).Seconds())
	}
	return nil
}

// pinned is the name of an image with its digest in the place of its tag.
func pinned(ref, digest string) string {
	if colon := strings.LastIndexByte(ref, ':'); colon > strings.LastIndexByte(ref, '/') {
		ref = ref[:colon]
	}
	return ref + "@" + digest
}

// parseImageList reads names and digests from `ctr images list`.
func parseImageList(text string) map[string]string {
	digests := map[string]string{}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			digests[fields[0]] = fields[2]
		}
	}
	return digests
}

func writeFile(file component.File) error {
	if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
		return err
	}
	// In one step: containerd and kubelet watch some of these folders.
	return host.ReplaceFile(file.Path, []byte(file.Text), 0o644)
}
