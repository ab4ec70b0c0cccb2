// Package pullrequest has the commands of benchmarks that a comment on a pull request asks for: one decides, one executes without rights,
// and one publishes the results of the second.
package pullrequest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ondemand"
	"assay.dev/assay/operator/internal/report"
)

// decisionVariable holds the decision in the jobs after the first. A command line would be visible to all users.
const decisionVariable = "ASSAY_DECISION"

// NewPullRequestCommand returns the command assay pr.
func NewPullRequestCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "pr",
		Short: "Benchmark a pull request on request of a comment, in the jobs of a workflow",
		Long: "Benchmark a pull request on request of a comment, in three jobs of a workflow of the default branch: decide reads the comment " +
			"and " +
			"the permission of its author, execute builds and measures without a token in a sandbox, and publish computes the result " +
			"again from the ledger. The policy is " + ondemand.PolicyPath + ".",
	}
	command.AddCommand(newDecideCommand(), newExecuteCommand(), newPublishCommand())
	return command
}

// decision returns the decision that an earlier job passed on.
func decision() (*ondemand.Decision, error) {
	text := os.Getenv(decisionVariable)
	if text == "" {
		return nil, cli.UsageError(errors.New(decisionVariable + " is empty: give the step the output decision of the job with assay pr decide"))
	}
	out, err := ondemand.ParseDecision(text)
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("%s: %w", decisionVariable, err))
	}
	return out, nil
}

// question is the run of a decision, frozen, with the names of its arms.
type question struct {
	file       *runs.RunFile
	frozen     *experiment.Experiment
	base, head string
}

// freeze reads the run file of a decision. Templates are those of the file and the shipped ones. If the decision has a digest, the
// experiment has it too.
func freeze(d *ondemand.Decision) (*question, error) {
	folder, err := os.MkdirTemp("", "assay-run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	name := filepath.Join(folder, filepath.Base(d.RunPath))
	if err := os.WriteFile(name, []byte(d.RunFile), 0o600); err != nil {
		return nil, err
	}
	// The error names the file of the repository, and not the copy.
	named := func(err error) error { return errors.New(strings.ReplaceAll(err.Error(), name, d.RunPath)) }
	set, err := cli.ReadManifest(name)
	if err != nil {
		return nil, named(err)
	}
	if err := set.AddShipped(); err != nil {
		return nil, err
	}
	run := &set.Runs[0]
	template, err := set.Template(run)
	if err != nil {
		return nil, named(err)
	}
	out := &question{file: &runs.RunFile{
		Run: run, Template: template, UID: d.UID(), Explain: func(err error) error { return set.Explain(run, err) },
	}}
	if run.Name == "" {
		run.Name = d.Suite
	}
	if out.base, out.head, err = arms(run, d.RunPath); err != nil {
		return nil, err
	}
	if out.frozen, err = out.file.Freeze(); err != nil {
		return nil, named(err)
	}
	if d.Experiment != "" && out.frozen.Digest != d.Experiment {
		return nil, fmt.Errorf("the experiment of the decision is %s, and its run file gives %s: use the same version of assay in all jobs",
			d.Experiment, out.frozen.Digest)
	}
	return out, nil
}

// arms returns the names of the baseline and of the candidate.
func arms(run *assayv1alpha1.BenchmarkRun, path string) (base, head string, err error) {
	for i := range run.Spec.Arms {
		if arm := &run.Spec.Arms[i]; arm.Baseline && base == "" {
			base = arm.Name
		} else if head == "" {
			head = arm.Name
		} else {
			base = ""
			break
		}
	}
	if base == "" || head == "" {
		return "", "", fmt.Errorf("invalid spec.arms in %s: one baseline, built from the merge base, and one candidate, built from the head, "+
			"are allowed", path)
	}
	return base, head, nil
}

// appendTo appends lines to a file of the job that the variable names; none without it.
func appendTo(variable, text string) error {
	file := os.Getenv(variable)
	if file == "" {
		return nil
	}
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return errors.Join(err, out.Close())
}

// quoted writes lines of others to the log of a job. GitHub executes lines that begin with :: (such as ::add-mask::), and a terminal
// control characters.
type quoted struct {
	to   io.Writer
	line []byte
}

// longestLine is the most bytes of a line.
const longestLine = 4096

func (q *quoted) Write(p []byte) (int, error) {
	q.line = append(q.line, p...)
	for {
		end := bytes.IndexAny(q.line, "\r\n")
		next := end + 1
		if end < 0 {
			if len(q.line) < longestLine {
				return len(p), nil
			}
			end, next = longestLine, longestLine
		}
		if err := q.print(q.line[:end]); err != nil {
			return 0, err
		}
		q.line = q.line[next:]
	}
}

func (q *quoted) print(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(q.to, "| %s\n", report.Printable(string(line)))
	return err
}

// Flush prints the line that has no end.
func (q *quoted) Flush() error {
	line := q.line
	q.line = nil
	return q.print(line)
}
