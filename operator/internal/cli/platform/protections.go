package platform

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/policy"
)

// protections recommends the limits of the operator's policy that are not set for a namespace, and a ResourceQuota. Runs work without them,
// but its users may hold up other namespaces.
func (i setup) protections(ctx context.Context, reader client.Reader, namespace string) []finding {
	if !i.present {
		return nil
	}
	out := finding{Check: "policy of namespace " + namespace, OK: true, Found: "limits time, runs, trials, memory and storage"}
	allowed, err := policy.Parse([]byte(i.flag("policy", "{}")))
	if err != nil {
		out.OK, out.Found, out.Remedy = false, err.Error(), "correct the value policy of charts/assay"
	} else if missing := allowed.Unlimited(namespace); len(missing) > 0 {
		out.Found = "no limit: " + strings.Join(missing, ", ")
		out.Remedy = "set them in policy.default of charts/assay, so that one namespace cannot hold up others"
	}
	return append([]finding{out}, quotas(ctx, reader, namespace)...)
}

// quotas recommends a limit on the number of runs that a namespace may store in the API server. Without permission to list quotas it
// returns nothing.
func quotas(ctx context.Context, reader client.Reader, namespace string) []finding {
	const counted = corev1.ResourceName("count/benchmarkruns.assay.dev")
	var list corev1.ResourceQuotaList
	if err := reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	out := finding{Check: "ResourceQuota of namespace " + namespace, OK: true, Found: "none limits " + string(counted),
		Remedy: "set runs.quota of charts/assay, such as {" + string(counted) + ": 5000}"}
	for _, quota := range list.Items {
		if limit, ok := quota.Spec.Hard[counted]; ok {
			out.Found, out.Remedy = quota.Name+" limits "+string(counted)+" to "+limit.String(), ""
		}
	}
	return []finding{out}
}
