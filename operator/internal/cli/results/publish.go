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

// ciForms are the forms for forges and build servers, and ciWriters their renderers.
var ciForms = []string{"github", "gitlab", "junit", "badge", "shields"}

var ciWriters = map[string]func(*ci.Result) ([]byte, error){
	"github":  func(result *ci.Result) ([]byte, error) { return []byte(result.Markdown()), nil },
	"gitlab":  (*ci.Result).CodeQuality,
	"junit":   (*ci.Result).JUnit,
	"badge":   func(result *ci.Result) ([]byte, error) { return result.Badge(), nil },
	"shields": (*ci.Result).Shields,
}

// resultOf returns the result of a run for CI systems. For a gate answer, the answer determines whether the gate passed, and a failed run
// has a result as well.
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
		// Errors about an invalid file contain the position.
		for _, match := range problemLine.FindAllStringSubmatch(out.Sentence, -1) {
			if line, err := strconv.Atoi(match[2]); err == nil && filepath.Clean(match[1]) == filepath.Clean(file) && out.Lines[""] == 0 {
				out.Lines[""] = line
			}
		}
	}
	return out, nil
}

// repositoryPath returns the path of a file in its repository, which forges use for links: relative to the nearest folder with .git, else
// to the working directory. Files outside both are returned unchanged.
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

// problemLine matches the position at the beginning of a problem of a file.
var problemLine = regexp.MustCompile(`(?m)^(.+?):(\d+):\d+: `)

// gateLines returns the line numbers of the gates in a file, or an empty map if the file is invalid.
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

// publishResult publishes a result in the current job of GitHub Actions, on its pull request and at its commit.
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
		// Pull requests from forks have read-only tokens. The summary of the job still shows the report.
		if errors.Is(err, github.ErrForbidden) {
			errs[i] = nil
			fmt.Fprintf(stdout, "::warning title=assay::%s\n", strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(err.Error()))
		}
	}
	return errors.Join(errs...)
}

// conclusion returns the conclusion of the check. Accepted results other than Go are neutral.
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

// appendTo appends text to a file of the job. It does nothing if file is empty.
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
