package root

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/cli"
)

// action is the composite action, with the fields that this test uses.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Using string
		Steps []struct {
			Name, ID, Run, Shell, Uses string
			Env                        map[string]string
		}
	}
}

func readAction(t *testing.T) action {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "action.yml"))
	var out action
	if err == nil {
		err = yaml.Unmarshal(raw, &out)
	}
	if err != nil || out.Runs.Using != "composite" || len(out.Runs.Steps) == 0 {
		t.Fatalf("%v in %+v", err, out)
	}
	return out
}

// Steps run commands of the CLI. Expressions never reach a shell as text, because pull requests choose file names.
func TestAction_StepsAreCommands(t *testing.T) {
	control := regexp.MustCompile(`\b(if|then|else|case|for|while|test)\b|\[\[|&&|\|\||\$\{\{`)
	for _, step := range readAction(t).Runs.Steps {
		if got := control.FindString(step.Run); got != "" {
			t.Errorf("step %q decides something itself: %q", step.Name, got)
		}
		if step.Name != "Install assay" && !strings.Contains(step.Run, "assay ") {
			t.Errorf("step %q is no command of the CLI", step.Name)
		}
	}
}

// forge is a GitHub server that records requests; internal/github has a more complete one.
type forge struct {
	comments, checks []map[string]any
	*httptest.Server
}

func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{}
	read := func(r *http.Request) map[string]any {
		out := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
			t.Error(err)
		}
		return out
	}
	write := func(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/o/r/issues/7/comments", func(w http.ResponseWriter, _ *http.Request) { write(w, f.comments) })
	mux.HandleFunc("POST /repos/o/r/issues/7/comments", func(w http.ResponseWriter, r *http.Request) {
		comment := read(r)
		comment["id"], comment["user"] = len(f.comments), map[string]any{"login": "github-actions[bot]", "type": "Bot"}
		f.comments = append(f.comments, comment)
		write(w, comment)
	})
	mux.HandleFunc("PATCH /repos/o/r/issues/comments/0", func(w http.ResponseWriter, r *http.Request) {
		f.comments[0]["body"] = read(r)["body"]
		write(w, f.comments[0])
	})
	mux.HandleFunc("GET /repos/o/r/commits/head/check-runs", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"total_count": 0, "check_runs": []any{}})
	})
	mux.HandleFunc("POST /repos/o/r/check-runs", func(w http.ResponseWriter, r *http.Request) {
		f.checks = append(f.checks, read(r))
		write(w, f.checks[len(f.checks)-1])
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// Every input is one word of a command, also with spaces in it.
func TestAction_InputsAreQuoted(t *testing.T) {
	unquoted := regexp.MustCompile(`"[^"]*"|\$\{[A-Z_]+:\+"[^"]*"\}`)
	for _, step := range readAction(t).Runs.Steps {
		if rest := unquoted.ReplaceAllString(step.Run, ""); strings.Contains(rest, "$") {
			t.Errorf("step %q has a variable outside of quotes: %s", step.Name, rest)
		}
	}
}

// runStep runs a step as GitHub does, with the inputs of a job, and returns its exit code.
func runStep(t *testing.T, run string, environment map[string]string) (code int, printed string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", run)
	command.Env = []string{"PATH=" + simulated + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for name, value := range environment {
		command.Env = append(command.Env, name+"="+value)
	}
	out, err := command.CombinedOutput()
	if exit, ended := errors.AsType[*exec.ExitError](err); ended {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}

// actionInputs are the values of inputs by their names, over the defaults.
func actionInputs(t *testing.T, given map[string]string) *strings.Replacer {
	t.Helper()
	values := map[string]string{"${{ inputs.local != 'true' }}": "false"}
	for name, input := range readAction(t).Inputs {
		values["${{ inputs."+name+" }}"] = input.Default
	}
	for name, value := range given {
		if input := "${{ inputs." + name + " }}"; name != "runner.temp" {
			values[input] = value
		}
	}
	values["${{ runner.temp }}"] = given["runner.temp"]
	var pairs []string
	for expression, value := range values {
		pairs = append(pairs, expression, value)
	}
	return strings.NewReplacer(pairs...)
}

// Words of an input that would be flags, or commands of the shell, are a part of one value.
func TestAction_WordsOfAnInputAreNoFlags(t *testing.T) {
	folder := t.TempDir()
	for input, value := range map[string]string{
		"wait": "1h --allow-inconclusive", "local": "true --allow-inconclusive", "allow-inconclusive": "false; touch pwned",
		"run": "none.yaml --save=pwned", "bin-dir": "/ --allow-inconclusive $(touch pwned)", "namespace": "a --allow-inconclusive",
	} {
		given := map[string]string{"run": "none.yaml", "runner.temp": folder}
		given[input] = value
		inputs := actionInputs(t, given)
		for _, step := range readAction(t).Runs.Steps {
			if step.ID != "gate" {
				continue
			}
			environment := map[string]string{"GITHUB_OUTPUT": filepath.Join(folder, "outputs")}
			for name, value := range step.Env {
				environment[name] = inputs.Replace(value)
			}
			// The program prints its arguments.
			code, printed := runStep(t, "cd '"+folder+"'\nassay() { printf '<%s>\n' \"$@\"; }\n"+step.Run, environment)
			if code != 0 || strings.Contains(printed, "<--allow-inconclusive>") || strings.Contains(printed, "<--save=pwned>") ||
				!strings.Contains(printed, value+">") {
				t.Errorf("%s=%q: exit code %d\n%s", input, value, code, printed)
			}
			if _, err := os.Stat(filepath.Join(folder, "pwned")); err == nil {
				t.Errorf("%s=%q was executed", input, value)
			}
		}
	}
}

// TestAction_GatesAndPublishes runs the steps of the action, but for the one that installs, as a job would.
func TestAction_GatesAndPublishes(t *testing.T) {
	longForm(t, "")
	forge, folder := newForge(t), t.TempDir()
	event, summary, outputs := filepath.Join(folder, "event.json"), filepath.Join(folder, "summary.md"), filepath.Join(folder, "outputs")
	if err := os.WriteFile(event, []byte(`{"pull_request": {"number": 7, "head": {"sha": "head"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "run.yaml")
	steps := func(content string) (codes []int, printed string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		inputs := actionInputs(t, map[string]string{"run": file, "bin-dir": simulated, "token": "ghs_secret", "runner.temp": folder})
		for _, step := range readAction(t).Runs.Steps {
			if step.Name == "Install assay" {
				continue
			}
			environment := map[string]string{
				"GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "merge", "GITHUB_API_URL": forge.URL, "GITHUB_EVENT_NAME": "pull_request",
				"GITHUB_EVENT_PATH": event, "GITHUB_STEP_SUMMARY": summary, "GITHUB_OUTPUT": outputs,
			}
			for name, value := range step.Env {
				environment[name] = inputs.Replace(value)
			}
			code, out := runStep(t, "cd '"+t.TempDir()+"'\n"+step.Run, environment)
			codes, printed = append(codes, code), printed+out
			if code != 0 && step.ID == "publish" {
				t.Fatalf("%s: %s", step.Name, out)
			}
		}
		return codes, printed
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "gate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	good := string(raw)
	for i, tc := range []struct {
		name, content   string
		code            int
		conclusion, has string
	}{
		{"a gate that is missed", strings.Replace(good, `"0.9"`, `"0.7"`, 1), cli.ExitNoGo, "failure", "gate: NoGo"},
		{"a file that is refused", strings.Replace(good, "metric: latency\n", "metric: latncy\n", 1), cli.ExitUsage, "failure", "the template has no metric"},
		{"a gate that holds", good, cli.ExitDone, "success", "gate: Go"},
	} {
		codes, printed := steps(tc.content)
		if len(codes) != 2 || codes[0] != tc.code || codes[1] != cli.ExitDone {
			t.Errorf("%s: exit codes %v", tc.name, codes)
		}
		if len(forge.comments) != 1 || !strings.Contains(fmt.Sprint(forge.comments[0]["body"]), tc.has) {
			t.Errorf("%s: comments %v", tc.name, forge.comments)
		}
		if len(forge.checks) != i+1 || forge.checks[i]["conclusion"] != tc.conclusion || forge.checks[i]["head_sha"] != "head" {
			t.Errorf("%s: checks %v", tc.name, forge.checks)
		}
		if annotated := strings.Contains(printed,
			"::error file="+strings.TrimPrefix(filepath.ToSlash(file), "")+",line=22,"); annotated != (tc.code != cli.ExitDone) &&
			!strings.Contains(printed, ",line=21,") {
			t.Errorf("%s: annotations\n%s", tc.name, printed)
		}
	}
	for path, want := range map[string]string{summary: "gate: Go", outputs: "verdict=Go\npassed=true\n"} {
		if raw, err := os.ReadFile(path); err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s lacks %q: %v\n%s", filepath.Base(path), want, err, raw)
		}
	}
}

func TestPublish_RequiresJobAndToken(t *testing.T) {
	folder := judgedLedger(t)
	for _, name := range []string{"GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_EVENT_PATH", "GITHUB_SHA"} {
		t.Setenv(name, "")
	}
	t.Setenv("GITHUB_EVENT_NAME", "push")
	if _, _, err := assay(t, "report", folder, "--publish"); err == nil || !strings.Contains(err.Error(), "GITHUB_REPOSITORY") ||
		cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("outside of a job: %v", err)
	}
	t.Setenv("GITHUB_REPOSITORY", "o/r")
	t.Setenv("GITHUB_SHA", "head")
	if _, _, err := assay(t, "report", folder, "--publish"); err == nil || !strings.Contains(err.Error(), "GITHUB_TOKEN is empty") {
		t.Errorf("without a token: %v", err)
	}
	command := New()
	report, _, err := command.Find([]string{"report"})
	if err != nil || report.Flags().Lookup("token") != nil {
		t.Errorf("a token on a command line is visible to all users: %v", err)
	}
}
