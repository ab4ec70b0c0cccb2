package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Up starts the cluster. Healthy components keep running; dead and stale ones are cleaned up and restarted.
func (c *Cluster) Up(ctx context.Context) error {
	settings, err := c.settings(ctx)
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
	if err := c.host.Prepare(c.snapshotFile(), append(c.MountNamespace().Targets(), host.NetNSDir)); err != nil {
		return err
	}
	if err := c.copySelf(); err != nil {
		return err
	}
	certs, err := component.Issue(settings, time.Now)
	if err != nil {
		return err
	}
	if err := c.foundation(); err != nil {
		return err
	}
	up := &upRun{
		Cluster: c, settings: settings, parts: map[string]component.Component{},
		launcher: host.Launcher{Self: settings.Self, LogDir: c.StatePath("log"), Records: c.records},
	}
	for _, part := range component.All(settings, certs) {
		up.parts[part.Name] = part
	}
	return up.run(ctx, archives)
}

func (c *Cluster) snapshotFile() string { return c.StatePath("host-before.json") }

// foundation provides the cgroup and the namespaces. Processes without their namespaces are killed.
func (c *Cluster) foundation() error {
	mount := c.MountNamespace()
	if !host.NetNSExists(c.Name) || !mount.Exists() {
		if pids := c.group.Processes(); len(pids) > 0 {
			c.say("a namespace of %s is gone: ending the %d processes it leaves behind", c.Name, len(pids))
		}
		if err := c.killEverything(); err != nil {
			return err
		}
		if err := host.CreateNetNS(c.Name); err != nil {
			return err
		}
		if err := mount.Create(); err != nil {
			return err
		}
		identity, err := host.NetNSIdentity(c.Name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.namespaceFile(), []byte(identity), 0o600); err != nil {
			return err
		}
	}
	if err := c.Layout().Setup(); err != nil {
		return err
	}
	return c.group.Create()
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
	essential, others := splitArchives(archives)
	importing, stop := context.WithCancel(ctx)
	defer stop()
	imports, importing := errgroup.WithContext(importing)
	essentialDone := make(chan error, 1)
	imports.Go(func() error {
		err := u.start(importing, component.Containerd, 30*time.Second)
		if err == nil {
			err = u.load(importing, u.settings, essential)
		}
		essentialDone <- err
		if err != nil {
			return err
		}
		return u.load(importing, u.settings, others)
	})
	// An import that says only that it was stopped adds nothing.
	abandon := func(err error) error {
		stop()
		if failed := imports.Wait(); !errors.Is(failed, context.Canceled) {
			err = errors.Join(err, failed)
		}
		return err
	}
	if err := u.controlPlane(ctx); err != nil {
		return abandon(err)
	}
	if err := <-essentialDone; err != nil {
		return err
	}
	if err := u.node(ctx); err != nil {
		return abandon(err)
	}
	if err := u.dns(ctx, refOf(archives, "registry.k8s.io/coredns/coredns")); err != nil {
		return abandon(err)
	}
	if err := imports.Wait(); err != nil {
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

func (u *upRun) controlPlane(ctx context.Context) error {
	if err := u.start(ctx, component.Etcd, 30*time.Second); err != nil {
		return err
	}
	if err := u.start(ctx, component.APIServer, 90*time.Second); err != nil {
		return err
	}
	if err := u.start(ctx, component.Forwarder, 10*time.Second); err != nil {
		return err
	}
	tasks, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{component.ControllerManager, component.Scheduler} {
		tasks.Go(func() error { return u.start(ctx, name, 45*time.Second) })
	}
	return tasks.Wait()
}

// node starts the node components. Pods wait for the pod network, and that for Service translation and network
// policies: a pod's first packet must not come before the rules that translate or drop it.
func (u *upRun) node(ctx context.Context) error {
	for _, name := range []string{component.Proxy, component.Policies} {
		if _, alive, current := u.launcher.Running(u.parts[name].Spec); !alive || !current {
			if err := host.RemoveFile(u.settings.CNIConf().Path); err != nil {
				return err
			}
		}
	}
	network, networking := errgroup.WithContext(ctx)
	network.Go(func() error { return u.start(networking, component.Proxy, 60*time.Second) })
	network.Go(func() error {
		if err := u.apply(networking, component.PoliciesManifest()); err != nil {
			return err
		}
		return u.start(networking, component.Policies, 60*time.Second)
	})
	tasks, starting := errgroup.WithContext(ctx)
	tasks.Go(func() error { return u.startKubelet(starting) })
	tasks.Go(func() error {
		if err := errors.Join(network.Wait(), u.linkPlugins()); err != nil {
			return err
		}
		return writeFile(u.settings.CNIConf())
	})
	if err := tasks.Wait(); err != nil {
		return err
	}
	return u.awaitReady(ctx)
}

// awaitReady waits until the current kubelet has reported the node ready, because after a restart the API server still holds the
// report of its predecessor.
func (u *upRun) awaitReady(ctx context.Context) error {
	record, _ := u.launcher.Records.Load(component.Kubelet)
	started := time.Now().Add(-record.Age())
	return u.awaitTrue(ctx, 60*time.Second, "node "+config.NodeName+" Ready", func(ctx context.Context) error {
		out, err := u.kubectl(ctx, "", "get", "node", config.NodeName, "-o",
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

// startKubelet starts kubelet and clears a record of CPU assignments that it can no longer use: after a crash, or when the
// machine has other CPUs than before, kubelet refuses to start rather than to forget.
func (u *upRun) startKubelet(ctx context.Context) error {
	state := filepath.Join(u.settings.KubeletRoot(), "cpu_manager_state")
	if !validCPUState(state) {
		if err := host.RemoveFile(state); err != nil {
			return err
		}
	}
	err := u.start(ctx, component.Kubelet, 45*time.Second)
	if err == nil || !errors.Is(err, errGone) || !strings.Contains(tailOf(u.launcher.LogPath(component.Kubelet), 40), "cpu_manager_state") {
		return err
	}
	u.say("kubelet rejects its record of CPU assignments: removing it and starting again")
	if err := host.RemoveFile(state); err != nil {
		return err
	}
	return u.start(ctx, component.Kubelet, 45*time.Second)
}

func validCPUState(path string) bool {
	data, err := os.ReadFile(path)
	var state struct {
		PolicyName string `json:"policyName"`
	}
	return err == nil && json.Unmarshal(data, &state) == nil && state.PolicyName == "static"
}

// dns applies cluster DNS and waits until it answers.
func (u *upRun) dns(ctx context.Context, ref string) error {
	if err := u.apply(ctx, component.CoreDNSManifest(ref)); err != nil {
		return err
	}
	// Asked for real, through its Service: right after a restart the API server still holds the pod's old condition.
	return u.awaitTrue(ctx, 60*time.Second, "cluster DNS answers", u.resolve)
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
func (u *upRun) start(ctx context.Context, name string, within time.Duration) error {
	part := u.parts[name]
	record, alive, current := u.launcher.Running(part.Spec)
	switch {
	case alive && current:
		// An answer may be slow on a busy machine; a hung component gives none.
		if err := poll(ctx, 10*time.Second, 200*time.Millisecond,
			func(ctx context.Context) error { return u.healthy(ctx, part.Name) }); err == nil {
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
	if part.Name != component.Containerd {
		// A process whose record was lost (a crash right after its start) holds the ports its successor needs.
		return group.Kill(10 * time.Second)
	}
	// It watches the folder itself, so the folder must be there first and must never be replaced.
	if err := os.MkdirAll(u.settings.CNIConfDir(), 0o755); err != nil {
		return err
	}
	// Its cgroup is not emptied: the shims in it hold the running containers, and the next containerd finds them again.
	if err := os.MkdirAll(filepath.Dir(u.ContainerdSocket()), 0o711); err != nil {
		return err
	}
	return host.RemoveFile(u.ContainerdSocket())
}

// linkPlugins puts the pod network's plugins into one folder: containerd looks into no more.
func (u *upRun) linkPlugins() error {
	if err := os.MkdirAll(u.settings.CNIBinDir(), 0o755); err != nil {
		return err
	}
	for name, target := range u.settings.CNIPlugins() {
		link := filepath.Join(u.settings.CNIBinDir(), name)
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
func (u *upRun) awaitTrue(ctx context.Context, within time.Duration, what string, check func(context.Context) error) error {
	if err := poll(ctx, within, 250*time.Millisecond, check); err != nil {
		log := u.launcher.LogPath(component.Kubelet)
		pods, _ := u.kubectl(ctx, "", "get", "pods", "-A", "-o", "wide")
		events, _ := u.kubectl(ctx, "", "get", "events", "-A", "--sort-by=.lastTimestamp")
		return fmt.Errorf("%s: not after %s: %w\npods:\n%s\nevents:\n%s\nthe end of %s:\n%s",
			what, within, err, pods, host.Tail(string(events), 10), log, tailOf(log, 15))
	}
	u.say("%s", what)
	return nil
}

// Load imports image archives into the running cluster.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	settings, err := c.settings(ctx)
	if err != nil {
		return err
	}
	if _, err := c.ctr(ctx, settings, "version"); err != nil {
		return fmt.Errorf("cluster %s is not up: run `cluster up` first: %w", c.Name, err)
	}
	return c.load(ctx, settings, archives)
}

// load brings image archives into containerd, except those it holds already.
func (c *Cluster) load(ctx context.Context, settings component.Settings, archives []string) error {
	out, err := c.ctr(ctx, settings, "images", "list")
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
		if _, err := c.ctr(ctx, settings, "images", "import", "--digests=false", archive); err != nil {
			return fmt.Errorf("importing %s: %w", archive, err)
		}
		// A reference by digest resolves as it does after a pull.
		if _, err := c.ctr(ctx, settings, "images", "tag", "--force", ref, name); err != nil {
			return fmt.Errorf("naming %s by its digest: %w", archive, err)
		}
		c.say("image %s imported in %.1f s", ref, time.Since(started).Seconds())
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
