package results

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"assay.dev/assay/operator/internal/cli"
)

var reportForms = append([]string{"md", "html", "csv", "json", "yaml", "parquet", "benchstat"}, ciForms...)

func NewReportCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	from := cli.Source{Flags: flags}
	var output, format, file string
	var show, publish bool
	command := &cobra.Command{
		Use:   "report NAME",
		Short: "Print, save, open or publish the report of a run",
		Long: "Print, save, open or publish the report of a run. " + cli.SourceHelp + "\n\n" +
			"The HTML report is one file that needs no network: it can be sent to anybody. --open shows it in a browser.\n\n" +
			"For pipelines: github is a summary in Markdown, gitlab a Code Quality report, junit JUnit XML, badge a picture of the verdict, and " +
			"shields what shields.io draws one from. In a job of GitHub Actions --publish adds the summary to the job's, " +
			"annotates the run's file, " +
			"and keeps one comment on the pull request and one check of the commit up to date, with the token in GITHUB_TOKEN; the job needs the " +
			"permissions pull-requests: write and checks: write. The verdict does not change the exit code: assay gate's does.",
		Example: "  assay report my-run --open\n  assay report my-run -o my-run.html\n  assay report out/quickstart --format md\n  " +
			"assay report my-run -o attempts.parquet\n  assay report gate.json --publish\n  assay report gate.json -o junit.xml",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteRunsOrFolders(flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			forms := reportForms
			switch {
			case show && publish:
				return cli.UsageError(errors.New("--open and --publish contradict each other: use one of them"))
			case show:
				forms = []string{"html"}
			case publish:
				forms = []string{"github"}
			}
			to, err := cli.ParseDestination(output, format, forms...)
			if err != nil {
				return err
			}
			switch {
			case show:
				return openReport(cmd.Context(), &from, args[0], to, cmd.OutOrStdout(), cmd.ErrOrStderr())
			case ciWriters[to.Form] != nil:
				result, err := resultOf(cmd.Context(), &from, args[0], file)
				if err != nil {
					return err
				}
				if publish {
					err = publishResult(cmd.Context(), result, cmd.OutOrStdout())
				}
				if publish && to.File == "" || err != nil {
					return err
				}
				raw, err := ciWriters[to.Form](result)
				if err != nil {
					return err
				}
				return to.Write(cmd.OutOrStdout(), cmd.ErrOrStderr(), raw)
			default:
				return writeResult(cmd.Context(), &from, args[0], to, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
		},
	}
	cli.AddDestination(command, &output, &format, reportForms...)
	command.Flags().BoolVar(&show, "open", false, "open the HTML report in a browser: $BROWSER, or the system's own")
	command.Flags().BoolVar(&publish, "publish", false, "in a job of GitHub Actions: publish the result there")
	command.Flags().StringVar(&file, "file", "",
		"the run's file as the repository has it, whose lines github and gitlab point at (default: the one that assay gate had)")
	from.AddFlags(command)
	return command
}

// openReport shows the report in a browser, from the file named or from a temporary one, which has to stay: a browser reads
// it after this program has ended.
func openReport(ctx context.Context, from *cli.Source, where string, to cli.Destination, stdout, stderr io.Writer) error {
	if to.File == "" {
		folder, err := os.MkdirTemp("", "assay-report-")
		if err != nil {
			return err
		}
		to.File = filepath.Join(folder, "report.html")
	}
	if err := writeResult(ctx, from, where, to, stdout, stderr); err != nil {
		return err
	}
	command, err := browser(to.File)
	if err != nil {
		return err
	}
	command.Stdout, command.Stderr = stderr, stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("open %s with %s: %w; open it yourself", to.File, command.Path, err)
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
