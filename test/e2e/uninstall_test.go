package e2e

import (
	"strings"
	"testing"
	"time"
)

// Named to run last: go test runs files in order of their names. Uninstalling leaves the CRDs, and in the release's namespace
// the Leases by which operators and controllers took turns, as documented, and nothing else.
func TestUninstall_LeavesOnlyTheCRDs(t *testing.T) {
	command(t, "helm", "uninstall", "assay", "-n", system, "--wait", "--timeout", "3m")
	eventually(t, 2*time.Minute, "nothing of the release is left", func() (bool, string) {
		kinds := "deployments,statefulsets,daemonsets,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles," +
			"clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,jobs,networkpolicies,benchmarktemplates," +
			"benchmarkruns,benchmarkschedules,benchmarkrevisions"
		out, err := try("kubectl", "get", kinds, "-A", "-l", "app.kubernetes.io/instance=assay", "--no-headers", "--ignore-not-found")
		return err == nil && strings.TrimSpace(out) == "", out
	})
	// All kinds in the release's namespace, and with its label everywhere.
	kinds := strings.Join(strings.Fields(command(t, "kubectl", "api-resources", "--namespaced", "--verbs=list", "-o", "name")), ",")
	eventually(t, time.Minute, "nothing of any kind is left", func() (bool, string) {
		var left []string
		here, err := try("kubectl", "get", kinds, "-n", system, "-o", "name", "--ignore-not-found")
		if err != nil {
			return false, here
		}
		for _, name := range strings.Fields(here) {
			kind, _, _ := strings.Cut(name, "/")
			// Kubernetes puts the first two into every namespace, and forgets events by itself.
			if name != "configmap/kube-root-ca.crt" && name != "serviceaccount/default" && kind != "lease.coordination.k8s.io" &&
				!strings.HasPrefix(kind, "event") {
				left = append(left, name)
			}
		}
		everywhere, err := try("kubectl", "get", kinds, "-A", "-l", "app.kubernetes.io/instance=assay", "-o", "name", "--ignore-not-found")
		left = append(left, strings.Fields(everywhere)...)
		return err == nil && len(left) == 0, strings.Join(left, " ")
	})
	if taints := command(t, "kubectl", "get", "nodes", "-o", "jsonpath={.items[*].spec.taints[*].key}"); strings.Contains(taints,
		"assay.dev/") {
		t.Errorf("a node is still tainted: %s", taints)
	}
}
