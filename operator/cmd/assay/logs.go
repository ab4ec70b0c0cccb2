package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/workflow"
)

func newLogsCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	var tail int64
	command := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print what the run's pods said: runner, analysis and Argo's helpers",
		Long: "Print what the run's pods said, oldest pod first, every line with its pod and container. " +
			"What a trial's own process wrote is in its attempt: assay results NAME -o attempts.",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: completeRuns(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := connect(flags)
			if err != nil {
				return err
			}
			run, err := getRun(cmd.Context(), cluster, args[0])
			if err != nil {
				return err
			}
			clients, err := kubernetes.NewForConfig(cluster.config)
			if err != nil {
				return err
			}
			return printLogs(cmd.Context(), cluster, clients, run, tail, cmd.OutOrStdout())
		},
	}
	command.Flags().Int64Var(&tail, "tail", 200, "last lines of every container")
	flags.AddFlags(command.Flags())
	return command
}

func printLogs(ctx context.Context, cluster *cluster, clients kubernetes.Interface, run *assayv1alpha1.BenchmarkRun, tail int64, out io.Writer) error {
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace(run.Namespace), client.MatchingLabels{workflow.RunUIDLabel: string(run.UID)}); err != nil {
		return fmt.Errorf("pods of BenchmarkRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("BenchmarkRun %s/%s has no pods: they go with their workflow; the ledger keeps what was measured: assay results %s -o attempts", run.Namespace, run.Name, run.Name)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			stream, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, TailLines: &tail}).Stream(ctx)
			if err != nil {
				// A container that has not started has no log; the others are worth reading all the same.
				fmt.Fprintf(out, "%s/%s  (no log: %v)\n", pod.Name, container.Name, err)
				continue
			}
			err = prefixed(out, pod.Name+"/"+container.Name, stream)
			_ = stream.Close()
			if err != nil {
				return fmt.Errorf("log of %s/%s: %w", pod.Name, container.Name, err)
			}
		}
	}
	return nil
}

// prefixed copies lines with a prefix.
func prefixed(out io.Writer, prefix string, from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if _, err := fmt.Fprintf(out, "%s  %s\n", prefix, lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}
