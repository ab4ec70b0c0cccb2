package mode

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/cluster/internal/host"
)

// KindName is our kind cluster's name: others that the user has are left alone.
const KindName = "assay"

// KindCluster is our kind cluster.
type KindCluster struct {
	Run host.Runner
	// Binary is the kind program.
	Binary string
	// Kubeconfig is a file of our own, so that the user's current context does not change.
	Kubeconfig string
	Out        io.Writer
}

// kindConfig gives Guaranteed pods exclusive CPUs.
const kindConfig = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  kubeadmConfigPatches:
  - |
    kind: KubeletConfiguration
    apiVersion: kubelet.config.k8s.io/v1beta1
    cpuManagerPolicy: static
    kubeReserved: {cpu: 200m}
`

// Up creates the cluster, or goes on using it.
func (c KindCluster) Up(ctx context.Context) error {
	clusters, err := c.kind(ctx, time.Minute, "", "get", "clusters")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Kubeconfig), 0o755); err != nil {
		return err
	}
	if slices.Contains(strings.Fields(string(clusters)), KindName) {
		fmt.Fprintf(c.Out, "kind cluster %s is there already\n", KindName)
		_, err := c.kind(ctx, time.Minute, "", "export", "kubeconfig", "--name", KindName, "--kubeconfig", c.Kubeconfig)
		return err
	}
	fmt.Fprintf(c.Out, "creating kind cluster %s …\n", KindName)
	_, err = c.kind(ctx, 10*time.Minute, kindConfig, "create", "cluster", "--name", KindName, "--kubeconfig", c.Kubeconfig, "--wait", "5m",
		"--config", "-")
	return err
}

// Load copies image archives to the node.
func (c KindCluster) Load(ctx context.Context, archives []string) error {
	for _, archive := range archives {
		if _, err := c.kind(ctx, 5*time.Minute, "", "load", "image-archive", archive, "--name", KindName); err != nil {
			return err
		}
	}
	return nil
}

// Down deletes the cluster. Deleting one that is not there is fine.
func (c KindCluster) Down(ctx context.Context) error {
	_, err := c.kind(ctx, 5*time.Minute, "", "delete", "cluster", "--name", KindName, "--kubeconfig", c.Kubeconfig)
	if err != nil {
		return err
	}
	return os.RemoveAll(c.Kubeconfig)
}

func (c KindCluster) kind(ctx context.Context, within time.Duration, stdin string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.Run.Output(ctx, host.Command{Path: c.Binary, Args: args, Stdin: strings.NewReader(stdin)})
}
