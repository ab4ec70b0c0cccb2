package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// States of a node. The zero value is a node that runs.
const (
	Running  = ""
	Stopped  = "stopped"
	Isolated = "isolated"
)

// Nodes is the list of a cluster's nodes, as it is remembered between calls.
type Nodes struct {
	// Shares is into how many parts the machine is divided: the largest number of nodes so far. A deleted node keeps its part free, because
	// dividing anew restarts every kubelet.
	Shares int `json:"shares"`
	// States holds the state of each node by its index.
	States map[int]string `json:"states"`
}

// OneNode is a cluster's list unless more are asked for.
func OneNode() Nodes { return Nodes{Shares: 1, States: map[int]string{0: Running}} }

// Indices lists the nodes in ascending order.
func (n Nodes) Indices() []int {
	indices := make([]int, 0, len(n.States))
	for index := range n.States {
		indices = append(indices, index)
	}
	slices.Sort(indices)
	return indices
}

// Grow adds nodes until there are that many. Fewer than there are is an error, because a node is never deleted unasked.
func (n *Nodes) Grow(count int) error {
	if count < 1 || count > MaxNodes {
		return fmt.Errorf("invalid number of nodes %d: give one between 1 and %d", count, MaxNodes)
	}
	if count < len(n.States) {
		return fmt.Errorf("invalid number of nodes %d: the cluster has %d; delete one with `cluster node delete`", count, len(n.States))
	}
	for len(n.States) < count {
		n.Add()
	}
	return nil
}

// Add adds a node with the lowest free index, and returns it.
func (n *Nodes) Add() int {
	index := 0
	for {
		if _, taken := n.States[index]; !taken {
			break
		}
		index++
	}
	n.States[index] = Running
	n.Shares = max(n.Shares, index+1)
	return index
}

// Find returns the index of a node with this name.
func (n Nodes) Find(c Config, name string) (int, error) {
	var names []string
	for _, index := range n.Indices() {
		node := c.Node(index)
		if node.Name == name {
			return index, nil
		}
		names = append(names, node.Name)
	}
	return 0, fmt.Errorf("unknown node %q: the cluster has %s", name, strings.Join(names, ", "))
}

// ReadNodes reads the list of a cluster's nodes; one that was never written has one node.
func ReadNodes(c Config) (Nodes, error) {
	data, err := os.ReadFile(c.NodesFile())
	if errors.Is(err, fs.ErrNotExist) {
		return OneNode(), nil
	}
	nodes := Nodes{}
	if err == nil {
		err = json.Unmarshal(data, &nodes)
	}
	if err != nil {
		return nodes, fmt.Errorf("list of nodes %s: %w", c.NodesFile(), err)
	}
	if err := nodes.validate(); err != nil {
		return nodes, fmt.Errorf("list of nodes %s: %w: remove the cluster with `cluster down`", c.NodesFile(), err)
	}
	return nodes, nil
}

func (n Nodes) validate() error {
	if state, ok := n.States[0]; !ok || state != Running {
		return errors.New("invalid first node: it must be there, and run")
	}
	if n.Shares > MaxNodes {
		return fmt.Errorf("invalid number of shares %d: at most %d are allowed", n.Shares, MaxNodes)
	}
	for index, state := range n.States {
		if index < 0 || index >= n.Shares {
			return fmt.Errorf("invalid node %d: the machine is divided into %d shares", index, n.Shares)
		}
		if !slices.Contains([]string{Running, Stopped, Isolated}, state) {
			return fmt.Errorf("invalid state %q of node %d: allowed are %q, %q and the empty one", state, index, Stopped, Isolated)
		}
	}
	return nil
}

// JSON is the list as it is written to the file.
func (n Nodes) JSON() (string, error) {
	data, err := json.Marshal(n)
	return string(data) + "\n", err
}

// NodesFile is where the list of nodes lies.
func (c Config) NodesFile() string { return c.StatePath("nodes.json") }
