package e2e

import (
	"strings"
	"testing"
	"time"
)

// Named to run last: go test runs files in order of their names. Uninstalling leaves the CRDs, as documented, and nothing else.
func TestUninstallLeavesOnlyTheCRDs(t *testing.T) {
	command(t, "helm", "uninstall", "assay", "-n", system, "--wait", "--timeout", "3m")
	eventually(t, 2*time.Minute, "nothing of the release is left", func() (bool, string) {
		kinds := "deployments,statefulsets,daemonsets,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,jobs,networkpolicies,benchmarktemplates,benchmarkruns"
		out, err := try("kubectl", "get", kinds, "-A", "-l", "app.kubernetes.io/instance=assay", "--no-headers", "--ignore-not-found")
		return err == nil && strings.TrimSpace(out) == "", out
	})
}
