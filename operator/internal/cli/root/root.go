// Package root wires all commands into the program, with its help and its reference page.
package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/bench"
	"assay.dev/assay/operator/internal/cli/bisect"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/cli/ledgers"
	"assay.dev/assay/operator/internal/cli/platform"
	"assay.dev/assay/operator/internal/cli/pullrequest"
	"assay.dev/assay/operator/internal/cli/results"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/cli/suite"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/suggest"
)

// Main executes the command in the arguments of the process and returns its exit code.
func Main(version string) int {
	cli.Version = version
	args := os.Args[1:]
	switch name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"); {
	case name == cli.KubectlCompletion:
		cli.Program, args = "kubectl assay", append([]string{cobra.ShellCompRequestCmd}, args...)
	case strings.HasPrefix(name, "kubectl-"):
		cli.Program = "kubectl assay"
	}
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	log.SetLogger(logr.Discard()) // Errors contain the messages of the client.
	root := New()
	root.SetArgs(args)
	if err := Execute(ctx, root); err != nil {
		fmt.Fprintln(os.Stderr, report.PrintableLines(cli.Program+": "+err.Error()))
		return cli.ExitCode(err)
	}
	return cli.ExitDone
}

// Execute runs the selected command. Unknown commands are usage errors, also where Cobra would print help.
func Execute(ctx context.Context, root *cobra.Command) error {
	command, err := root.ExecuteContextC(ctx)
	if command.Runnable() {
		return err
	}
	help := command.Flags().Lookup("help")
	if words := command.Flags().Args(); err == nil && len(words) > 0 && (help == nil || !help.Changed) {
		var names []string
		for _, child := range command.Commands() {
			names = append(names, child.Name())
		}
		err = fmt.Errorf("unknown command %q for %q: %s", words[0], command.CommandPath(), suggest.Allowed(words[0], names))
	}
	if _, coded := errors.AsType[*cli.CodedError](err); err == nil || coded {
		return err
	}
	return cli.UsageError(err)
}

// stopSignals end a command gracefully. SIGHUP is included unless nohup ignores it.
func stopSignals() []os.Signal {
	out := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		out = append(out, syscall.SIGHUP)
	}
	return out
}

// Command groups of the help.
const (
	experiments  = "experiments"
	answers      = "answers"
	installation = "installation"
)

// New returns the command tree.
func New() *cobra.Command {
	cobra.EnableCommandSorting = false // Commands are ordered by use.
	root := &cobra.Command{
		Use:   "assay",
		Short: "Benchmark verdicts you can trust",
		Long: "assay runs an experiment, described by a BenchmarkRun, on a cluster or on this machine and reports its verdict.\n\n" +
			cli.ExitHelp(false) + " The exit code of commands that judge (" + cli.JudgingCommands + ") is that of the verdict: 0 only for Go, " +
			"3 for one that is not decided, and 4 for NoGo.\n\n" +
			"The cluster is selected as in kubectl: --kubeconfig, $KUBECONFIG or ~/.kube/config, and -n for the namespace. Terminal " +
			"output is coloured unless NO_COLOR is set.",
		Example: "  assay run --local workflows/studies/pir-batch-scan/run.yaml\n" +
			"  assay run run.yaml --watch\n  assay gate my-run --wait 1h\n  assay report my-run --open",
		Version:       cli.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: cli.Program},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateRequiredFlags(); err != nil {
				return cli.UsageError(err)
			}
			return nil
		},
	}
	// All commands accept the connection flags. Commands without cluster access ignore them.
	flags := genericclioptions.NewConfigFlags(true)
	flags.AddFlags(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("namespace", cli.CompleteFromCluster(flags, 0, cli.NamespaceCompletions))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if said, ok := errors.AsType[*cli.CodedError](err); ok {
			return said
		}
		return cli.UsageError(err)
	})
	root.AddGroup(&cobra.Group{ID: experiments, Title: "Experiments:"}, &cobra.Group{ID: answers, Title: "Answers:"},
		&cobra.Group{ID: installation, Title: "Installation:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add(experiments, bench.NewBenchCommand(), suite.NewSuiteCommand(), runs.NewInitCommand(), runs.NewPlanCommand(flags),
		runs.NewRunCommand(flags),
		runs.NewGetCommand(flags),
		runs.NewWatchCommand(flags), runs.NewLogsCommand(flags), runs.NewCancelCommand(flags), runs.NewRecordCommand(flags))
	add(answers, results.NewReportCommand(flags), results.NewResultsCommand(flags), results.NewCompareCommand(flags),
		results.NewGateCommand(flags), runs.NewWhyCommand(), ledgers.NewAnalyzeCommand(),
		history.NewHistoryCommand(flags), history.NewChangesCommand(flags), history.NewSiteCommand(flags), bisect.NewBisectCommand(flags),
		pullrequest.NewPullRequestCommand())
	add(installation, platform.NewPreflightCommand(flags), platform.NewDoctorCommand(flags), platform.NewRetireCommand(flags),
		platform.NewRenewCertificateCommand(flags), ledgers.NewLedgerCommand(), newVersionCommand())
	root.AddCommand(newOptionsCommand(), newReferenceCommand(), ledgers.NewKeepCommand())
	root.SetUsageTemplate(usageTemplate)
	forEachCommand(root, func(command *cobra.Command) {
		command.Example = strings.ReplaceAll(command.Example, "  assay ", "  "+cli.Program+" ")
		if command.Runnable() {
			command.Args = cli.ValidateArgs(command.Args)
		}
	})
	addHelpOfAll(root)
	return root
}

func forEachCommand(command *cobra.Command, visit func(*cobra.Command)) {
	visit(command)
	for _, child := range command.Commands() {
		forEachCommand(child, visit)
	}
}
