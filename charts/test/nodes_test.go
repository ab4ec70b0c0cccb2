package chart

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// as is a client that the API server takes for a ServiceAccount.
func (c *cluster) as(t *testing.T, namespace, name string) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	out, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNodesPolicy_OperatorChangesOnlyTheLeaseTaint(t *testing.T) {
	c := startCluster(t)
	c.install(t, "{fullnameOverride: bench}")
	operator := c.as(t, releaseNamespace, "bench-operator")
	leased := corev1.Taint{Key: "assay.dev/leased", Value: "uid", Effect: corev1.TaintEffectNoSchedule}
	dedicated := corev1.Taint{Key: "dedicated", Value: "perf", Effect: corev1.TaintEffectNoSchedule}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node-a", Labels: map[string]string{"pool": "perf"}, Annotations: map[string]string{"note": "x"}, Finalizers: []string{"example.com/kept"},
	}}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Spec.Taints = []corev1.Taint{dedicated}
	if err := c.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		edit   func(*corev1.Node)
		refuse string
	}{
		"it takes the node": {func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, leased) }, ""},
		"it takes it for another": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{dedicated, {Key: leased.Key, Value: "other", Effect: leased.Effect}}
		}, ""},
		"it evicts who is there": {func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: leased.Key, Effect: corev1.TaintEffectNoExecute})
		}, "evicts no pod"},
		"it takes another's taint away": {func(n *corev1.Node) { n.Spec.Taints = nil }, "no taint of a node but"},
		"it replaces another's taint":   {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{leased} }, "no taint of a node but"},
		"it changes another's taint":    {func(n *corev1.Node) { n.Spec.Taints[0].Value = "web" }, "no taint of a node but"},
		"it adds a taint": {func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "assay.dev/other", Effect: leased.Effect})
		}, "no taint of a node but"},
		"it cordons":              {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "nothing of a node's spec"},
		"it says who provides it": {func(n *corev1.Node) { n.Spec.ProviderID = "cloud://1" }, "nothing of a node's spec"},
		"it gives it addresses":   {func(n *corev1.Node) { n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.1.0.0/24", []string{"10.1.0.0/24"} }, "nothing of a node's spec"},
		"it labels":               {func(n *corev1.Node) { n.Labels["pool"] = "web" }, "neither labels"},
		"it adds a label":         {func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }, "neither labels"},
		"it annotates":            {func(n *corev1.Node) { n.Annotations["note"] = "y" }, "neither labels"},
		"it lets a node go":       {func(n *corev1.Node) { n.Finalizers = nil }, "neither labels"},
		"it makes the node someone's": {func(n *corev1.Node) {
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "1"}}
		}, "neither labels"},
		"it labels while taking the node":  {func(n *corev1.Node) { n.Spec.Taints, n.Labels["pool"] = append(n.Spec.Taints, leased), "web" }, "neither labels"},
		"it cordons while taking the node": {func(n *corev1.Node) { n.Spec.Taints, n.Spec.Unschedulable = append(n.Spec.Taints, leased), true }, "nothing of a node's spec"},
	}
	try := func(edit func(*corev1.Node)) error {
		var live corev1.Node
		if err := operator.Get(t.Context(), client.ObjectKeyFromObject(node), &live); err != nil {
			return err
		}
		before := live.DeepCopy()
		edit(&live)
		return operator.Patch(t.Context(), &live, client.MergeFrom(before), client.DryRunAll)
	}
	c.untilPoliciesHold(t, func() error { return try(tests["it cordons"].edit) })
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			switch err := try(tc.edit); {
			case tc.refuse == "" && err != nil:
				t.Error(err)
			case tc.refuse != "" && (err == nil || !strings.Contains(err.Error(), tc.refuse)):
				t.Errorf("told %v, want a refusal that says %q", err, tc.refuse)
			}
		})
	}
	t.Run("others may do all of that", func(t *testing.T) {
		live := node.DeepCopy()
		live.Spec.Unschedulable, live.Labels["pool"] = true, "web"
		if err := c.Patch(t.Context(), live, client.MergeFrom(node), client.DryRunAll); err != nil {
			t.Error(err)
		}
	})
}

// untilPoliciesHold waits for the API server to have learned of the policies: it watches for them.
func (c *cluster) untilPoliciesHold(t *testing.T, refused func() error) {
	t.Helper()
	var err error
	for range 300 {
		if err = refused(); err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the API server does not enforce the policy: it answers %v to a forbidden change", err)
}

// A field that a later Kubernetes gives to nodes is to be looked at here.
func TestNodesPolicy_CoversEveryFieldOfASpec(t *testing.T) {
	policy := render(t, "").find(t, "ValidatingAdmissionPolicy/assay-operator-nodes")
	raw, err := policy.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	spec := reflect.TypeFor[corev1.NodeSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		if !strings.Contains(string(raw), "object.spec.?"+name) {
			t.Errorf("it does not say whether the operator may change spec.%s", name)
		}
	}
}
