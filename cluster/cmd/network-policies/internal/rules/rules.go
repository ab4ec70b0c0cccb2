// Package rules turns NetworkPolicies into nftables rules. It is a pure function of API objects.
//
// The semantics are those of https://kubernetes.io/docs/concepts/services-networking/network-policies/.
package rules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Table is the table that the rules are in, and nothing else is.
const Table = "assay-policies"

// Pod is a pod that is not in the host network.
type Pod struct {
	Namespace string
	Labels    labels.Set
	Ports     []corev1.ContainerPort
	Address   netip.Addr
}

// World holds the objects that the rules depend on.
type World struct {
	Pods []Pod
	// Namespaces maps names to labels.
	Namespaces map[string]labels.Set
	Policies   []*networkingv1.NetworkPolicy
}

// way is one of the two directions a policy speaks of.
type way struct {
	kind networkingv1.PolicyType
	// own and other are how a packet's header names the pod and its peer.
	own, other string
}

var ways = []way{
	{networkingv1.PolicyTypeEgress, "saddr", "daddr"},
	{networkingv1.PolicyTypeIngress, "daddr", "saddr"},
}

// rule is a rule of either direction.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

// Render returns the whole table as one transaction: the kernel has the old rules or the new ones, never a part.
//
// A pod without a policy has no rules. A selected pod has a chain for each direction, which returns on allowed packets and drops the
// others. Packets of Services pass the chains after translation, so rules match pods and target ports. As the API defines it, packets from
// the node are always allowed; packets to the node are filtered, because the API server runs there.
func Render(w World) (string, error) {
	pods := slices.SortedFunc(slices.Values(w.Pods), func(a, b Pod) int { return a.Address.Compare(b.Address) })
	policies := slices.SortedFunc(slices.Values(w.Policies), func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	w.Pods, w.Policies = pods, policies

	var chains, jumps strings.Builder
	for _, direction := range ways {
		var isolated []string
		for _, pod := range pods {
			lines, selected, err := w.allowed(direction, pod)
			if err != nil {
				return "", err
			}
			if !selected {
				continue
			}
			chain := fmt.Sprintf("%s_%s", strings.ToLower(string(direction.kind)), pod.Address)
			fmt.Fprintf(&chains, "\tchain %s {\n", chain)
			for _, line := range lines {
				fmt.Fprintf(&chains, "\t\t%s return\n", line)
			}
			chains.WriteString("\t\tcounter drop\n\t}\n")
			isolated = append(isolated, fmt.Sprintf("%s : jump %s", pod.Address, chain))
		}
		if len(isolated) > 0 {
			fmt.Fprintf(&jumps, "\t\tip %s vmap { %s }\n", direction.own, strings.Join(isolated, ", "))
		}
	}
	return fmt.Sprintf(`add table inet %[1]s
delete table inet %[1]s
table inet %[1]s {
%[2]s	chain policies {
		ct state established,related accept
%[3]s	}
	chain forward {
		type filter hook forward priority filter - 1; policy accept;
		jump policies
	}
	chain input {
		type filter hook input priority filter - 1; policy accept;
		jump policies
	}
}
`, Table, chains.String(), jumps.String()), nil
}

// allowed lists the connections that the policies of a pod allow in one direction. selected is false if no policy selects the pod.
func (w World) allowed(direction way, pod Pod) (lines []string, selected bool, err error) {
	// A pod always reaches itself, also through a Service.
	lines = []string{fmt.Sprintf("ip %s %s", direction.other, pod.Address)}
	for _, policy := range w.Policies {
		if policy.Namespace != pod.Namespace || !slices.Contains(policy.Spec.PolicyTypes, direction.kind) {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			return nil, false, fmt.Errorf("NetworkPolicy %s/%s: podSelector: %w", policy.Namespace, policy.Name, err)
		}
		if !selector.Matches(pod.Labels) {
			continue
		}
		selected = true
		for _, rule := range rulesOf(policy, direction.kind) {
			more, err := w.lines(direction, pod, policy.Namespace, rule)
			if err != nil {
				return nil, false, fmt.Errorf("NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
			}
			lines = append(lines, more...)
		}
	}
	return distinct(lines), selected, nil
}

func rulesOf(policy *networkingv1.NetworkPolicy, kind networkingv1.PolicyType) []rule {
	var out []rule
	if kind == networkingv1.PolicyTypeEgress {
		for _, r := range policy.Spec.Egress {
			out = append(out, rule{r.To, r.Ports})
		}
		return out
	}
	for _, r := range policy.Spec.Ingress {
		out = append(out, rule{r.From, r.Ports})
	}
	return out
}

// end is a set of addresses on the other side: how to match it, and the pods in it, whose ports have names.
type end struct {
	match string
	pods  []Pod
}

// lines returns the matches of one policy rule: each of its peers with each of its ports.
func (w World) lines(direction way, pod Pod, namespace string, r rule) ([]string, error) {
	ends := []end{{pods: w.Pods}} // no peer named: all peers
	if len(r.peers) > 0 {
		ends = nil
	}
	for _, peer := range r.peers {
		other, ok, err := w.end(direction, namespace, peer)
		if err != nil {
			return nil, err
		}
		if ok {
			ends = append(ends, other)
		}
	}
	var lines []string
	for _, end := range ends {
		if len(r.ports) == 0 {
			lines = append(lines, cmp.Or(end.match, "meta nfproto ipv4"))
		}
		for _, port := range r.ports {
			if port.Port == nil || port.Port.Type == intstr.Int {
				lines = append(lines, join(end.match, numbered(port)))
				continue
			}
			// A name is looked up where the connection goes to.
			if direction.kind == networkingv1.PolicyTypeIngress {
				lines = append(lines, named(end.match, port, pod)...)
				continue
			}
			for _, target := range end.pods {
				lines = append(lines, named("ip daddr "+target.Address.String(), port, target)...)
			}
		}
	}
	return lines, nil
}

// end finds a peer's addresses. ok is false if it has none at present.
func (w World) end(direction way, namespace string, peer networkingv1.NetworkPolicyPeer) (other end, ok bool, err error) {
	header := "ip " + direction.other + " "
	if peer.IPBlock != nil {
		block, err := netip.ParsePrefix(peer.IPBlock.CIDR)
		if err != nil {
			return end{}, false, fmt.Errorf("ipBlock: %w", err)
		}
		if !block.Addr().Is4() {
			return end{}, false, nil // nothing in this cluster has such an address
		}
		match := header + block.Masked().String()
		if len(peer.IPBlock.Except) > 0 {
			match += " " + header + "!= { " + strings.Join(peer.IPBlock.Except, ", ") + " }"
		}
		return end{match: match}, true, nil
	}
	inNamespace := func(name string) bool { return name == namespace }
	if peer.NamespaceSelector != nil {
		namespaces, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
		if err != nil {
			return end{}, false, fmt.Errorf("namespaceSelector: %w", err)
		}
		inNamespace = func(name string) bool { return namespaces.Matches(w.Namespaces[name]) }
	}
	pods := labels.Everything()
	if peer.PodSelector != nil {
		if pods, err = metav1.LabelSelectorAsSelector(peer.PodSelector); err != nil {
			return end{}, false, fmt.Errorf("podSelector: %w", err)
		}
	}
	var addresses []string
	for _, pod := range w.Pods {
		if inNamespace(pod.Namespace) && pods.Matches(pod.Labels) {
			other.pods = append(other.pods, pod)
			addresses = append(addresses, pod.Address.String())
		}
	}
	other.match = header + "{ " + strings.Join(addresses, ", ") + " }"
	return other, len(addresses) > 0, nil
}

// protocol returns the protocol of a port, TCP by default.
func protocol(given *corev1.Protocol) corev1.Protocol { return ptr.Deref(given, corev1.ProtocolTCP) }

func numbered(port networkingv1.NetworkPolicyPort) string {
	name := strings.ToLower(string(protocol(port.Protocol)))
	switch {
	case port.Port == nil:
		return "meta l4proto " + name
	case port.EndPort != nil:
		return fmt.Sprintf("%s dport %d-%d", name, port.Port.IntVal, *port.EndPort)
	}
	return fmt.Sprintf("%s dport %d", name, port.Port.IntVal)
}

// named lists the ports that a pod gives this name.
func named(match string, port networkingv1.NetworkPolicyPort, pod Pod) []string {
	var lines []string
	for _, candidate := range pod.Ports {
		kind := cmp.Or(candidate.Protocol, corev1.ProtocolTCP)
		if candidate.Name == port.Port.StrVal && kind == protocol(port.Protocol) {
			lines = append(lines, join(match, fmt.Sprintf("%s dport %d", strings.ToLower(string(kind)), candidate.ContainerPort)))
		}
	}
	return lines
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// distinct drops repetitions and keeps the order.
func distinct(lines []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(lines, func(line string) bool {
		again := seen[line]
		seen[line] = true
		return again
	})
}
