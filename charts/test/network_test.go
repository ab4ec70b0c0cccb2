package chart

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// somewhere is one end of a connection: a pod of a namespace, or, without labels, an address that no policy selects.
type somewhere struct {
	namespace string
	labels    map[string]string
	ports     map[string]int32
}

// network judges connections as the policies of a chart do, by the rules of the API's documentation.
type network []networkingv1.NetworkPolicy

func policies(t *testing.T, chart *rendered) network {
	t.Helper()
	var out network
	for _, object := range chart.of("NetworkPolicy") {
		out = append(out, into[networkingv1.NetworkPolicy](t, object))
	}
	return out
}

// allows reports whether both ends allow a connection to a port.
func (n network) allows(t *testing.T, from, to somewhere, port int32) bool {
	t.Helper()
	return n.end(t, from, networkingv1.PolicyTypeEgress, func(p networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
			return peers(t, r.To, p.Namespace, to) && ports(r.Ports, to, port)
		})
	}) && n.end(t, to, networkingv1.PolicyTypeIngress, func(p networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
			return peers(t, r.From, p.Namespace, from) && ports(r.Ports, to, port)
		})
	})
}

// end reports whether one end allows it: if any policy selects it, one of them has to.
func (n network) end(t *testing.T, at somewhere, direction networkingv1.PolicyType, allows func(networkingv1.NetworkPolicy) bool) bool {
	t.Helper()
	selected := false
	for _, policy := range n {
		if at.labels == nil || policy.Namespace != at.namespace || !slices.Contains(policy.Spec.PolicyTypes, direction) ||
			!matches(t, &policy.Spec.PodSelector, at.labels) {
			continue
		}
		selected = true
		if allows(policy) {
			return true
		}
	}
	return !selected
}

func peers(t *testing.T, list []networkingv1.NetworkPolicyPeer, namespace string, other somewhere) bool {
	t.Helper()
	if len(list) == 0 {
		return true
	}
	return slices.ContainsFunc(list, func(peer networkingv1.NetworkPolicyPeer) bool {
		switch {
		case peer.IPBlock != nil:
			return other.labels == nil && holds(t, peer.IPBlock.CIDR, other.namespace) &&
				!slices.ContainsFunc(peer.IPBlock.Except, func(except string) bool { return holds(t, except, other.namespace) })
		case other.labels == nil:
			return false
		case peer.NamespaceSelector == nil:
			return other.namespace == namespace && matches(t, peer.PodSelector, other.labels)
		default:
			return matches(t, peer.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": other.namespace}) &&
				(peer.PodSelector == nil || matches(t, peer.PodSelector, other.labels))
		}
	})
}

// holds reports whether a CIDR holds an address, which is written as the smallest of CIDRs.
func holds(t *testing.T, cidr, address string) bool {
	t.Helper()
	block, err := netip.ParsePrefix(cidr)
	if err != nil {
		t.Fatal(err)
	}
	return block.Contains(netip.MustParsePrefix(address).Addr())
}

func ports(list []networkingv1.NetworkPolicyPort, to somewhere, port int32) bool {
	if len(list) == 0 {
		return true
	}
	return slices.ContainsFunc(list, func(p networkingv1.NetworkPolicyPort) bool {
		if p.Port == nil {
			return true
		}
		if p.Port.Type == intstr.String {
			return to.ports[p.Port.StrVal] == port
		}
		return p.Port.IntVal == port
	})
}

func matches(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(labels.Set(set))
}

// places are the ends of connections in a release, by name.
func places(t *testing.T, chart *rendered) map[string]somewhere {
	t.Helper()
	out := map[string]somewhere{
		"names":         {namespace: "kube-system", labels: map[string]string{"k8s-app": "kube-dns"}},
		"API server":    {namespace: "10.0.0.1/32"},
		"far away":      {namespace: "203.0.113.7/32"},
		"a run":         {namespace: "default", labels: map[string]string{"app.kubernetes.io/managed-by": "assay-operator", "assay.dev/run": "x"}},
		"a neighbour":   {namespace: "default", labels: map[string]string{"app": "web"}},
		"another's run": {namespace: "elsewhere", labels: map[string]string{"app.kubernetes.io/managed-by": "assay-operator"}},
		"metadata":      {namespace: "169.254.169.254/32"},
		"metadata, v6":  {namespace: "fd00:ec2::254/128"},
		"an identity":   {namespace: "169.254.170.23/32"},
		"a cache":       {namespace: "169.254.20.10/32"},
		"far away, v6":  {namespace: "2001:db8::7/128"},
		"monitoring":    {namespace: "monitoring", labels: map[string]string{"app": "prometheus"}},
		"storage":       {namespace: "storage", labels: map[string]string{"app": "minio"}},
	}
	for id, pod := range chart.pods(t) {
		named := map[string]int32{}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				named[port.Name] = port.ContainerPort
			}
		}
		component := pod.Labels["app.kubernetes.io/component"]
		out[component] = somewhere{namespace: strings.Split(id, "/")[1], labels: pod.Labels, ports: named}
	}
	return out
}

func TestNetwork_PodsReachOnlyTheirDependencies(t *testing.T) {
	t.Parallel()
	type connection struct {
		from, to string
		port     int32
	}
	needed := map[connection]bool{
		{"operator", "names", 53}: true, {"operator", "API server", 6443}: true, {"operator", "API server", 443}: true, {"operator", "minio", 9000}: true,
		{"retire", "names", 53}: true, {"retire", "API server", 6443}: true, {"retire", "minio", 9000}: false, {"a neighbour", "retire", 8080}: false,
		{"create-bucket", "names", 53}: true, {"create-bucket", "minio", 9000}: true,
		{"argo-controller", "names", 53}: true, {"argo-controller", "API server", 6443}: true,
		{"argo-server", "API server", 6443}: true, {"argo-server", "minio", 9000}: true,
		{"a run", "minio", 9000}: true, {"a run", "API server", 6443}: true,
		{"prometheus", "operator", 8080}: true, {"prometheus", "argo-controller", 9090}: true, {"prometheus", "minio", 9000}: true, {"prometheus", "API server", 443}: true,
		{"a run", "names", 53}: true,

		// The workload's own business, if an administrator makes it so.
		{"a run", "far away", 80}: false, {"a run", "a neighbour", 8080}: false, {"a run", "metadata", 80}: false, {"a run", "metadata, v6", 80}: false,
		{"a run", "metadata", 443}: false, {"a run", "metadata", 53}: false,
		{"operator", "metadata", 443}: false, {"operator", "metadata, v6", 443}: false, {"argo-controller", "metadata", 443}: false,
		{"operator", "far away", 53}: false, {"a run", "far away", 53}: false, {"a run", "a neighbour", 53}: false,
		{"operator", "metadata", 53}: false, {"operator", "a cache", 53}: true, {"a run", "a cache", 53}: true, {"a run", "a cache", 443}: false,
		{"operator", "far away", 80}: false, {"argo-controller", "minio", 9000}: false, {"create-bucket", "API server", 6443}: false,
		{"minio", "far away", 443}: false, {"minio", "names", 53}: false, {"prometheus", "far away", 80}: false,
		{"a neighbour", "minio", 9000}: false, {"another's run", "minio", 9000}: false, {"a run", "minio", 9001}: false,
		{"a neighbour", "operator", 8080}: false, {"a run", "operator", 8081}: false, {"monitoring", "operator", 8080}: false,
		{"a neighbour", "argo-server", 2746}: false, {"a neighbour", "prometheus", 9090}: false, {"a neighbour", "a run", 8080}: false,
	}
	external := `{runNamespaces: [default], argo: {mode: external}, prometheus: {mode: external}, grafana: {mode: external}, objectStore: {mode: external, existingSecret: s3, external: {endpoint: "%s"}}}`
	tests := map[string]struct {
		values string
		want   map[connection]bool
	}{
		"by default": {``, needed},
		"with runs kept apart": {`{networkPolicies: {runs: {isolate: Both, egress: [{to: [{podSelector: {matchLabels: {app: web}}}]}]}}}`, map[connection]bool{
			{"a run", "far away", 80}: false, {"a run", "a neighbour", 8080}: true, {"a run", "names", 53}: true,
			{"a run", "minio", 9000}: true, {"a run", "API server", 6443}: true, {"a run", "monitoring", 80}: false,
		}},
		"with runs without ingress": {`{networkPolicies: {runs: {isolate: Ingress}}}`, map[connection]bool{
			{"a run", "far away", 80}: true, {"a run", "a neighbour", 8080}: true, {"a neighbour", "a run", 8080}: false,
		}},
		"with runs that reach public addresses": {`{networkPolicies: {runs: {egress: [{ports: [{port: 80}], to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.0.0/16, 168.63.129.16/32, 100.100.100.200/32]}}]}]}}}`, map[connection]bool{
			{"a run", "far away", 80}: true, {"a run", "far away", 81}: false, {"a run", "metadata", 80}: false, {"a run", "metadata, v6", 80}: false, {"a run", "a neighbour", 80}: false,
		}},
		"with runs left alone": {`{networkPolicies: {runs: {isolate: None}}}`, map[connection]bool{{"a neighbour", "a run", 8080}: true}},
		"with no policies":     {variations["no policies"], map[connection]bool{{"a neighbour", "minio", 9000}: true, {"operator", "far away", 80}: true}},
		"with the API server's address": {variations["runs kept apart"], map[connection]bool{
			{"operator", "API server", 6443}: true, {"operator", "API server", 443}: false, {"operator", "far away", 6443}: false,
			{"monitoring", "argo-server", 2746}: true, {"monitoring", "minio", 9001}: true, {"monitoring", "operator", 8080}: true,
		}},
		"with names elsewhere": {`{networkPolicies: {names: {to: [{ipBlock: {cidr: 203.0.113.0/24}}]}}}`, map[connection]bool{
			{"a run", "far away", 53}: true, {"a run", "names", 53}: false, {"operator", "far away", 53}: true,
		}},
		"with an Alertmanager in the cluster": {`{prometheus: {alertmanagers: ["alertmanager.monitoring.svc:9093"]}}`, map[connection]bool{
			{"prometheus", "monitoring", 9093}: true, {"prometheus", "a neighbour", 9093}: false, {"prometheus", "far away", 9093}: false,
		}},
		"with an Alertmanager far away": {`{prometheus: {alertmanagers: ["alerts.example.com:9093"]}}`, map[connection]bool{
			{"prometheus", "far away", 9093}: true, {"prometheus", "far away", 80}: false, {"prometheus", "metadata", 9093}: false,
		}},
		"with a store far away": {fmt.Sprintf(external, "s3.example.com"), map[connection]bool{
			{"a run", "far away", 443}: true, {"a run", "far away, v6", 443}: true, {"a run", "metadata", 443}: false, {"a run", "metadata, v6", 443}: false,
			{"operator", "far away", 443}: true, {"operator", "far away", 9000}: false, {"create-bucket", "far away", 443}: true, {"monitoring", "operator", 8080}: true,
		}},
		"with a store at a port": {fmt.Sprintf(external, "s3.example.com:8443"), map[connection]bool{
			{"operator", "far away", 8443}: true, {"operator", "far away", 80}: false,
		}},
		"with a store in the cluster, whose pods have another port than its Service": {fmt.Sprintf(external, "minio.storage.svc:443"), map[connection]bool{
			{"operator", "storage", 9000}: true, {"operator", "monitoring", 9000}: false,
		}},
		"with registries whose tags schedules follow": {`{operator: {registries: [ghcr.io, "registry.lan:5000"]}}`, map[connection]bool{
			{"operator", "far away", 443}: true, {"operator", "far away", 5000}: true, {"operator", "far away", 80}: false,
			{"operator", "metadata", 5000}: false, {"operator", "metadata, v6", 5000}: false, {"a run", "far away", 5000}: false,
		}},
		"with an identity of the cloud": {variations["a workload identity"], map[connection]bool{
			{"operator", "an identity", 80}: true, {"a run", "an identity", 80}: true, {"operator", "far away", 80}: false, {"create-bucket", "far away", 443}: true,
			{"a run", "metadata", 80}: false, {"operator", "metadata", 80}: false,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			chart := render(t, tc.values)
			judge, at := policies(t, chart), places(t, chart)
			for _, c := range slices.SortedFunc(maps.Keys(tc.want),
				func(a, b connection) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
				from, ok := at[c.from]
				to, ok2 := at[c.to]
				if !ok || !ok2 {
					t.Fatalf("no such places: %s, %s", c.from, c.to)
				}
				if got := judge.allows(t, from, to, c.port); got != tc.want[c] {
					t.Errorf("%s may reach %s at port %d: %v, want %v", c.from, c.to, c.port, got, tc.want[c])
				}
			}
		})
	}
}

func TestNetwork_EveryPodHasAPolicy(t *testing.T) {
	for name, values := range variations {
		if name == "no policies" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			chart := render(t, values)
			judge := policies(t, chart)
			for id, pod := range chart.pods(t) {
				namespace := strings.Split(id, "/")[1]
				if !slices.ContainsFunc(judge, func(p networkingv1.NetworkPolicy) bool {
					return p.Namespace == namespace && matches(t, &p.Spec.PodSelector, pod.Labels) && len(p.Spec.PolicyTypes) == 2
				}) {
					t.Errorf("%s has none", id)
				}
			}
		})
	}
}

// metadata are addresses at which clouds and their containers' agents answer with credentials, and some beside them.
var metadata = []string{
	"169.254.169.254/32", "169.254.170.2/32", "169.254.0.23/32", "169.254.169.253/32", "169.254.1.1/32", "169.254.255.255/32",
	"168.63.129.16/32", "100.100.100.200/32",
	"fd00:ec2::254/128", "fd00:ec2::253/128", "fd20:ce::254/128", "fe80::a9fe:a9fe/128", "fe80::1/128",
}

// identityAgents and nameCaches are link-local by convention, and each is named alone: the first where runs have an identity of the cloud.
var identityAgents, nameCaches = []string{"169.254.170.23/32", "fd00:ec2::23/128"}, []string{"169.254.20.10/32"}

// With any values, no egress rule allows all destinations, and no rule for blocks of addresses includes metadata services.
func TestNetwork_NoEgressRuleReachesMetadata(t *testing.T) {
	more := map[string]string{
		"a store far away":                  `{objectStore: {mode: external, existingSecret: s3, external: {endpoint: s3.example.com}}, networkPolicies: {apiServer: {ports: [443, 80]}}}`,
		"a store at metadata's port":        `{objectStore: {mode: external, existingSecret: s3, external: {endpoint: "s3.example.com:80", secure: false}}}`,
		"registries":                        `{operator: {registries: [ghcr.io, "registry.lan:80"]}}`,
		"a Prometheus far away":             `{prometheus: {mode: external}, grafana: {prometheusURL: "http://prometheus.example.com"}}`,
		"a Prometheus of IPv6":              `{prometheus: {mode: external}, grafana: {prometheusURL: "http://[2001:db8::7]/prometheus"}}`,
		"a Prometheus of IPv6, at a port":   `{prometheus: {mode: external}, grafana: {prometheusURL: "http://[2001:db8::7]:9090"}}`,
		"a Prometheus at a port":            `{prometheus: {mode: external}, grafana: {prometheusURL: "https://prometheus.example.com:443"}}`,
		"runs that reach public addresses":  egressTo(`{cidr: 0.0.0.0/0, except: [169.254.0.0/16, 168.63.129.16/32, 100.100.100.200/32]}`),
		"runs that reach private addresses": egressTo(`{cidr: 10.0.0.0/8}`),
		"runs that reach some of IPv6":      egressTo(`{cidr: "::/0", except: ["fc00::/7", "fe80::/10"]}`),
	}
	maps.Copy(more, variations)
	for name, values := range more {
		t.Run(name, func(t *testing.T) {
			rules := 0
			for _, policy := range policies(t, render(t, values)) {
				for i, rule := range policy.Spec.Egress {
					rules++
					if len(rule.To) == 0 {
						t.Errorf("egress[%d] of %s/%s goes anywhere", i, policy.Namespace, policy.Name)
					}
					for _, peer := range rule.To {
						if peer.IPBlock == nil || slices.Contains(slices.Concat(identityAgents, nameCaches), peer.IPBlock.CIDR) {
							continue
						}
						for _, address := range slices.Concat(metadata, identityAgents, nameCaches) {
							if peers(t, []networkingv1.NetworkPolicyPeer{peer}, policy.Namespace, somewhere{namespace: address}) {
								t.Errorf("egress[%d] of %s/%s reaches %s by %s", i, policy.Namespace, policy.Name, address, peer.IPBlock)
							}
						}
					}
				}
			}
			if rules == 0 && name != "no policies" {
				t.Error("there is no egress rule")
			}
		})
	}
}
