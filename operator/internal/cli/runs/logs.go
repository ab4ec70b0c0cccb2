package runs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/record"
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
			l := &logReader{
				cluster: cluster, engine: &argo.Executor{Pods: clients}, run: run, options: options,
				out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(),
			}
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
	engine      executor.Executor
	run         *assayv1alpha1.BenchmarkRun
	options     logOptions
	out, stderr io.Writer

	// mutex prevents interleaved lines when several pods are followed.
	mutex sync.Mutex
}

// logs returns the run's logs, oldest first.
func (l *logReader) logs(ctx context.Context) ([]executor.Log, error) {
	out, err := l.engine.Logs(ctx, record.Run(plan.HolderOf(l.run)))
	if err != nil {
		return nil, fmt.Errorf("logs of BenchmarkRun %s/%s: %w", l.run.Namespace, l.run.Name, err)
	}
	return out, nil
}

// selected reports whether a log is to be read.
func (l *logReader) selected(log *executor.Log) bool {
	return l.options.container == "" || l.options.container == log.Container
}

// print prints the logs of the pods so far.
func (l *logReader) print(ctx context.Context) error {
	logs, err := l.logs(ctx)
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return fmt.Errorf("BenchmarkRun %s/%s has no pods, because they are deleted with their workflow; the ledger has the output of trials: "+
			"%s results %s -o attempts", l.run.Namespace, l.run.Name, cli.Program, l.run.Name)
	}
	read := false
	for i := range logs {
		if log := &logs[i]; l.selected(log) {
			read = true
			if err := l.read(ctx, log, false); err != nil {
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
		var logs []executor.Log
		if err == nil {
			logs, err = l.logs(ctx)
		}
		if !away.tolerates(err) {
			stop() // Stop the readers, because the error matters more than the rest of their logs.
			return err
		}
		for i := range logs {
			log := &logs[i]
			key := log.Pod + "/" + log.Container
			if !l.selected(log) || started[key] || !log.Started {
				continue
			}
			started[key] = true
			readers.Go(func() {
				if err := l.read(ctx, log, true); err != nil && ctx.Err() == nil {
					cli.PrintLine(l.stderr, "%v\n", err)
				}
			})
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

// read copies one log.
func (l *logReader) read(ctx context.Context, log *executor.Log, follow bool) error {
	stream, err := log.Open(ctx, l.options.tail, follow)
	if err != nil {
		// A container that has not started has no log. The other logs are still readable.
		cli.PrintLine(l.stderr, "%s/%s has no log: %v\n", log.Pod, log.Container, err)
		return nil
	}
	err = l.copy(log.Pod, log.Container, stream)
	if err = errors.Join(err, stream.Close()); err != nil {
		return fmt.Errorf("log of %s/%s: %w", log.Pod, log.Container, err)
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
