package platform

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// enforceLabel is what a namespace says of the pods it takes; every pod that Assay and Argo make is restricted.
const enforceLabel, restricted = "pod-security.kubernetes.io/enforce", "restricted"

// podSecurity reports whether a namespace with runs takes pods that are not restricted. Runs work either way: what differs is what else
// whoever may create runs there can start. Those who may not read the namespace get no finding.
func podSecurity(ctx context.Context, reader client.Reader, namespace string) []finding {
	var object corev1.Namespace
	if err := reader.Get(ctx, types.NamespacedName{Name: namespace}, &object); err != nil {
		return nil
	}
	level := cmp.Or(object.Labels[enforceLabel], "nothing")
	out := finding{Check: "Pod Security of namespace " + namespace, OK: true, Found: enforceLabel + " enforces " + level}
	if level != restricted {
		out.Remedy = "runs need no more than restricted pods: kubectl label namespace " + namespace + " " + enforceLabel + "=" + restricted +
			" --overwrite"
	}
	return []finding{out}
}
