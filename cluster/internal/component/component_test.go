package component

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
	"assay.dev/assay/cluster/internal/turn"
)

func settings(t *testing.T) Settings {
	t.Helper()
	state := filepath.Join(t.TempDir(), "a [0-9] folder")
	s := Settings{
		Config: config.Config{Name: "assay-cluster", State: state, Cache: "/cache/assay", Port: 16443},
		Self:   state + "/bin/cluster", OS: host.Packages{Root: "/cache/assay/os/debian12"}, PauseImage: "registry.k8s.io/pause:3.10", Binary: map[string]string{},
		Hierarchies: []host.Hierarchy{{Root: "/sys/fs/cgroup", V2: true}},
	}
	for index, share := range config.Divide(config.Machine{CPUs: []int{0, 1, 2}, Memory: 1 << 30}, 3, s.Name) {
		s.Members = append(s.Members, Member{Node: s.Node(index), Share: share})
	}
	for _, name := range Binaries {
		s.Binary[name] = "/cache/assay/bin/" + name
	}
	return s
}

func all(t *testing.T, s Settings) map[string]Component {
	t.Helper()
	certs, err := Issue(s, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	components := map[string]Component{}
	for _, part := range All(s, certs) {
		components[part.Name()] = part
	}
	return components
}

func TestComponents_RunInTheCgroupOfTearDown(t *testing.T) {
	s := settings(t)
	parts := all(t, s)
	for _, name := range []string{Etcd, APIServer, Forwarder, ControllerManager, Scheduler, Containerd, Proxy, Policies, Kubelet} {
		part, ok := parts[name]
		if !ok || part.Path == "" || part.Cgroup != "assay-cluster/system/"+name {
			t.Errorf("%s: path %q, cgroup %q", name, part.Path, part.Cgroup)
		}
		if inside := part.NetNS == "assay-cluster"; inside == (name == Forwarder) {
			t.Errorf("%s: network namespace %q; only the forwarder is on the machine's own network", name, part.NetNS)
		}
		if private := part.MountNS != ""; private != (name == Containerd || name == Kubelet) {
			t.Errorf("%s: mount namespace %q; it is for those that mount things", name, part.MountNS)
		}
	}
	for _, name := range []string{Containerd, Proxy, Policies, Kubelet} {
		part := parts[name+"@assay-node-2"]
		if part.Path == "" || part.Cgroup != "assay-cluster/nodes/assay-node-2/system/"+name || part.NetNS != "assay-cluster.2" {
			t.Errorf("%s on the third node: path %q, cgroup %q, network namespace %q", name, part.Path, part.Cgroup, part.NetNS)
		}
	}
	if want := 9 + 2*4; len(parts) != want || len(Parts([]config.Node{s.Node(0), s.Node(1), s.Node(2)})) != want {
		t.Errorf("%d components, want %d", len(parts), want)
	}
}

// A stopped or deleted node must not make the others start again.
func TestComponents_DependOnTheirOwnNodeOnly(t *testing.T) {
	s := settings(t)
	before := all(t, s)
	s.Members = s.Members[:2]
	for name, part := range all(t, s) {
		if part.Hash() != before[name].Hash() {
			t.Errorf("%s changes without the third node", name)
		}
	}
}

func TestKubelet_SeesItsShare(t *testing.T) {
	s := settings(t)
	parts := all(t, s)
	for name, want := range map[string]string{Kubelet: "0\n", Kubelet + "@assay-node-1": "0,1\n", Kubelet + "@assay-node-2": "0,2\n"} {
		part := parts[name]
		if !slices.Contains(part.Inputs, want) {
			t.Errorf("%s does not start again when its CPUs change: %q", name, part.Inputs)
		}
		if text := part.Files[1].Text; !strings.Contains(text, `kubeReserved: {cpu: 200m, memory: "715827883"}`) {
			t.Errorf("%s does not keep the others' memory back:\n%s", name, text)
		}
		if part.Node.MountNamespace().Files[config.OnlineCPUs] != part.Node.VisibleCPUs() {
			t.Errorf("%s sees the machine's CPUs", name)
		}
	}
	s.Members = s.Members[:1]
	s.Members[0].Share = config.Divide(config.Machine{CPUs: []int{0, 1}, Memory: 1 << 30}, 1, s.Name)[0]
	if text := all(t, s)[Kubelet].Files[1].Text; !strings.Contains(text, "kubeReserved: {cpu: 200m}\n") {
		t.Errorf("a single node keeps more back than before:\n%s", text)
	}
}

func TestComponents_TemplatesAreComplete(t *testing.T) {
	s := settings(t)
	for name, part := range all(t, s) {
		for _, file := range part.Files {
			if strings.Contains(file.Text, "{{") {
				t.Errorf("%s: %s still has a gap:\n%s", name, file.Path, file.Text)
			}
			if !strings.HasPrefix(file.Path, s.State+"/") {
				t.Errorf("%s: %s is outside of the state folder", name, file.Path)
			}
		}
		for _, arg := range part.Args {
			if strings.HasSuffix(arg, "=") {
				t.Errorf("%s: empty argument %s", name, arg)
			}
		}
	}
	if text := CoreDNSManifest("registry.k8s.io/coredns/coredns:v1"); strings.Contains(text, "{{") ||
		!strings.Contains(text, config.DNSServiceIP.String()) {
		t.Error("cluster DNS:", text)
	}
	if text := PoliciesManifest(); strings.Contains(text, "{{") || !strings.Contains(text, policiesUser) {
		t.Error("rights of who enforces network policies:", text)
	}
	if !json.Valid([]byte(s.CNIConf(s.Node(0)).Text)) {
		t.Error("pod network:", s.CNIConf(s.Node(0)).Text)
	}
}

func TestComponents_RestartAfterChangedFiles(t *testing.T) {
	s := settings(t)
	before := all(t, s)
	if again := all(t, s); again[APIServer].Hash() != before[APIServer].Hash() {
		t.Error("nothing changed, yet the API server would be restarted")
	}
	s.RestrictOOM = true
	if after := all(t, s); after[Containerd].Hash() == before[Containerd].Hash() || after[Kubelet].Hash() != before[Kubelet].Hash() {
		t.Error("containerd's configuration changed: it, and only it, must be restarted")
	}
	if err := os.RemoveAll(s.StatePath("pki")); err != nil {
		t.Fatal(err)
	}
	after := all(t, s)
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler, Proxy, Kubelet} {
		if after[name].Hash() == before[name].Hash() {
			t.Errorf("%s would go on with old certificates", name)
		}
	}
}

func TestKubelet_StaticCPUsAndNoImageCollection(t *testing.T) {
	s := settings(t)
	part := all(t, s)[Kubelet]
	text := part.Files[slices.IndexFunc(part.Files, func(f File) bool { return strings.HasSuffix(f.Path, "kubelet.yaml") })].Text
	for _, want := range []string{"cpuManagerPolicy: static", "kubeReserved: {cpu: 200m", "cgroupDriver: cgroupfs",
		"imageGCHighThresholdPercent: 100", `cgroupRoot: "/assay-cluster"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestKubelet_NoPodStartsBeforeItsPolicies(t *testing.T) {
	s := settings(t)
	var network struct {
		Plugins []struct{ Type, Socket string }
	}
	if err := json.Unmarshal([]byte(s.CNIConf(s.Node(0)).Text), &network); err != nil {
		t.Fatal(err)
	}
	// The last one sees the address that the first one gave, and a pod starts when it has answered.
	last := network.Plugins[len(network.Plugins)-1]
	if args := all(t, s)[Policies].Args; last.Type != Policies || !slices.Contains(args, "--socket="+last.Socket) {
		t.Errorf("the last plugin is %+v, and who enforces is started with %q", last, args)
	}
	for _, plugin := range network.Plugins {
		if s.CNIPlugins()[plugin.Type] == "" {
			t.Errorf("the plugin %s is nowhere", plugin.Type)
		}
	}
}

func TestPodNetwork_NodesOfOneMachineTakeTurns(t *testing.T) {
	s := settings(t)
	for reason, tc := range map[string]struct {
		cpus, node int
		want       bool
	}{
		"as many CPUs as nodes":         {3, 1, false},
		"fewer CPUs than nodes":         {2, 1, true},
		"the platform measures nothing": {2, 0, false},
	} {
		machine := config.Machine{CPUs: []int{0, 1, 2}[:tc.cpus], Memory: 1 << 30}
		for index, share := range config.Divide(machine, 3, s.Name) {
			s.Members[index].Share = share
		}
		var network struct {
			Plugins []struct {
				Type, Folder, Node string
				Pods               []string
			}
		}
		text := s.CNIConf(s.Node(tc.node)).Text
		if err := json.Unmarshal([]byte(text), &network); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		taken := false
		for _, plugin := range network.Plugins {
			taken = taken || plugin.Type == turn.Plugin && plugin.Folder == s.Turns() && plugin.Node == "assay-node-1" &&
				slices.Equal(plugin.Pods, []string{"/sys/fs/cgroup/assay-cluster/nodes/assay-node-1/kubepods"}) && s.CNIPlugins()[turn.Plugin] == s.Self
		}
		if taken != tc.want {
			t.Errorf("%s: turns are taken: %v\n%s", reason, taken, text)
		}
	}
}
