package pullrequest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/github"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/ondemand"
	"assay.dev/assay/operator/internal/recompute"
	"assay.dev/assay/operator/internal/report/ci"
	"assay.dev/assay/operator/internal/store"
)

type publishOptions struct{ left, report, result string }

func newPublishCommand() *cobra.Command {
	var options publishOptions
	command := &cobra.Command{
		Use:   "publish --left FOLDER",
		Short: "Check the files of assay pr execute, and publish its result at the pull request",
		Long: "Check the files of assay pr execute, and publish its result at the pull request, in one comment and one check of the head. The " +
			"job that " +
			"executed may have written anything: the ledger is read within limits, has to be of the experiment, the commits and the request of " +
			"the " +
			"decision in " + decisionVariable + ", and the verdict is computed from its attempts. A stored analysis is not read. The token is " +
			"read from GITHUB_TOKEN; it needs pull-requests: write and checks: write.",
		Example: "  assay pr publish --left left --report report.html --result \"$RESULT\"",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := decision()
			if err != nil {
				return err
			}
			return publish(cmd.Context(), made, options, cmd.OutOrStdout())
		},
	}
	command.Flags().StringVar(&options.left, "left", "", "folder with the archive that assay pr execute wrote, and nothing else")
	command.Flags().StringVar(&options.report, "report", "", "file for the HTML report, which the job keeps as an artifact")
	command.Flags().StringVar(&options.result, "result", "success", "result of the job that executed: success, failure, cancelled or skipped")
	_ = command.MarkFlagRequired("left")
	return command
}

func publish(ctx context.Context, made *ondemand.Decision, options publishOptions, stdout io.Writer) error {
	var result *ci.Result
	switch options.result {
	case "success":
		analyzed, err := readLeft(ctx, made, options.left)
		if err != nil {
			result = ci.Failed("bench "+made.Suite, "the files of the benchmark are refused: "+err.Error())
			break
		}
		result = ci.From("bench "+made.Suite, analyzed.Experiment, analyzed.Analysis)
		if options.report != "" {
			if err := writeReport(analyzed, options.report); err != nil {
				return err
			}
		}
	case "failure":
		result = ci.Failed("bench "+made.Suite, "the build or the measurement failed: the log of the job has the reason")
	case "cancelled", "skipped":
		result = ci.Failed("bench "+made.Suite, "the request was cancelled")
	default:
		return cli.UsageError(fmt.Errorf("invalid --result %q: success, failure, cancelled and skipped are allowed", options.result))
	}
	result.Report = runPage(made)
	fmt.Fprintf(stdout, "%s of commit %s: %s\n", made.Suite, made.Head, result.Word())
	conclusion := "neutral"
	switch {
	case options.result == "cancelled" || options.result == "skipped":
	case result.Verdict == experiment.VerdictGo:
		conclusion = "success"
	case result.Verdict == experiment.VerdictNoGo || result.Word() == "failed":
		conclusion = "failure"
	}
	client, err := clientFor(made)
	if err != nil {
		return err
	}
	markdown := result.Markdown()
	err = client.Check(ctx, github.Check{
		Name: "assay: bench " + made.Suite, Conclusion: conclusion, Title: result.Word(), Summary: markdown, Details: result.Report,
	})
	return errors.Join(err, publishComment(ctx, made, markdown), appendTo("GITHUB_STEP_SUMMARY", markdown+"\n"))
}

// archiveName is the only file that the job that executes leaves.
const archiveName = "ledger" + store.ArchiveExtension

// maxArchive is the most bytes of it.
const maxArchive = 64 << 20

// readLeft analyzes the ledger in a folder that code of the pull request may have written. Archives are read in memory and never unpacked,
// so that names in them reach no file.
func readLeft(ctx context.Context, made *ondemand.Decision, folder string) (*recompute.Analyzed, error) {
	asked, err := freeze(made)
	if err != nil {
		return nil, err
	}
	there, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	if len(there) != 1 || there[0].Name() != archiveName {
		return nil, fmt.Errorf("the folder has %d entries: %s alone is expected", len(there), archiveName)
	}
	file := filepath.Join(folder, archiveName)
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxArchive {
		return nil, fmt.Errorf("%s is of type %s with %d bytes: a file of at most %d is expected", archiveName, info.Mode().Type(), info.Size(),
			maxArchive)
	}
	s, err := store.OpenFolder(ctx, file)
	if err != nil {
		return nil, err
	}
	frozen, err := ledger.ReadExperiment(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("the experiment: %w", err)
	}
	if frozen.Run != asked.frozen.Run || frozen.Digest != asked.frozen.Digest || frozen.Digest != made.Experiment {
		return nil, fmt.Errorf("the ledger is of run %s and experiment %s: run %s and experiment %s were asked for", frozen.Run.UID,
			frozen.Digest,
			asked.frozen.Run.UID, asked.frozen.Digest)
	}
	wave, err := ledger.LastWave(ctx, s)
	if err != nil {
		return nil, err
	}
	return recompute.Ledger(ctx, s, wave)
}

// writeReport writes the HTML report of an analysis.
func writeReport(of *recompute.Analyzed, file string) error {
	objects, err := of.Objects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.Key == ledger.HTMLKey(of.Analysis.Wave) {
			_, err := cli.WriteFileAtomically(file, object.Data, 0o644)
			return err
		}
	}
	return fmt.Errorf("the analysis of wave %d has no report", of.Analysis.Wave)
}

func clientFor(made *ondemand.Decision) (*github.Client, error) {
	place, err := github.PlaceOf(os.Getenv, made.Repository, made.Head, made.PullRequest)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	client, err := github.New(place, os.Getenv("GITHUB_TOKEN"))
	if err != nil {
		return nil, cli.UsageError(err)
	}
	return client, nil
}

// runPage is the page of the workflow run, with the report among its artifacts.
func runPage(made *ondemand.Decision) string {
	server := cmp.Or(os.Getenv("GITHUB_SERVER_URL"), "https://github.com")
	return fmt.Sprintf("%s/%s/actions/runs/%d/attempts/%d#artifacts", server, made.Repository, made.Run, made.Attempt)
}

// request matches the request that a comment is of.
var request = regexp.MustCompile(`^<!-- assay-bench: [0-9a-f]{40} -->\n<!-- request ([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,9}) -->\n`)

// publishComment writes the comment of a head. That of a newer request of the same head stays.
func publishComment(ctx context.Context, made *ondemand.Decision, text string) error {
	client, err := clientFor(made)
	if err != nil {
		return err
	}
	marker := fmt.Sprintf("<!-- assay-bench: %s -->", made.Head)
	body := fmt.Sprintf("%s\n<!-- request %d %d %d -->\n`/bench %s` of %s: commit %s against its merge base %s, at most %s.\n\n%s", marker,
		made.Comment, made.Run, made.Attempt, made.Suite, inert(made.Person), made.Head, made.MergeBase, made.Budget, text)
	return client.CommentUnless(ctx, marker, body, func(old string) bool {
		found := request.FindStringSubmatch(old)
		if found == nil {
			return false
		}
		comment, err := strconv.ParseInt(found[1], 10, 64)
		run, err2 := strconv.ParseInt(found[2], 10, 64)
		attempt, err3 := strconv.Atoi(found[3])
		return errors.Join(err, err2, err3) == nil && made.Newer(comment, run, attempt)
	})
}
