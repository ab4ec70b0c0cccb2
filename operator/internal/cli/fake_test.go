package cli

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/test/clitest"
)

// fakeCluster is one with the namespace default and these objects.
func fakeCluster(t *testing.T, calls interceptor.Funcs, objects ...client.Object) *Cluster {
	t.Helper()
	return &Cluster{WithWatch: clitest.Client(t, calls, objects...), Namespace: "default"}
}
