package runs

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/test/clitest"
)

// fakeCluster returns a connection to a fake API server with these objects, and the namespace default.
func fakeCluster(t *testing.T, calls interceptor.Funcs, objects ...client.Object) *cli.Cluster {
	t.Helper()
	return &cli.Cluster{WithWatch: clitest.Client(t, calls, objects...), Namespace: "default"}
}
