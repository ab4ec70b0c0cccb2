package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/local"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/preflight"
)

type preflightOptions struct {
	here    bool
	file    string
	form    string
	binDirs []string
}

func newPreflightCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	var options preflightOptions
	command := &cobra.Command{
		Use:   "preflight",
		Short: "Tell which isolation this cluster or machine can give, and how to get what is missing",
		Long: "Tell for every node which isolation it can give to a block: claim, whether it is supported, what was found, and how to get it. " +
			"With --local the runner looks at this machine, from the CPUs that a block would get.\n\n" +
			"With -f the run's own demands are checked too: exit code 1 when no node can meet one of them.",
		Example: "  assay preflight\n  assay preflight --local -f run.yaml",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runPreflight(cmd.Context(), flags, options, cmd.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&options.here, "local", false, "look at this machine instead of a cluster")
	command.Flags().StringVarP(&options.file, "filename", "f", "", "file with a BenchmarkRun whose demands are checked")
	command.Flags().StringVarP(&options.form, "output", "o", "table", "table or json")
	command.Flags().StringArrayVar(&options.binDirs, "bin-dir", nil, "folder with assay-runner, for --local; may be repeated (default: the folder of assay itself)")
	flags.AddFlags(command.Flags())
	return command
}

func runPreflight(ctx context.Context, flags *genericclioptions.ConfigFlags, options preflightOptions, out io.Writer) error {
	if err := checkForm(options.form, "table", "json"); err != nil {
		return err
	}
	spec, err := demands(options.file)
	if err != nil {
		return &exitCode{exitUsage, err}
	}
	var machines []preflight.Machine
	if options.here {
		machines, err = lookHere(ctx, options.binDirs, spec)
	} else {
		machines, err = lookAtNodes(ctx, flags)
	}
	if err != nil {
		return err
	}
	var answer *preflight.Answer
	if spec != nil {
		asked := preflight.Ask(spec, machines)
		asked.Notes = append(asked.Notes, experiment.EnvironmentWarnings(spec)...)
		answer = &asked
	}
	if options.form == "json" {
		err = writeJSON(out, machines, answer)
	} else {
		err = preflight.Print(out, machines, answer)
	}
	if err == nil && answer != nil && len(answer.Unmet) > 0 {
		err = fmt.Errorf("%d demands of %s cannot be met", len(answer.Unmet), options.file)
	}
	return err
}

// demands are those of the run in a file; nil without a file.
func demands(file string) (*assayv1alpha1.BenchmarkRunSpec, error) {
	if file == "" {
		return nil, nil
	}
	set, err := manifest.Read(file)
	if err != nil {
		return nil, err
	}
	if len(set.Runs) != 1 {
		return nil, fmt.Errorf("%s holds %d BenchmarkRuns: it must hold one", file, len(set.Runs))
	}
	spec := &set.Runs[0].Spec
	experiment.Default(spec, &assayv1alpha1.BenchmarkTemplateSpec{})
	return spec, nil
}

func lookHere(ctx context.Context, binDirs []string, spec *assayv1alpha1.BenchmarkRunSpec) ([]preflight.Machine, error) {
	folders, err := binFolders(binDirs)
	if err != nil {
		return nil, err
	}
	runner, err := local.FindProgram("assay-runner", folders)
	if err != nil {
		return nil, &exitCode{exitUsage, err}
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

func lookAtNodes(ctx context.Context, flags *genericclioptions.ConfigFlags) ([]preflight.Machine, error) {
	cluster, err := connect(flags)
	if err != nil {
		return nil, err
	}
	var nodes corev1.NodeList
	if err := cluster.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return nil, errors.New("the cluster has no node")
	}
	clients, err := kubernetes.NewForConfig(cluster.config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cluster.config.Host, err)
	}
	var out []preflight.Machine
	for i := range nodes.Items {
		config, why := kubeletConfig(ctx, clients, nodes.Items[i].Name)
		out = append(out, preflight.FromNode(&nodes.Items[i], config, why))
	}
	return out, nil
}

// kubeletConfig asks a node's kubelet, through the API server, how it is configured.
func kubeletConfig(ctx context.Context, clients kubernetes.Interface, node string) (*preflight.KubeletConfig, error) {
	result := clients.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("configz").Do(ctx)
	// Only this error holds what the API server says.
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	var answer struct {
		KubeletConfig *preflight.KubeletConfig `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	if answer.KubeletConfig == nil {
		return nil, errors.New("its configz has no kubeletconfig")
	}
	return answer.KubeletConfig, nil
}

func writeJSON(out io.Writer, machines []preflight.Machine, answer *preflight.Answer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(struct {
		Machines []preflight.Machine `json:"machines"`
		Run      *preflight.Answer   `json:"run,omitempty"`
	}{machines, answer})
}
