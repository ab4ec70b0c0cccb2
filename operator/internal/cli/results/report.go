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
			"The HTML report is a self-contained file. --open shows it in a browser.\n\n" +
			"For pipelines: github is a summary in Markdown, gitlab a Code Quality report, junit JUnit XML, badge an SVG badge, and " +
			"shields an endpoint of shields.io. In a job of GitHub Actions --publish adds the summary to the job, annotates the run's file, " +
			"and updates one comment on the pull request and one check of the commit with the token in GITHUB_TOKEN. The job needs the " +
			"permissions pull-requests: write and checks: write. The exit code does not depend on the verdict; use assay gate for that.",
		Example: "  assay report my-run --open\n  assay report my-run -o my-run.html\n  assay report out/quickstart --format md\n  " +
			"assay report my-run -o attempts.parquet\n  assay report gate.json --publish\n  assay report gate.json -o junit.xml",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteRunsOrFolders(flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			forms := reportForms
			switch {
			case show && publish:
				return cli.UsageError(errors.New("--open and --publish are mutually exclusive"))
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
	command.Flags().BoolVar(&show, "open", false, "open the HTML report in $BROWSER or the default browser")
	command.Flags().BoolVar(&publish, "publish", false, "publish the result from a job of GitHub Actions")
	command.Flags().StringVar(&file, "file", "",
		"path of the run's file in the repository, for annotations (default: the file given to assay gate)")
	from.AddFlags(command)
	return command
}

// openReport shows the report in a browser, from the named file or a temporary one. The temporary file is not removed, because the browser
// may read it later.
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
		return fmt.Errorf("open %s with %s: %w", to.File, command.Path, err)
	}
	return nil
}

// browser returns the command that opens a file.
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
		return nil, fmt.Errorf("no browser found; open %s, or set $BROWSER", file)
	}
	return exec.Command(opener, file), nil
}
