package results

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
	"strings"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/github"
	"assay.dev/assay/operator/internal/report/ci"
)

// ciForms are the forms that forges and build servers take, and ciWriters write a result in each.
var ciForms = []string{"github", "gitlab", "junit", "badge", "shields"}

var ciWriters = map[string]func(*ci.Result) ([]byte, error){
	"github":  func(result *ci.Result) ([]byte, error) { return []byte(result.Markdown()), nil },
	"gitlab":  (*ci.Result).CodeQuality,
	"junit":   (*ci.Result).JUnit,
	"badge":   func(result *ci.Result) ([]byte, error) { return result.Badge(), nil },
	"shields": (*ci.Result).Shields,
}

// resultOf is how a run ended. Of the answer of a gate, that gate says whether it passed, and a run that failed has a result too.
func resultOf(ctx context.Context, s *cli.Source, where, file string) (*ci.Result, error) {
	var answer *cli.GateAnswer
	shown := file
	if cli.IsGateAnswer(where) {
		var err error
		if answer, err = cli.ReadGateAnswer(where); err != nil {
			return nil, err
		}
		if file == "" && answer.File != "" {
			file, shown = answer.File, repositoryPath(answer.File)
		}
	}
	var out *ci.Result
	if answer != nil && answer.Verdict == "" && answer.Ledger == "" && answer.Reason != "" {
		out = ci.Failed(cmp.Or(answer.Title, answer.Name, answer.File, "assay"), answer.Reason)
	} else {
		result, err := s.Open(ctx, where)
		if err != nil {
			return nil, err
		}
		out = ci.From(result.Experiment.Run.Name, result.Experiment, result.Analysis)
		if answer != nil {
			out.Title, out.Passed, out.Report = cmp.Or(answer.Title, out.Title), answer.Passed, answer.Report
			out.Verdict = cmp.Or(experiment.Verdict(answer.Verdict), out.Verdict)
		}
	}
	if file != "" && file != "-" {
		out.File, out.Lines = filepath.ToSlash(filepath.Clean(shown)), gateLines(file)
		// A file that was refused says where by itself.
		for _, match := range problemLine.FindAllStringSubmatch(out.Sentence, -1) {
			if line, err := strconv.Atoi(match[2]); err == nil && filepath.Clean(match[1]) == filepath.Clean(file) && out.Lines[""] == 0 {
				out.Lines[""] = line
			}
		}
	}
	return out, nil
}

// repositoryPath is a file as its repository has it, which is what a forge links to: below the nearest folder with a .git, else below the
// working directory. A file in neither stays as it was named.
func repositoryPath(file string) string {
	whole, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	root := filepath.Dir(whole)
	for {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			break
		}
		above := filepath.Dir(root)
		if above == root {
			if root, err = os.Getwd(); err != nil {
				return file
			}
			break
		}
		root = above
	}
	below, err := filepath.Rel(root, whole)
	if err != nil || !filepath.IsLocal(below) {
		return file
	}
	return below
}

// problemLine begins a problem of a file.
var problemLine = regexp.MustCompile(`(?m)^(.+?):(\d+):\d+: `)

// gateLines are the lines of the gates of a run's file; none of a file that cannot be read, which the gate has refused.
func gateLines(file string) map[string]int {
	out := map[string]int{}
	set, err := cli.ReadManifest(file)
	if err != nil {
		return out
	}
	run := &set.Runs[0]
	for i, gate := range run.Spec.Gates {
		out[gate.Name] = set.Line(run, fmt.Sprintf("spec.gates[%d]", i))
	}
	return out
}

// publishResult shows a result in the job of GitHub Actions that this program runs in, on its pull request and at its commit.
func publishResult(ctx context.Context, result *ci.Result, stdout io.Writer) error {
	place, err := github.FromEnvironment(os.Getenv, os.ReadFile)
	if err != nil {
		return cli.UsageError(err)
	}
	client, err := github.New(place, os.Getenv("GITHUB_TOKEN"))
	if err != nil {
		return cli.UsageError(err)
	}
	markdown := result.Markdown()
	if _, err := io.WriteString(stdout, result.Commands()); err != nil {
		return err
	}
	if err := appendTo(os.Getenv("GITHUB_STEP_SUMMARY"), markdown+"\n"); err != nil {
		return err
	}
	outputs := fmt.Sprintf("verdict=%s\npassed=%t\n", result.Word(), result.Passed)
	if err := appendTo(os.Getenv("GITHUB_OUTPUT"), outputs); err != nil {
		return err
	}
	check := github.Check{
		Name: "assay: " + result.Key(), Conclusion: conclusion(result), Title: result.Word(), Summary: markdown, Details: result.Report,
		Path: result.File,
	}
	for _, a := range result.Annotations() {
		check.Annotations = append(check.Annotations, github.Annotation(a))
	}
	errs := []error{client.Check(ctx, check)}
	if place.PullRequest != 0 {
		errs = append(errs, client.Comment(ctx, result.Marker(), result.Marker()+"\n"+markdown))
	}
	for i, err := range errs {
		// What a fork's pull request starts may only read. Its gate decides all the same, and the summary of the job has the report.
		if errors.Is(err, github.ErrForbidden) {
			errs[i] = nil
			fmt.Fprintf(stdout, "::warning title=assay::%s\n", strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(err.Error()))
		}
	}
	return errors.Join(errs...)
}

// conclusion is the check's: neutral is for what passes without being Go.
func conclusion(result *ci.Result) string {
	switch {
	case !result.Passed:
		return "failure"
	case result.Verdict == experiment.VerdictGo:
		return "success"
	default:
		return "neutral"
	}
}

// appendTo adds to a file that the runner gives a job, and does nothing where it gives none.
func appendTo(file, text string) error {
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
