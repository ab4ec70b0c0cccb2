package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var two = Config{Name: "two", State: "/var/lib/two", Cache: "/cache", Port: 1}

func TestNode_FollowsFromItsIndex(t *testing.T) {
	for index, want := range map[int]Node{
		0: {Index: 0, Name: "assay-node", NetNS: "two", Cgroup: "two", State: "/var/lib/two", PodCIDR: netip.MustParsePrefix("10.201.0.0/24"),
			IP: NodeIP},
		1: {Index: 1, Name: "assay-node-1", Suffix: "@assay-node-1", NetNS: "two.1", Cgroup: "two/nodes/assay-node-1",
			State: "/var/lib/two/nodes/assay-node-1", PodCIDR: netip.MustParsePrefix("10.201.1.0/24"), IP: netip.MustParseAddr("10.201.1.1")},
		15: {Index: 15, Name: "assay-node-15", Suffix: "@assay-node-15", NetNS: "two.15", Cgroup: "two/nodes/assay-node-15",
			State: "/var/lib/two/nodes/assay-node-15", PodCIDR: netip.MustParsePrefix("10.201.15.0/24"), IP: netip.MustParseAddr("10.201.15.1")},
	} {
		if got := two.Node(index); got != want {
			t.Errorf("node %d: got %+v, want %+v", index, got, want)
		}
	}
}

// No node owns anything that a node of another cluster owns, for any names of the clusters.
func TestNode_SharesNothing(t *testing.T) {
	seen := map[string]string{}
	own := func(owner, kind, name string) {
		if before, taken := seen[kind+" "+name]; taken {
			t.Errorf("%s %s belongs to %s and %s", kind, name, before, owner)
		}
		seen[kind+" "+name] = owner
	}
	for _, name := range []string{"assay-cluster", "assay-cluster-1", "assay-cluster-node-1", "assay-cluster-switch"} {
		c := Config{Name: name, State: "/var/lib/" + name}
		own(name, "network namespace", c.SwitchNetNS())
		for index := range MaxNodes {
			node := c.Node(index)
			owner := fmt.Sprintf("%s, node %d", name, index)
			own(owner, "network namespace", node.NetNS)
			own(owner, "cgroup", node.Cgroup)
			own(owner, "folder", node.State)
			own(owner, "socket", node.ContainerdSocket())
			own(owner, "mount namespace", node.MountNamespace().File)
			own(name+fmt.Sprint(index), "name in "+name, node.Name)
			own(name+fmt.Sprint(index), "address in "+name, node.IP.String())
			for other := range index {
				if c.Node(other).PodCIDR.Overlaps(node.PodCIDR) || ServiceCIDR.Overlaps(node.PodCIDR) {
					t.Errorf("pods of node %d have addresses %s, which are others' too", index, node.PodCIDR)
				}
			}
			if !node.PodCIDR.Contains(node.IP) {
				t.Errorf("node %d: its pods' gateway %s is not in %s", index, node.IP, node.PodCIDR)
			}
			// Tear-down of the cluster reaches everything below its own folder and group.
			if !within(node.State, c.State) || !within(node.Cgroup, c.Name) {
				t.Errorf("node %d: folder %s or group %s is outside of the cluster's", index, node.State, node.Cgroup)
			}
		}
	}
}

func cpus(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestDivide_CPUs(t *testing.T) {
	for _, tc := range []struct {
		cpus, nodes int
		want        [][]int
		turns       bool
	}{
		{2, 1, [][]int{{0, 1}}, false},
		{2, 2, [][]int{{0}, {0, 1}}, false},
		{2, 3, [][]int{{0}, {0, 1}, {0, 1}}, true},
		{1, 3, [][]int{{0}, {0}, {0}}, true},
		{8, 3, [][]int{{0, 7}, {0, 1, 2, 3}, {0, 4, 5, 6}}, false},
		{4, 4, [][]int{{0}, {0, 1}, {0, 2}, {0, 3}}, false},
		{4, 5, [][]int{{0}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}}, true},
	} {
		shares := Divide(Machine{CPUs: cpus(tc.cpus), Memory: 1 << 30}, tc.nodes, "m")
		for i, share := range shares {
			if !slices.Equal(share.CPUs, tc.want[i]) || share.Turns != (tc.turns && i > 0) {
				t.Errorf("%d CPUs, %d nodes: node %d has %v, turns %v", tc.cpus, tc.nodes, i, share.CPUs, share.Turns)
			}
		}
	}
}

// On any machine, a CPU that a node gives to one pod alone is no other node's, unless the nodes take turns, and the nodes' memory is the
// machine's at most.
func TestDivide_GrantsNothingTwice(t *testing.T) {
	for count := 1; count <= 40; count++ {
		for nodes := 1; nodes <= MaxNodes; nodes++ {
			machine := Machine{CPUs: cpus(count), Memory: 24_000_000_001}
			owners, memory := map[int]int{}, uint64(0)
			for i, share := range Divide(machine, nodes, "m") {
				memory += machine.Memory - share.OthersMemory
				if share.CPUs[0] != 0 {
					t.Errorf("%d CPUs, %d nodes: node %d does not see the CPU that kubelets keep back", count, nodes, i)
				}
				for _, cpu := range share.CPUs[1:] {
					if owners[cpu]++; owners[cpu] > 1 && !share.Turns {
						t.Errorf("%d CPUs, %d nodes: CPU %d is granted twice", count, nodes, cpu)
					}
				}
				if share.Measures != (nodes == 1 || i > 0) || (nodes == 1) != (len(share.Labels) == 0) {
					t.Errorf("%d nodes: node %d measures: %v, labels %v", nodes, i, share.Measures, share.Labels)
				}
			}
			if memory > machine.Memory {
				t.Errorf("%d nodes reserve %d bytes of %d", nodes, memory, machine.Memory)
			}
			if count > 1 && len(owners) != count-1 {
				t.Errorf("%d CPUs, %d nodes: %d are used", count, nodes, len(owners))
			}
		}
	}
}

func TestNodes_AreAddedAndFound(t *testing.T) {
	nodes := OneNode()
	if err := nodes.Grow(3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Nodes{Shares: 3, States: map[int]string{0: Running, 1: Running, 2: Running}}, nodes); diff != "" {
		t.Errorf("three nodes (-want +got):\n%s", diff)
	}
	for _, count := range []int{-1, 0, 2, MaxNodes + 1} {
		if err := nodes.Grow(count); err == nil || !strings.Contains(err.Error(), fmt.Sprint(count)) {
			t.Errorf("%d nodes: got %v", count, err)
		}
	}
	if index, err := nodes.Find(two, "assay-node-2"); err != nil || index != 2 {
		t.Errorf("found %d, %v", index, err)
	}
	if _, err := nodes.Find(two, "assay-node-7"); err == nil || !strings.Contains(err.Error(), "assay-node, assay-node-1, assay-node-2") {
		t.Errorf("an unknown node: %v", err)
	}
	// A deleted node's share stays free for the next.
	delete(nodes.States, 1)
	if index := nodes.Add(); index != 1 || nodes.Shares != 3 {
		t.Errorf("added node %d, %d shares", index, nodes.Shares)
	}
}

func TestNodes_AreReadAsWritten(t *testing.T) {
	c := Config{Name: "c", State: t.TempDir()}
	if nodes, err := ReadNodes(c); err != nil || !cmp.Equal(nodes, OneNode()) {
		t.Errorf("a cluster without a list: %+v, %v", nodes, err)
	}
	want := Nodes{Shares: 4, States: map[int]string{0: Running, 3: Stopped}}
	text, err := want.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for reason, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"as written":           {text, true},
		"cut off":              {text[:len(text)/2], false},
		"without a first node": {`{"shares":2,"states":{"1":""}}`, false},
		"too few shares":       {`{"shares":1,"states":{"0":"","1":""}}`, false},
		"an index beyond":      {`{"shares":2,"states":{"0":"","5":""}}`, false},
		"an unknown state":     {`{"shares":2,"states":{"0":"","1":"asleep"}}`, false},
		"a first node stopped": {`{"shares":1,"states":{"0":"stopped"}}`, false},
	} {
		if err := os.WriteFile(filepath.Join(c.State, "nodes.json"), []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadNodes(c)
		if (err == nil) != tc.ok || tc.ok && !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v, %v", reason, got, err)
		}
	}
}
