// Command assay plans, runs, watches and judges benchmark runs, with or without a cluster. Installed as kubectl-assay it
// is a kubectl plugin.
package main

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

	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/suggest"
)

//go:generate go run . reference --to ../../../docs/reference/cli.md

// version is set when the program is built.
var version = "unreleased"

// programVersion is the version that the program reports.
var programVersion = "unreleased"

// program is the name that users type to start the program, assay or the kubectl plugin.
var program = "assay"

// completing is the name under which kubectl asks a plugin to complete a word.
const completing = "kubectl_complete-assay"

func main() { os.Exit(run(version)) }

// run executes the command in the arguments of the process and returns its exit code.
func run(version string) int {
	programVersion = version
	args := os.Args[1:]
	switch name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"); {
	case name == completing:
		program, args = "kubectl assay", append([]string{cobra.ShellCompRequestCmd}, args...)
	case strings.HasPrefix(name, "kubectl-"):
		program = "kubectl assay"
	}
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	log.SetLogger(logr.Discard()) // What the client has to say is in its errors.
	root := newRootCommand()
	root.SetArgs(args)
	if err := execute(ctx, root); err != nil {
		fmt.Fprintln(os.Stderr, report.PrintableLines(program+": "+err.Error()))
		return exitCodeOf(err)
	}
	return exitDone
}

// execute runs the command that the words name. Words that name none are wrong, also where Cobra prints the help of what is above.
func execute(ctx context.Context, root *cobra.Command) error {
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
	if _, coded := errors.AsType[*exitCode](err); err == nil || coded {
		return err
	}
	return usageError(err)
}

// stopSignals end a command in good order. A terminal that is closed does too, unless nohup says otherwise.
func stopSignals() []os.Signal {
	out := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		out = append(out, syscall.SIGHUP)
	}
	return out
}

// Groups of commands in the help.
const (
	experiments  = "experiments"
	answers      = "answers"
	installation = "installation"
)

func newRootCommand() *cobra.Command {
	cobra.EnableCommandSorting = false // The order in which people need them says more than the alphabet.
	root := &cobra.Command{
		Use:   "assay",
		Short: "Benchmark verdicts you can trust",
		Long: "assay runs an experiment that is written as a BenchmarkRun, on a cluster or on this machine, and reports its verdict.\n\n" +
			exitHelp(false) + " Of assay gate: 0 only if the verdict is Go, 4 if it is NoGo.\n\n" +
			"A cluster is found as kubectl finds it: --kubeconfig, $KUBECONFIG or ~/.kube/config, and -n for the namespace. Colours are for " +
			"terminals, and off with NO_COLOR.",
		Example: "  assay run --local workflows/studies/pir-batch-scan/run.yaml\n" +
			"  assay run run.yaml --watch\n  assay gate my-run --wait 1h\n  assay report my-run --open",
		Version:       programVersion,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: program},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateRequiredFlags(); err != nil {
				return usageError(err)
			}
			return nil
		},
	}
	// Every cluster is described by the same flags; those that read nothing from one ignore them.
	flags := genericclioptions.NewConfigFlags(true)
	flags.AddFlags(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("namespace", fromCluster(flags, 0, namespaceCompletions))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if said, ok := errors.AsType[*exitCode](err); ok {
			return said
		}
		return usageError(err)
	})
	root.AddGroup(&cobra.Group{ID: experiments, Title: "Experiments:"}, &cobra.Group{ID: answers, Title: "Answers:"},
		&cobra.Group{ID: installation, Title: "Installation:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add(experiments, newBenchCommand(), newInitCommand(), newPlanCommand(flags), newRunCommand(flags), newGetCommand(flags),
		newWatchCommand(flags), newLogsCommand(flags), newCancelCommand(flags), newRecordCommand(flags))
	add(answers, newReportCommand(flags), newResultsCommand(flags), newCompareCommand(flags), newGateCommand(flags), newAnalyzeCommand(),
		newHistoryCommand(flags), newChangesCommand(flags), newSiteCommand(flags), newBisectCommand(flags))
	add(installation, newPreflightCommand(flags), newDoctorCommand(flags), newLedgerCommand(), newVersionCommand())
	root.AddCommand(newOptionsCommand(), newReferenceCommand(), newKeepCommand())
	root.SetUsageTemplate(usageTemplate)
	forEachCommand(root, func(command *cobra.Command) {
		command.Example = strings.ReplaceAll(command.Example, "  assay ", "  "+program+" ")
		if command.Runnable() {
			command.Args = usage(command.Args)
		}
	})
	return root
}

func forEachCommand(command *cobra.Command, visit func(*cobra.Command)) {
	visit(command)
	for _, child := range command.Commands() {
		forEachCommand(child, visit)
	}
}
