package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/preflight"
	"assay.dev/assay/operator/internal/quantity"
)

type preflightOptions struct {
	here    bool
	file    string
	form    string
	system  string
	binDirs []string
}

func NewPreflightCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var options preflightOptions
	command := &cobra.Command{
		Use:   "preflight",
		Short: "Show the isolation that this cluster or machine can provide",
		Long: "Show for every node the isolation that it can provide to a block: claim, support, finding and remedy. " +
			"With --local the runner checks this machine on the CPUs of a block.\n\n" +
			"On a cluster the operator reports whether it can use the object store and Argo. " +
			"With -f the requirements of a run are checked; the exit code is 1 if no node meets one of them or the installation is incomplete.",
		Example: "  assay preflight\n  assay preflight --local -f run.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runPreflight(cmd.Context(), flags, options, cmd.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&options.here, "local", false, "check this machine instead of a cluster")
	command.Flags().StringVarP(&options.file, "filename", "f", "", "file with a BenchmarkRun whose requirements are checked")
	cli.AddOutput(command, &options.form, "table", "json", "yaml")
	_ = command.RegisterFlagCompletionFunc("filename", cli.CompleteManifests)
	command.Flags().StringVar(&options.system, "system-namespace", "assay-system", "namespace of the Assay installation")
	command.Flags().StringArrayVar(&options.binDirs, "bin-dir", nil,
		"folder with assay-runner, for --local; may be repeated (default: the folder of assay)")
	return command
}

func runPreflight(ctx context.Context, flags *genericclioptions.ConfigFlags, options preflightOptions, out io.Writer) error {
	spec, err := demands(options.file)
	if err != nil {
		return err
	}
	var machines []preflight.Machine
	var installed []finding
	if options.here {
		machines, err = inspectMachine(ctx, options.binDirs, spec)
	} else {
		machines, installed, err = inspectCluster(ctx, flags, options.system)
	}
	if err != nil {
		return err
	}
	var answer *preflight.Answer
	if spec != nil {
		asked := preflight.Ask(spec, machines)
		asked.Notes = append(asked.Notes, experiment.EnvironmentWarnings(ptr.Deref(spec.Environment, assayv1alpha1.Environment{}).Require)...)
		answer = &asked
	}
	done, err := cli.PrintStructured(out, options.form, preflightAnswer{machines, installed, answer})
	if !done {
		if len(installed) > 0 { // The findings of the operator are printed above the nodes.
			err = printFindings(out, "table", installed)
			fmt.Fprintln(out)
		}
		err = errors.Join(err, preflight.Print(out, machines, answer))
	}
	if err != nil || answer == nil {
		return err
	}
	return cannotRun(options.file, answer, installed)
}

// cannotRun returns the unmet requirements of the run as an error, or nil.
func cannotRun(file string, answer *preflight.Answer, installed []finding) error {
	missing := slices.ContainsFunc(installed, func(f finding) bool { return !f.OK })
	switch {
	case len(answer.Unmet) > 0 && missing:
		return fmt.Errorf("%s has %s and the installation is incomplete", file, quantity.Count(len(answer.Unmet), "unmet requirement"))
	case len(answer.Unmet) > 0:
		return fmt.Errorf("%s has %s", file, quantity.Count(len(answer.Unmet), "unmet requirement"))
	case missing:
		return fmt.Errorf("the installation is incomplete for %s", file)
	}
	return nil
}

// demands returns the requirements of the run in a file, or nil without a file.
func demands(file string) (*assayv1alpha1.BenchmarkRunSpec, error) {
	if file == "" {
		return nil, nil
	}
	set, err := cli.ReadManifest(file)
	if err != nil {
		return nil, err
	}
	spec := &set.Runs[0].Spec
	experiment.DefaultRun(spec)
	return spec, nil
}

func inspectMachine(ctx context.Context, binDirs []string, spec *assayv1alpha1.BenchmarkRunSpec) ([]preflight.Machine, error) {
	folders, err := runs.ProgramFolders(binDirs)
	if err != nil {
		return nil, err
	}
	runner, err := local.FindProgram("assay-runner", folders)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	cpus := 1
	if spec != nil {
		cpus = int(spec.Placement.CPUs)
	}
	raw, err := (&local.Executor{Runner: runner, CPUs: cpus}).Survey(ctx)
	if err != nil {
		return nil, err
	}
	survey, err := preflight.ParseSurvey(raw)
	if err != nil {
		return nil, err
	}
	return []preflight.Machine{preflight.FromSurvey(survey)}, nil
}

// inspectCluster inspects the nodes and queries the operator.
func inspectCluster(ctx context.Context, flags *genericclioptions.ConfigFlags, system string) ([]preflight.Machine, []finding, error) {
	cluster, err := cli.Connect(flags)
	if err != nil {
		return nil, nil, err
	}
	machines, err := inspectNodes(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	installed, err := findInstallation(ctx, cluster, system)
	if err != nil {
		return machines, []finding{{Check: "platform", OK: true, Found: err.Error(),
			Remedy: "preflight needs permission to list deployments in " + system + " to check the object store and Argo"}}, nil
	}
	if !installed.present {
		// Preflight is also used before the installation.
		return machines, []finding{{Check: "platform", OK: true, Found: "no operator in " + system,
			Remedy: "install charts/assay, or name its namespace with --system-namespace"}}, nil
	}
	return machines, platform(askOperator(ctx, cluster, system)), nil
}

func inspectNodes(ctx context.Context, cluster *cli.Cluster) ([]preflight.Machine, error) {
	var nodes corev1.NodeList
	if err := cluster.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return nil, errors.New("the cluster has no nodes")
	}
	clients, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cluster.Config.Host, err)
	}
	var out []preflight.Machine
	for i := range nodes.Items {
		config, why := kubeletConfig(ctx, clients, nodes.Items[i].Name)
		out = append(out, preflight.FromNode(&nodes.Items[i], config, why))
	}
	return out, nil
}

// kubeletConfig reads the configuration of a kubelet through the API server.
func kubeletConfig(ctx context.Context, clients kubernetes.Interface, node string) (*preflight.KubeletConfig, error) {
	result := clients.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("configz").Do(ctx)
	// Only this error has the message of the API server.
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, _ := result.Raw() // Raw returns the same error.
	var answer struct {
		KubeletConfig *preflight.KubeletConfig `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	if answer.KubeletConfig == nil {
		return nil, errors.New("configz has no kubeletconfig")
	}
	return answer.KubeletConfig, nil
}

// preflightAnswer is the structured output of assay preflight.
type preflightAnswer struct {
	Machines []preflight.Machine `json:"machines"`
	Platform []finding           `json:"platform,omitempty"`
	Run      *preflight.Answer   `json:"run,omitempty"`
}
