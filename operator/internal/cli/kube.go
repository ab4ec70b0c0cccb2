package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Cluster is a connection to the API server and the namespace that kubectl's flags select.
type Cluster struct {
	client.WithWatch
	Config    *rest.Config
	Namespace string
}

// defaultServer is the address that client-go uses without a kubeconfig.
const defaultServer = "http://localhost:8080"

// Connect connects to the cluster that kubectl's flags select. It returns an error if no kubeconfig names a cluster.
func Connect(flags *genericclioptions.ConfigFlags) (*Cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if raw, err := flags.ToRawKubeConfigLoader().RawConfig(); err == nil && len(raw.Clusters) == 0 && *flags.APIServer == "" &&
		config.Host == defaultServer {
		return nil, errors.New("no cluster is configured: name a kubeconfig with --kubeconfig or KUBECONFIG")
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), assayv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	connection, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &Cluster{connection, config, namespace}, nil
}

// WithCluster adapts a command function that needs a connection to cobra.
func WithCluster(flags *genericclioptions.ConfigFlags,
	run func(*cobra.Command, *Cluster, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cluster, err := Connect(flags)
		if err != nil {
			return err
		}
		return run(cmd, cluster, args)
	}
}
