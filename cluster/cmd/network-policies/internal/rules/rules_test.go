package rules

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// town is a run's pod, a neighbour, a store in another namespace and names.
func town() World {
	pod := func(namespace, address, app string, ports ...corev1.ContainerPort) Pod {
		return Pod{Namespace: namespace, Address: netip.MustParseAddr(address), Labels: labels.Set{"app": app}, Ports: ports}
	}
	return World{
		Pods: []Pod{
			pod("runs", "10.0.0.9", "neighbour"),
			pod("runs", "10.0.0.5", "run", corev1.ContainerPort{Name: "metrics", ContainerPort: 9100},
				corev1.ContainerPort{Name: "metrics", ContainerPort: 53, Protocol: "UDP"}),
			pod("system", "10.0.0.7", "store", corev1.ContainerPort{Name: "s3", ContainerPort: 9000}),
			pod("system", "10.0.0.8", "operator", corev1.ContainerPort{Name: "metrics", ContainerPort: 8443}),
		},
		Namespaces: map[string]labels.Set{"runs": {"name": "runs"}, "system": {"name": "system"}},
	}
}

func policy(t *testing.T, text string) *networkingv1.NetworkPolicy {
	t.Helper()
	out := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "runs", Name: "x"}}
	if err := yaml.UnmarshalStrict([]byte(text), &out.Spec); err != nil {
		t.Fatal(err)
	}
	return out
}

// chain returns the lines of one chain, or nil if the chain does not exist.
func chain(text, name string) []string {
	_, rest, ok := strings.Cut(text, "\tchain "+name+" {\n")
	if !ok {
		return nil
	}
	body, _, _ := strings.Cut(rest, "\t}\n")
	var lines []string
	for line := range strings.Lines(body) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func TestRules_OfPolicies(t *testing.T) {
	const run = "podSelector: {matchLabels: {app: run}}\n"
	for sentence, tc := range map[string]struct {
		policies []string
		chain    string
		want     []string
	}{
		"who is not selected has no rules": {
			[]string{"podSelector: {matchLabels: {app: absent}}\npolicyTypes: [Egress]"}, "egress_10.0.0.5",
			nil,
		},
		"a direction that no policy speaks of is open": {[]string{run + "policyTypes: [Egress]"}, "ingress_10.0.0.5", nil},
		"who is selected and allowed nothing has itself": {
			[]string{run + "policyTypes: [Egress]"}, "egress_10.0.0.5",
			[]string{"ip daddr 10.0.0.5 return", "counter drop"},
		},
		"another namespace's pods of the label are theirs": {
			[]string{"podSelector: {}\npolicyTypes: [Egress]"}, "egress_10.0.0.7",
			nil,
		},
		"an empty rule allows everything": {
			[]string{run + "policyTypes: [Ingress]\ningress: [{}]"}, "ingress_10.0.0.5",
			[]string{"ip saddr 10.0.0.5 return", "meta nfproto ipv4 return", "counter drop"},
		},
		"pods of the policy's own namespace, by label": {
			[]string{run + "policyTypes: [Ingress]\ningress: [{from: [{podSelector: {}}]}]"}, "ingress_10.0.0.5",
			[]string{"ip saddr 10.0.0.5 return", "ip saddr { 10.0.0.5, 10.0.0.9 } return", "counter drop"},
		},
		"pods of a namespace, both selectors in one peer": {
			[]string{run + "policyTypes: [Egress]\n" +
				"egress: [{to: [{namespaceSelector: {matchLabels: {name: system}}, podSelector: {matchLabels: {app: store}}}]," +
				" ports: [{port: 9000}]}]"},
			"egress_10.0.0.5",
			[]string{"ip daddr 10.0.0.5 return", "ip daddr { 10.0.0.7 } tcp dport 9000 return", "counter drop"},
		},
		"a peer without pods allows nothing, and not everything": {
			[]string{run + "policyTypes: [Egress]\negress: [{to: [{podSelector: {matchLabels: {app: gone}}}]}]"}, "egress_10.0.0.5",
			[]string{"ip daddr 10.0.0.5 return", "counter drop"},
		},
		"anywhere but to some addresses": {
			[]string{run + "policyTypes: [Egress]\n" +
				"egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.169.254/32, 168.63.129.16/32]}}], ports: [{port: 443}]}]"},
			"egress_10.0.0.5",
			[]string{"ip daddr 10.0.0.5 return",
				"ip daddr 0.0.0.0/0 ip daddr != { 169.254.169.254/32, 168.63.129.16/32 } tcp dport 443 return", "counter drop"},
		},
		"IPv6 blocks match nothing here": {
			[]string{run + "policyTypes: [Egress]\negress: [{to: [{ipBlock: {cidr: '::/0'}}]}]"}, "egress_10.0.0.5",
			[]string{"ip daddr 10.0.0.5 return", "counter drop"},
		},
		"ports: both protocols of one number, a range, a protocol alone": {
			[]string{run + "policyTypes: [Egress]\n" +
				"egress: [{ports: [{port: 53, protocol: UDP}, {port: 53}, {port: 8000, endPort: 8010}, {protocol: SCTP}]}]"},
			"egress_10.0.0.5",
			[]string{"ip daddr 10.0.0.5 return",
				"udp dport 53 return", "tcp dport 53 return", "tcp dport 8000-8010 return", "meta l4proto sctp return", "counter drop"},
		},
		"a named port coming in is the pod's own, of the protocol": {
			[]string{run + "policyTypes: [Ingress]\ningress: [{ports: [{port: metrics}]}]"}, "ingress_10.0.0.5",
			[]string{"ip saddr 10.0.0.5 return", "tcp dport 9100 return", "counter drop"},
		},
		"a named port going out is each peer's own": {
			[]string{run + "policyTypes: [Egress]\negress: [{to: [{namespaceSelector: {}}], ports: [{port: metrics}]}]"}, "egress_10.0.0.5",
			[]string{"ip daddr 10.0.0.5 return",
				"ip daddr 10.0.0.5 tcp dport 9100 return", "ip daddr 10.0.0.8 tcp dport 8443 return", "counter drop"},
		},
		"policies add up": {
			[]string{run + "policyTypes: [Egress]\n" +
				"egress: [{ports: [{port: 53}]}]", "podSelector: {}\npolicyTypes: [Egress]\negress: [{ports: [{port: 80}]}]"},
			"egress_10.0.0.5",
			[]string{"ip daddr 10.0.0.5 return", "tcp dport 53 return", "tcp dport 80 return", "counter drop"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			world := town()
			for _, text := range tc.policies {
				world.Policies = append(world.Policies, policy(t, text))
			}
			text, err := Render(world)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, chain(text, tc.chain)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%s", tc.chain, diff, text)
			}
			// A chain without a jump to it filters nothing.
			jumps := strings.Join(chain(text, "policies"), "\n")
			if jump := ": jump " + tc.chain; strings.Contains(jumps, jump) != (tc.want != nil) {
				t.Errorf("that %q is a rule is %v, want %v:\n%s", jump, tc.want == nil, tc.want != nil, text)
			}
		})
	}
}

func TestRules_OrderOfObjectsHasNoInfluence(t *testing.T) {
	world := town()
	for _, text := range []string{
		"podSelector: {}\npolicyTypes: [Egress, Ingress]",
		"podSelector: {}\npolicyTypes: [Egress]\negress: [{to: [{podSelector: {}}]}]",
	} {
		world.Policies = append(world.Policies, policy(t, text))
		world.Policies[len(world.Policies)-1].Name += text[len(text)-3:]
	}
	one, err := Render(world)
	if err != nil {
		t.Fatal(err)
	}
	reversed := World{Namespaces: world.Namespaces}
	for i := range world.Pods {
		reversed.Pods = append(reversed.Pods, world.Pods[len(world.Pods)-1-i])
	}
	for i := range world.Policies {
		reversed.Policies = append(reversed.Policies, world.Policies[len(world.Policies)-1-i])
	}
	other, err := Render(reversed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("the same world in another order has other rules:\n%s", diff)
	}
}

func TestRules_InvalidSelectorIsAnError(t *testing.T) {
	world := town()
	unreadable := policy(t, "podSelector: {matchExpressions: [{key: app, operator: Like}]}\npolicyTypes: [Egress]")
	world.Policies = []*networkingv1.NetworkPolicy{unreadable}
	if text, err := Render(world); err == nil || !strings.Contains(err.Error(), "NetworkPolicy runs/x: podSelector") {
		t.Errorf("want an error that names the policy, got %v and\n%s", err, text)
	}
}

// Without nft and root this cannot be asked; cluster/test asks it of the real one.
func TestRules_KernelAcceptsThem(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("no nft on PATH")
	}
	world := town()
	world.Policies = []*networkingv1.NetworkPolicy{policy(t, `podSelector: {}
policyTypes: [Egress, Ingress]
ingress: [{}, {from: [{podSelector: {}}], ports: [{port: metrics}]}]
egress:
- to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.169.254/32, 10.0.0.0/8]}}]
  ports: [{port: 1, endPort: 9}, {protocol: SCTP}, {protocol: UDP, port: 53}]
- {to: [{namespaceSelector: {}}], ports: [{port: metrics}]}`)}
	world.Policies[0].Spec.Egress[0].Ports[0].Protocol = ptr.To(corev1.ProtocolTCP)
	text, err := Render(world)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-n", nft, "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("nft: %v\n%s\n%s", err, out, text)
	}
}
