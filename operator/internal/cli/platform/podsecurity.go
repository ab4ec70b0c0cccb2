package platform

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// enforceLabel is the label of a namespace with its Pod Security level. All pods of Assay and Argo meet the level restricted.
const enforceLabel, restricted = "pod-security.kubernetes.io/enforce", "restricted"

// podSecurity recommends the level restricted for a namespace that admits other pods. Runs work in either case, but users who can create
// runs there could start less restricted pods. Without permission to read the namespace it returns nothing.
func podSecurity(ctx context.Context, reader client.Reader, namespace string) []finding {
	var object corev1.Namespace
	if err := reader.Get(ctx, types.NamespacedName{Name: namespace}, &object); err != nil {
		return nil
	}
	level := cmp.Or(object.Labels[enforceLabel], "no level")
	out := finding{Check: "Pod Security of namespace " + namespace, OK: true, Found: enforceLabel + " enforces " + level}
	if level != restricted {
		out.Remedy = "runs need only restricted pods: kubectl label namespace " + namespace + " " + enforceLabel + "=" + restricted +
			" --overwrite"
	}
	return []finding{out}
}
