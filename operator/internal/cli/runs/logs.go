package runs

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/report"
)

type logOptions struct {
	form, container string
	tail            int64
	follow          bool
}

func NewLogsCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var options logOptions
	command := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the logs of the run's pods: runner, analysis and Argo's helpers",
		Long: "Print the logs of the run's pods, oldest pod first, every line with its pod and container. With --follow it continues, " +
			"including pods that start later, until the run ends.\n\n" +
			"Argo deletes pods that succeeded. The output of a trial's process is in its attempt (assay results NAME -o attempts).",
		Example:           "  assay logs my-run\n  assay logs my-run -f -c main",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteRuns(flags, 1),
		RunE: cli.WithCluster(flags, func(cmd *cobra.Command, cluster *cli.Cluster, args []string) error {
			run, err := cli.GetRun(cmd.Context(), cluster, args[0])
			if err != nil {
				return err
			}
			clients, err := kubernetes.NewForConfig(cluster.Config)
			if err != nil {
				return err
			}
			l := &logReader{cluster: cluster, clients: clients, run: run, options: options, out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
			if options.follow && !progress.Ended(run) {
				return l.follow(cmd.Context())
			}
			return l.print(cmd.Context())
		}),
	}
	cli.AddOutput(command, &options.form, "text", "json")
	command.Flags().Int64Var(&options.tail, "tail", 200, "number of last lines per container; -1 prints all")
	command.Flags().StringVarP(&options.container, "container", "c", "", "only this container; main is the runner or the analysis")
	command.Flags().BoolVarP(&options.follow, "follow", "f", false, "continue until the run ends")
	return command
}

// logLine is the structured output of assay logs, one object per line.
type logLine struct {
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Line      string `json:"line"`
}

// logReader reads the logs of a run's pods.
type logReader struct {
	cluster     *cli.Cluster
	clients     kubernetes.Interface
	run         *assayv1alpha1.BenchmarkRun
	options     logOptions
	out, stderr io.Writer

	// mutex prevents interleaved lines when several pods are followed.
	mutex sync.Mutex
}

// pods returns the pods of the run, oldest first.
func (l *logReader) pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := l.cluster.List(ctx, &pods, client.InNamespace(l.run.Namespace),
		client.MatchingLabels{executor.RunUIDLabel: string(l.run.UID)}); err != nil {
		return nil, fmt.Errorf("pods of BenchmarkRun %s/%s: %w", l.run.Namespace, l.run.Name, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods.Items, nil
}

// containers returns the selected containers of a pod.
func (l *logReader) containers(pod *corev1.Pod) []string {
	var names []string
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if l.options.container == "" || l.options.container == container.Name {
			names = append(names, container.Name)
		}
	}
	return names
}

// print prints the logs of the pods so far.
func (l *logReader) print(ctx context.Context) error {
	pods, err := l.pods(ctx)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return fmt.Errorf("BenchmarkRun %s/%s has no pods, because they are deleted with their workflow; the ledger has the output of trials: "+
			"%s results %s -o attempts", l.run.Namespace, l.run.Name, cli.Program, l.run.Name)
	}
	read := false
	for i := range pods {
		for _, container := range l.containers(&pods[i]) {
			read = true
			if err := l.container(ctx, pods[i].Name, container, false); err != nil {
				return err
			}
		}
	}
	if !read {
		return cli.UsageError(fmt.Errorf("invalid --container %q: no pod of BenchmarkRun %s/%s has it; main is the runner or the analysis, "+
			"init and wait belong to Argo", l.options.container, l.run.Namespace, l.run.Name))
	}
	return nil
}

// PollInterval is the interval of polling and of resuming watches.
const PollInterval = 2 * time.Second

// follow prints logs until the run has ended and all its containers are finished.
func (l *logReader) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var readers sync.WaitGroup
	defer readers.Wait()
	started := map[string]bool{}
	var away outage
	for {
		run, err := cli.GetRun(ctx, l.cluster, l.run.Name)
		var pods []corev1.Pod
		if err == nil {
			pods, err = l.pods(ctx)
		}
		if !away.tolerates(err) {
			stop() // Stop the readers, because the error matters more than the rest of their logs.
			return err
		}
		for i := range pods {
			for _, container := range l.containers(&pods[i]) {
				key := pods[i].Name + "/" + container
				if started[key] || !hasStarted(&pods[i], container) {
					continue
				}
				started[key] = true
				readers.Go(func() {
					if err := l.container(ctx, pods[i].Name, container, true); err != nil && ctx.Err() == nil {
						cli.PrintLine(l.stderr, "%v\n", err)
					}
				})
			}
		}
		// A deleted run has ended, even if a new run has its name.
		if err == nil && (progress.Ended(run) || run.UID != l.run.UID) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(PollInterval):
		}
	}
}

// hasStarted reports whether a container has started and may have a log.
func hasStarted(pod *corev1.Pod, container string) bool {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name == container {
			return status.State.Running != nil || status.State.Terminated != nil
		}
	}
	return false
}

// container copies the log of one container.
func (l *logReader) container(ctx context.Context, pod, container string, follow bool) error {
	options := &corev1.PodLogOptions{Container: container, Follow: follow}
	if l.options.tail >= 0 {
		options.TailLines = &l.options.tail
	}
	stream, err := l.clients.CoreV1().Pods(l.run.Namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		// A container that has not started has no log. The others may have one.
		cli.PrintLine(l.stderr, "%s/%s has no log: %v\n", pod, container, err)
		return nil
	}
	err = l.copy(pod, container, stream)
	if err = errors.Join(err, stream.Close()); err != nil {
		return fmt.Errorf("log of %s/%s: %w", pod, container, err)
	}
	return nil
}

// longestLine is the maximum length of a log line in bytes. Longer lines are split.
const longestLine = 1 << 20

func (l *logReader) copy(pod, container string, from io.Reader) error {
	reader := bufio.NewReaderSize(from, longestLine)
	for {
		text, _, err := reader.ReadLine()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		line := fmt.Appendf(nil, "%s/%s  %s\n", pod, container, report.PrintableLines(string(text)))
		if l.options.form == "json" {
			raw, err := json.Marshal(logLine{pod, container, string(text)})
			if err != nil {
				return err
			}
			line = append(raw, '\n')
		}
		l.mutex.Lock()
		_, err = l.out.Write(line)
		l.mutex.Unlock()
		if err != nil {
			return err
		}
	}
}
