package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"assay.dev/assay/cluster/internal/component"
	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
)

// nodes derives the nodes of a list.
func (c *Cluster) nodes(list config.Nodes) []config.Node {
	var nodes []config.Node
	for _, index := range list.Indices() {
		nodes = append(nodes, c.Node(index))
	}
	return nodes
}

// members are the nodes of a list that run, with their shares of this machine.
func (c *Cluster) members(list config.Nodes) ([]component.Member, error) {
	machine, err := thisMachine()
	if err != nil {
		return nil, err
	}
	shares := config.Divide(machine, list.Shares, c.Name)
	var members []component.Member
	for _, node := range c.nodes(list) {
		if list.States[node.Index] != config.Stopped {
			members = append(members, component.Member{Node: node, Share: shares[node.Index]})
		}
	}
	return members, nil
}

func thisMachine() (machine config.Machine, err error) {
	online, err := os.ReadFile(config.OnlineCPUs)
	if err != nil {
		return machine, err
	}
	if machine.CPUs, err = parseCPUs(string(online)); err != nil {
		return machine, fmt.Errorf("%s: %w", config.OnlineCPUs, err)
	}
	machine.Memory, err = host.Memory("MemTotal")
	return machine, err
}

// parseCPUs reads a list as the kernel writes it: 0,3-5.
func parseCPUs(text string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, lastErr := strconv.Atoi(to)
		if err := errors.Join(err, lastErr); err != nil {
			return nil, fmt.Errorf("list of CPUs %q: %w", text, err)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// remember writes the list of nodes.
func (c *Cluster) remember(list config.Nodes) error {
	text, err := list.JSON()
	if err != nil {
		return err
	}
	return host.ReplaceFile(c.NodesFile(), []byte(text), 0o644)
}

// others starts the nodes after the first, and marks all with their labels and taints.
func (u *upRun) others(ctx context.Context, archives []string) error {
	tasks, starting := errgroup.WithContext(ctx)
	// Each start takes a CPU.
	tasks.SetLimit(2)
	for _, member := range u.settings.Members[1:] {
		// One after the other, because the first node's containerd is halted meanwhile.
		if err := u.cloneImages(ctx, u.settings.Members[0].Node, member.Node); err != nil {
			return errors.Join(err, tasks.Wait())
		}
		tasks.Go(func() error { return u.other(starting, member.Node, archives) })
	}
	if err := tasks.Wait(); err != nil {
		return err
	}
	for _, member := range u.settings.Members {
		if err := u.mark(ctx, member); err != nil {
			return err
		}
	}
	return nil
}

func (u *upRun) other(ctx context.Context, node config.Node, archives []string) error {
	if err := u.start(ctx, node, component.Containerd, 30*time.Second); err != nil {
		return err
	}
	if err := u.load(ctx, u.settings, node, archives); err != nil {
		return err
	}
	return u.node(ctx, node)
}

// mark gives a node its labels and taints.
func (u *upRun) mark(ctx context.Context, member component.Member) error {
	if len(member.Labels) == 0 {
		return nil
	}
	args := []string{"label", "node", member.Name, "--overwrite"}
	for _, key := range slices.Sorted(maps.Keys(member.Labels)) {
		args = append(args, key+"="+member.Labels[key])
	}
	if _, err := u.kubectl(ctx, "", args...); err != nil {
		return err
	}
	if len(member.Taints) == 0 {
		return nil
	}
	_, err := u.kubectl(ctx, "", append([]string{"taint", "node", member.Name, "--overwrite"}, member.Taints...)...)
	return err
}

// AddNode adds a node, starts it, and returns its name.
func (c *Cluster) AddNode(ctx context.Context) (string, error) {
	list, err := c.running()
	if err != nil {
		return "", err
	}
	if len(list.States) == config.MaxNodes {
		return "", fmt.Errorf("invalid number of nodes %d: give one between 1 and %d", config.MaxNodes+1, config.MaxNodes)
	}
	node := c.Node(list.Add())
	return node.Name, c.up(ctx, list)
}

// StopNode ends a node as if its power failed: processes, mounts and namespaces go, its disk stays.
func (c *Cluster) StopNode(name string) error {
	return c.change(name, config.Stopped, c.stop)
}

// IsolateNode cuts a node off from the others. Everything on it continues.
func (c *Cluster) IsolateNode(name string) error {
	return c.change(name, config.Isolated, func(node config.Node) error {
		list, err := c.running()
		if err != nil {
			return err
		}
		return c.network().Plug(portOf(node), c.Layout(node, list.Indices()...), false)
	})
}

// StartNode starts a node that was stopped, and reconnects one that was cut off.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	list, node, err := c.find(name)
	if err != nil {
		return err
	}
	list.States[node.Index] = config.Running
	return c.up(ctx, list)
}

// DeleteNode stops a node and removes it with its disk and its object in the API.
func (c *Cluster) DeleteNode(ctx context.Context, name string) error {
	list, node, err := c.find(name)
	if err != nil {
		return err
	}
	settings, err := c.settings(ctx, list)
	if err != nil {
		return err
	}
	// The node is stopped before its object is deleted, because its kubelet would register it again.
	if err := errors.Join(c.stop(node), c.network().Unplug(portOf(node))); err != nil {
		return err
	}
	delete(list.States, node.Index)
	if err := c.remember(list); err != nil {
		return err
	}
	if err := os.RemoveAll(node.State); err != nil {
		return err
	}
	up := &upRun{Cluster: c, settings: settings}
	_, err = up.kubectl(ctx, "", "delete", "node", name, "--ignore-not-found", "--wait=false")
	return err
}

func (c *Cluster) stop(node config.Node) error {
	if err := c.endNode(node); err != nil {
		return err
	}
	c.say("node %s is stopped", node.Name)
	return nil
}

// change does something to a node that runs, and remembers its new state.
func (c *Cluster) change(name, state string, do func(config.Node) error) error {
	list, node, err := c.find(name)
	if err != nil {
		return err
	}
	if list.States[node.Index] == config.Stopped {
		return fmt.Errorf("invalid node %q: it is stopped; start it with `cluster node start %s`", name, name)
	}
	list.States[node.Index] = state
	// Remembered first: a call that is killed half-way is repeated, and `cluster up` does not start the node again.
	if err := c.remember(list); err != nil {
		return err
	}
	return do(node)
}

// find returns a node that can be changed alone, with the list it is in.
func (c *Cluster) find(name string) (config.Nodes, config.Node, error) {
	list, err := c.running()
	if err != nil {
		return list, config.Node{}, err
	}
	index, err := list.Find(c.Config, name)
	if err != nil {
		return list, config.Node{}, err
	}
	if index == 0 {
		return list, config.Node{}, fmt.Errorf("invalid node %q: it holds the control plane; `cluster down` removes the whole cluster", name)
	}
	return list, c.Node(index), nil
}

// running is the list of nodes of a cluster that exists.
func (c *Cluster) running() (config.Nodes, error) {
	if err := errors.Join(c.CheckOwner(), c.CheckNamespace(), c.CheckGroup()); err != nil {
		return config.Nodes{}, err
	}
	if _, err := os.Stat(c.Marker()); err != nil {
		return config.Nodes{}, fmt.Errorf("cluster %s is not up: run `cluster up` first", c.Name)
	}
	return config.ReadNodes(c.Config)
}
