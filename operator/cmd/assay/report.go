package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

var reportForms = []string{"html", "csv", "json", "yaml", "parquet", "benchstat"}

func newReportCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	from := source{flags: flags}
	var output, format string
	var show bool
	command := &cobra.Command{
		Use:   "report NAME",
		Short: "Print, save or open the report of a run",
		Long: "Print, save or open the report of a run. " + sourceHelp + "\n\n" +
			"The HTML report is one file that needs no network: it can be sent to anybody. --open shows it in a browser.",
		Example: "  assay report my-run --open\n  assay report my-run -o my-run.html\n  assay report out/quickstart --format md\n  " +
			"assay report my-run -o attempts.parquet",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: completeRunsOrFolders(flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			own, others := "md", reportForms
			if show {
				own, others = "html", nil
			}
			to, err := whereTo(output, format, own, others...)
			if err != nil {
				return err
			}
			if !show {
				return deliver(cmd.Context(), &from, args[0], to, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return openReport(cmd.Context(), &from, args[0], to, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addDestination(command, &output, &format, "md", reportForms...)
	command.Flags().BoolVar(&show, "open", false, "open the HTML report in a browser: $BROWSER, or the system's own")
	from.addFlags(command)
	return command
}

// openReport shows the report in a browser, from the file named or from a temporary one, which has to stay: a browser reads
// it after this program has ended.
func openReport(ctx context.Context, from *source, where string, to destination, stdout, stderr io.Writer) error {
	if to.file == "" {
		folder, err := os.MkdirTemp("", "assay-report-")
		if err != nil {
			return err
		}
		to.file = filepath.Join(folder, "report.html")
	}
	if err := deliver(ctx, from, where, to, stdout, stderr); err != nil {
		return err
	}
	command, err := browser(to.file)
	if err != nil {
		return err
	}
	command.Stdout, command.Stderr = stderr, stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("open %s with %s: %w; open it yourself", to.file, command.Path, err)
	}
	return nil
}

// browser is the program that opens a file.
func browser(file string) (*exec.Cmd, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	switch name := os.Getenv("BROWSER"); {
	case name != "":
		return exec.Command(name, file), nil
	case runtime.GOOS == "darwin":
		return exec.Command("open", file), nil
	case runtime.GOOS == "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", file), nil
	}
	opener, err := exec.LookPath("xdg-open")
	if err != nil {
		return nil, fmt.Errorf("no browser found: open %s yourself, or name a program in $BROWSER", file)
	}
	return exec.Command(opener, file), nil
}
