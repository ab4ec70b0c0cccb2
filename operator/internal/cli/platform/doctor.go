// Package platform has the commands that check nodes and the installation.
package platform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/dependencies"
	"assay.dev/assay/operator/internal/observe"
)

// finding is the result of one check. A finding that is OK and has a remedy is a recommendation.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

func NewDoctorCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var form, system string
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and suggest remedies",
		Long: "Check the requirements of runs: the API, the operator, the object store, Argo, the ledger's Secret, templates " +
			"and nodes. The operator reports whether it can use the store and Argo. assay preflight shows the isolation that nodes provide.\n\n" +
			"The exit code is 1 if a requirement is not met.",
		Example: "  assay doctor\n  assay doctor -n team-a --system-namespace assay-system -o json",
		RunE: cli.WithCluster(flags, func(cmd *cobra.Command, cluster *cli.Cluster, _ []string) error {
			kinds, err := servedKinds(cluster)
			if err != nil {
				return err
			}
			ask := func(ctx context.Context) (*dependencies.Report, error) { return askOperator(ctx, cluster, system) }
			findings := examine(cmd.Context(), cluster, kinds, cluster.Namespace, system, ask)
			if err := printFindings(cmd.OutOrStdout(), form, findings); err != nil {
				return err
			}
			if slices.ContainsFunc(findings, func(f finding) bool { return !f.OK }) {
				return errors.New("the installation is incomplete")
			}
			return nil
		}),
	}
	cli.AddOutput(command, &form, "table", "json", "yaml")
	command.Flags().StringVar(&system, "system-namespace", "assay-system", "namespace of the Assay installation")
	return command
}

// servedKinds returns the kinds that the API server serves, as group/version/Kind. Groups whose discovery fails are omitted.
func servedKinds(cluster *cli.Cluster) (map[string]bool, error) {
	discover, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		return nil, err
	}
	_, lists, err := discover.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discover the APIs of %s: %w", cluster.Config.Host, err)
	}
	kinds := map[string]bool{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			kinds[list.GroupVersion+"/"+resource.Kind] = true
		}
	}
	return kinds, nil
}

// examine checks all requirements of runs in the namespace.
func examine(ctx context.Context, reader client.Reader, kinds map[string]bool, namespace, system string, ask question) []finding {
	out := []finding{
		served(kinds, "assay.dev/v1alpha1/BenchmarkRun",
			"install charts/assay: helm upgrade --install assay charts/assay -n "+system+" --create-namespace"),
		served(kinds, "assay.dev/v1alpha1/BenchmarkTemplate", "install charts/assay"),
		served(kinds, "argoproj.io/v1alpha1/Workflow", "install Argo Workflows, or install charts/assay with argo.mode=bundled"),
	}
	out = append(out, deployments(ctx, reader, system)...)
	installed, err := findInstallation(ctx, reader, system)
	if err != nil {
		out = append(out, finding{Check: "operator in " + system, Found: err.Error(), Remedy: "doctor needs to list deployments in " + system})
	}
	switch {
	case installed.ready:
		out = append(out, platform(ask(ctx))...)
	case installed.present:
		out = append(out, finding{Check: "ledger and Argo", Found: "not checked, because no operator is ready: runs do not start, and " +
			"running ones are not observed", Remedy: "see the deployment of the operator"})
	}
	out = append(out, installed.namespace(namespace, system)...)
	out = append(out, installed.protections(ctx, reader, namespace)...)
	out = append(out, installed.secrets(ctx, reader, namespace)...)
	out = append(out, podSecurity(ctx, reader, namespace)...)
	out = append(out, argoControllers(ctx, reader)...)
	if kinds["assay.dev/v1alpha1/BenchmarkTemplate"] {
		out = append(out, templates(ctx, reader, namespace))
	}
	return append(out, nodes(ctx, reader))
}

func served(kinds map[string]bool, kind, remedy string) finding {
	if kinds[kind] {
		return finding{Check: kind, OK: true, Found: "served"}
	}
	return finding{Check: kind, Found: "not served by the API server", Remedy: remedy}
}

// deployments checks the readiness of the deployments of Assay.
func deployments(ctx context.Context, reader client.Reader, system string) []finding {
	var list appsv1.DeploymentList
	if err := reader.List(ctx, &list, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/part-of": "assay"}); err != nil {
		return []finding{{Check: "deployments in " + system, Found: err.Error(), Remedy: "doctor needs to list deployments in " + system}}
	}
	if len(list.Items) == 0 {
		return []finding{{Check: "deployments in " + system, Found: "no deployment of Assay",
			Remedy: "install charts/assay there, or name its namespace with --system-namespace"}}
	}
	var out []finding
	for _, deployment := range list.Items {
		wanted := ptr.Deref(deployment.Spec.Replicas, 1)
		f := finding{Check: "deployment " + deployment.Name, OK: wanted > 0 && deployment.Status.ReadyReplicas >= wanted,
			Found: fmt.Sprintf("%d of %d ready", deployment.Status.ReadyReplicas, wanted)}
		switch {
		case wanted == 0:
			f.Found = "scaled to zero"
			f.Remedy = fmt.Sprintf("kubectl scale deployment -n %s %s --replicas=1", system, deployment.Name)
		case !f.OK:
			f.Remedy = fmt.Sprintf("kubectl describe deployment -n %s %s", system, deployment.Name)
		}
		out = append(out, f)
	}
	return out
}

func templates(ctx context.Context, reader client.Reader, namespace string) finding {
	f := finding{Check: "BenchmarkTemplates in " + namespace}
	var list assayv1alpha1.BenchmarkTemplateList
	if err := reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		f.Found, f.Remedy = err.Error(), "doctor needs to list BenchmarkTemplates"
		return f
	}
	var names []string
	for _, template := range list.Items {
		names = append(names, template.Name)
	}
	f.OK, f.Found = true, cmp.Or(strings.Join(names, ", "), "none; runs in this namespace need an inline template")
	return f
}

func nodes(ctx context.Context, reader client.Reader) finding {
	f := finding{Check: "nodes"}
	var list corev1.NodeList
	if err := reader.List(ctx, &list); err != nil {
		f.Found, f.Remedy = err.Error(), "doctor needs to list nodes"
		return f
	}
	ready := 0
	for _, node := range list.Items {
		if observe.Ready(&node).Status == corev1.ConditionTrue && !node.Spec.Unschedulable {
			ready++
		}
	}
	f.OK, f.Found = ready > 0, fmt.Sprintf("%d of %d ready and not cordoned", ready, len(list.Items))
	if !f.OK {
		f.Remedy = "kubectl get nodes"
	}
	return f
}

func printFindings(out io.Writer, form string, findings []finding) error {
	if done, err := cli.PrintStructured(out, form, findings); done {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, f := range findings {
		mark := "ok"
		switch {
		case !f.OK:
			mark = "MISSING"
		case f.Remedy != "":
			mark = "note"
		}
		cli.PrintLine(table, "%s\t%s\t%s\n", mark, f.Check, f.Found)
		if f.Remedy != "" {
			cli.PrintLine(table, "\t\t-> %s\n", f.Remedy)
		}
	}
	return table.Flush()
}
