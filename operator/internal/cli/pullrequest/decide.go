package pullrequest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/github"
	"assay.dev/assay/operator/internal/ondemand"
	"assay.dev/assay/operator/internal/report"
)

func newDecideCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "decide",
		Short: "Decide whether the comment that started this job starts a benchmark",
		Long: "Decide whether the comment that started this job of GitHub Actions starts a benchmark, by the permission of its author, the " +
			"policy " +
			"of the default branch and the head that the author saw. The outputs of the step are action (run, cancel or none), decision for the " +
			"later jobs, group for the concurrency of the job that executes, and cancel. A refusal is no failure of the job; it is answered on " +
			"the pull request only to people with write access.\n\n" +
			"A comment is: " + ondemand.Grammar + ".",
		Example: "  assay pr decide",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return decide(cmd.Context(), time.Now(), cmd.OutOrStdout())
		},
	}
}

func decide(ctx context.Context, now time.Time, stdout io.Writer) error {
	facts, err := github.Request(os.Getenv, os.ReadFile, now)
	if err != nil {
		return cli.UsageError(err)
	}
	made, err := decideOn(ctx, facts)
	refusal, refused := errors.AsType[*ondemand.Refusal](err)
	if err != nil && !refused {
		return err
	}
	if refused {
		reason := report.Printable(refusal.Error())
		fmt.Fprintf(stdout, "no benchmark: %s\n", reason)
		if err := errors.Join(appendTo("GITHUB_OUTPUT", "action=none\n"),
			appendTo("GITHUB_STEP_SUMMARY", report.Escape(reason)+"\n")); err != nil {
			return err
		}
		if refusal.Answer {
			return answer(ctx, facts, refusal)
		}
		return nil
	}
	text, err := made.Encode()
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s %s of commit %s\n", made.Action, cmp.Or(made.Suite, "requests"), cmp.Or(made.Head, "any"))
	if err := appendTo("GITHUB_OUTPUT", fmt.Sprintf("action=%s\ngroup=assay-bench-%d\ncancel=%t\ndecision=%s\n", made.Action, made.PullRequest,
		made.Second == ondemand.CancelPrevious, text)); err != nil {
		return err
	}
	if made.Action == ondemand.ActionCancel {
		return nil
	}
	return publishComment(ctx, made, fmt.Sprintf("The benchmark waits for a runner, or [runs](<%s>). "+
		"Further requests of this pull request: %s.\n",
		runPage(made), map[string]string{ondemand.Queue: "wait for it", ondemand.CancelPrevious: "cancel it"}[made.Second]))
}

// decideOn completes the facts and decides.
func decideOn(ctx context.Context, facts *ondemand.Facts) (*ondemand.Decision, error) {
	// Nothing is asked for comments that are no requests.
	if err := facts.Relevant(); err != nil {
		return nil, &ondemand.Refusal{Err: err}
	}
	place, err := github.PlaceOf(os.Getenv, facts.Repository, "", facts.Comment.PullRequest)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	client, err := github.New(place, os.Getenv("GITHUB_TOKEN"))
	if err != nil {
		return nil, cli.UsageError(err)
	}
	if err := client.Learn(ctx, facts); err != nil {
		return nil, err
	}
	made, err := ondemand.Decide(facts)
	if err != nil || made.Action != ondemand.ActionRun {
		return made, err
	}
	asked, err := freeze(made)
	if err != nil {
		return nil, &ondemand.Refusal{Answer: true, Err: err}
	}
	made.Experiment = asked.frozen.Digest
	return made, nil
}

// answer tells the author why no benchmark starts, in one comment for all refusals of a pull request.
func answer(ctx context.Context, facts *ondemand.Facts, refusal *ondemand.Refusal) error {
	place, err := github.PlaceOf(os.Getenv, facts.Repository, "", facts.Comment.PullRequest)
	if err != nil {
		return err
	}
	client, err := github.New(place, os.Getenv("GITHUB_TOKEN"))
	if err != nil {
		return err
	}
	const marker = "<!-- assay-bench: refused -->"
	return client.Comment(ctx, marker, fmt.Sprintf("%s\nNo benchmark for %s: %s\n", marker, inert(facts.Comment.Author.Login),
		inert(refusal.Error())))
}

// inert is text of others in a comment: no Markdown, no mention and no HTML.
func inert(text string) string {
	return strings.ReplaceAll(report.Escape(report.Printable(text)), "@", "@\u200b")
}
