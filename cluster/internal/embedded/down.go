package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/cluster/internal/component"
	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/turn"
)

// Down removes the cluster and everything it made on this machine, and then looks whether anything is left.
func (c *Cluster) Down(context.Context) error {
	if err := c.CheckOwner(); err != nil {
		return err
	}
	if err := errors.Join(c.CheckNamespace(), c.CheckGroup()); err != nil {
		return err
	}
	if err := c.killEverything(); err != nil {
		return err
	}
	if err := errors.Join(c.host.Restore(c.snapshotFile()), os.RemoveAll(c.State)); err != nil {
		return err
	}
	if left := c.Remains(); len(left) > 0 {
		return fmt.Errorf("tear-down left something behind:\n  %s", strings.Join(left, "\n  "))
	}
	c.say("cluster %s is gone, nothing is left", c.Name)
	return nil
}

// killEverything ends all processes and removes mounts, namespaces and cgroups. The data stays.
func (c *Cluster) killEverything() error {
	// The other nodes' folders and groups are below the first one's; their namespaces are not.
	for _, node := range c.every() {
		if err := c.endNode(node); err != nil {
			return err
		}
	}
	return host.DeleteNetNS(c.SwitchNetNS())
}

// endNode ends everything that is below a node's control group, and removes its mounts, namespaces and groups, as if the machine were
// switched off. The data stays.
func (c *Cluster) endNode(node config.Node) error {
	// kubelet first, because it restarts containers.
	for _, part := range slices.Backward(component.Parts(c.every())) {
		if strings.HasPrefix(part.Node.Cgroup+"/", node.Cgroup+"/") {
			if err := c.end(part.Name()); err != nil {
				return err
			}
		}
	}
	group := c.groupOf(node)
	if err := group.Kill(20 * time.Second); err != nil {
		return err
	}
	if err := host.UnmountBelow(node.State, 10*time.Second); err != nil {
		return err
	}
	if err := host.DeleteNetNS(node.NetNS); err != nil {
		return err
	}
	if err := turn.Forget(c.Turns(), node.Name); err != nil {
		return err
	}
	return group.Remove(10 * time.Second)
}

func (c *Cluster) groupOf(node config.Node) host.Cgroup {
	return host.Cgroup{Name: node.Cgroup, Hierarchies: c.group.Hierarchies}
}

// end kills one remembered process, wherever it is.
func (c *Cluster) end(name string) error {
	record, ok := c.records.Load(name)
	if !ok {
		return nil
	}
	if err := record.Stop(0); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return c.records.Forget(name)
}

// Remains lists everything of the cluster that still exists. Down returns without error only if the list is empty.
func (c *Cluster) Remains() []string {
	var left []string
	for _, pid := range c.group.Processes() {
		left = append(left, fmt.Sprintf("process %d (%s) in our cgroup", pid, commandName(pid)))
	}
	for _, pid := range processesBelow(c.State) {
		left = append(left, fmt.Sprintf("process %d (%s) runs a program from %s", pid, commandName(pid), c.State))
	}
	for _, dir := range c.group.Dirs() {
		left = append(left, "cgroup "+dir)
	}
	points, err := host.MountsBelow(c.State)
	if err != nil {
		left = append(left, "mounts: "+err.Error())
	}
	for _, point := range points {
		left = append(left, "mount "+point)
	}
	names := []string{c.SwitchNetNS()}
	for _, node := range c.every() {
		names = append(names, node.NetNS)
	}
	for _, name := range names {
		if _, err := os.Lstat(host.NetNSPath(name)); err == nil {
			left = append(left, "network namespace "+name)
		}
	}
	if _, err := os.Lstat(c.State); err == nil {
		left = append(left, "state folder "+c.State)
	}
	return left
}

// processesBelow lists processes whose program or working folder lies below a folder.
func processesBelow(dir string) []int {
	var pids []int
	for _, link := range []string{"exe", "cwd"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + link)
		for _, path := range paths {
			target, err := os.Readlink(path)
			if err != nil || !strings.HasPrefix(target, dir+"/") {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

func commandName(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "ended"
	}
	return strings.TrimSpace(string(name))
}

// Status is how one component is.
type Status struct {
	Name   string
	PID    int
	Health string
	Since  string
}

// Statuses reports the state of every component. ok is true when all are well, apart from those of nodes that were stopped.
func (c *Cluster) Statuses(ctx context.Context) (all []Status, ok bool) {
	nodes, err := config.ReadNodes(c.Config)
	if err != nil {
		return []Status{{Name: "nodes", Health: err.Error()}}, false
	}
	ok = true
	for _, part := range component.Parts(c.nodes(nodes)) {
		status := Status{Name: part.Name(), Health: "not running"}
		if record, known := c.records.Load(part.Name()); known && record.Alive() {
			status.PID, status.Since = record.PID, record.Age().Round(time.Second).String()
			status.Health = "healthy"
			if err := c.healthy(ctx, part); err != nil {
				said, _, _ := strings.Cut(err.Error(), "\n")
				status.Health = "unhealthy: " + said
			}
		} else if nodes.States[part.Node.Index] == config.Stopped {
			status.Health = "its node is stopped"
			all = append(all, status)
			continue
		}
		ok = ok && status.Health == "healthy"
		all = append(all, status)
	}
	return all, ok
}

// LogPath is where a component writes to.
func (c *Cluster) LogPath(name string) (string, error) {
	nodes, err := config.ReadNodes(c.Config)
	if err != nil {
		return "", err
	}
	var names []string
	for _, part := range component.Parts(c.nodes(nodes)) {
		names = append(names, part.Name())
	}
	if !slices.Contains(names, name) {
		return "", fmt.Errorf("unknown component %q: choose from %s", name, strings.Join(names, ", "))
	}
	path := filepath.Join(c.StatePath("log"), name+".log")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s has no log at %s: it was not started", name, path)
	}
	return path, nil
}
