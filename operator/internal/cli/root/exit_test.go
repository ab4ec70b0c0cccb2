package root

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
)

// exitTable is exitCodes in Markdown.
func exitTable() string {
	var out strings.Builder
	out.WriteString("| exit code | commands that judge | any other command |\n|--:|---|---|\n")
	for _, row := range cli.ExitCodes {
		fmt.Fprintf(&out, "| %d | %s | %s |\n", row.Code, row.Judging, row.Others)
	}
	return out.String()
}

func TestExitCodes_DocumentedInPages(t *testing.T) {
	for file, want := range map[string]string{
		"docs/tasks/gate-a-pull-request.md": exitTable(), "docs/reference/cli.md": wrapped(cli.ExitHelp(true)),
	} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", filepath.FromSlash(file)))
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s (%v) lacks\n%s", file, err, want)
		}
	}
}

// gateFile is a run on the simulated machine, changed.
func gateFile(t *testing.T, replace ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "gate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(replace...).Replace(string(raw))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func readGate(t *testing.T, file string) cli.GateAnswer {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out cli.GateAnswer
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGate_LocalExitCodeFollowsVerdict(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		replace []string
		args    []string
		code    int
		verdict assayv1alpha1.Verdict
		says    string
	}{
		"Go":                           {nil, nil, cli.ExitDone, assayv1alpha1.VerdictGo, "VERDICT  Go"},
		"NoGo":                         {[]string{`"0.9"`, `"0.7"`}, nil, cli.ExitNoGo, assayv1alpha1.VerdictNoGo, "the verdict is NoGo: gate worth-it of new"},
		"Inconclusive":                 {[]string{`"0.9"`, `"0.8"`}, nil, cli.ExitInconclusive, assayv1alpha1.VerdictInconclusive, "the verdict is Inconclusive"},
		"Inconclusive that is allowed": {[]string{`"0.9"`, `"0.8"`}, []string{"--allow-inconclusive"}, cli.ExitDone, assayv1alpha1.VerdictInconclusive, ""},
		"a name that is generated":     {[]string{"name: gate", "generateName: gate-"}, nil, cli.ExitDone, assayv1alpha1.VerdictGo, "VERDICT  Go"},
		"no name at all":               {[]string{"name: gate", "labels: {}"}, nil, cli.ExitUsage, "", "metadata.name is missing"},
		"no gate that decides":         {[]string{"op: RatioAtMost\n", "op: RatioAtMost\n    severity: Advisory\n"}, nil, cli.ExitInconclusive, "", "it has no blocking gates"},
		"a file that the API refuses":  {[]string{"RatioAtMost", "RatioAtMst"}, nil, cli.ExitUsage, "", ":20:"},
		"a run that makes no sense":    {[]string{"metric: latency", "metric: latncy"}, nil, cli.ExitUsage, "", `run.yaml:22:13: spec.gates[1].metric: the template has no metric "latncy"`},
		"a name":                       {nil, []string{"--name", "x"}, cli.ExitUsage, "", "cannot be combined with --local"},
		"a ledger that cannot be made": {nil, []string{"--out", filepath.Join(blocked, "ledger")}, cli.ExitError, "", "file"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.code == cli.ExitDone || tc.code == cli.ExitInconclusive {
				longForm(t, name)
			}
			file, folder := gateFile(t, tc.replace...), t.TempDir()
			answers := filepath.Join(folder, "gate.json")
			args := append([]string{"gate", "--local", file, "--bin-dir", simulated, "--pin=false", "--save", answers, "--out",
				filepath.Join(folder, "ledger")}, tc.args...)
			stdout, stderr, err := assay(t, args...)
			text := stdout
			if err != nil {
				text += err.Error()
			}
			if cli.ExitCode(err) != tc.code || !strings.Contains(text, tc.says) {
				t.Errorf("exit code %d, want %d with %q\n%s\n%s", cli.ExitCode(err), tc.code, tc.says, text, stderr)
			}
			answer := readGate(t, answers)
			if answer.ExitCode != tc.code || answer.Passed != (tc.code == cli.ExitDone) || answer.Verdict != tc.verdict || answer.File != file {
				t.Errorf("the answer is %+v", answer)
			}
			if tc.verdict == "" {
				return
			}
			if _, err := os.Stat(answer.Report); err != nil || !strings.Contains(stdout, answer.Report) {
				t.Errorf("where the report is: %v in %q\n%s", err, answer.Report, stdout)
			}
			if out, _, err := assay(t, "results", answers, "-o", "json"); err != nil ||
				!strings.Contains(out, `"verdict": "`+string(tc.verdict)+`"`) {
				t.Errorf("the answer leads to no results: %v", err)
			}
		})
	}
}

func TestRun_LocalExitCodeFollowsTable(t *testing.T) {
	for name, tc := range map[string]struct {
		replace []string
		code    int
	}{
		"a Go is an answer":               {nil, cli.ExitDone},
		"a NoGo is an answer":             {[]string{`"0.9"`, `"0.7"`}, cli.ExitDone},
		"Inconclusive is an answer":       {[]string{`"0.9"`, `"0.8"`}, cli.ExitDone},
		"a run that makes no sense fails": {[]string{"metric: latency", "metric: latncy"}, cli.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			longForm(t, name, "a run that makes no sense fails")
			_, stderr, err := assay(t, "run", "--local", gateFile(t, tc.replace...), "--bin-dir", simulated, "--pin=false", "--out",
				filepath.Join(t.TempDir(), "ledger"))
			if cli.ExitCode(err) != tc.code {
				t.Errorf("exit code %d (%v), want %d\n%s", cli.ExitCode(err), err, tc.code, stderr)
			}
		})
	}
}

// plan, run and gate reject a file with the same message, with file, line and column.
func TestCommands_InvalidRunReportsPosition(t *testing.T) {
	file := gateFile(t, "op: RatioAtMost\n    bound", "op: AtLeast\n    bound")
	want := file + ":20:3: " // Replaced below by the message of plan.
	for i, args := range [][]string{{"plan", file}, {"run", "--local", file}, {"gate", "--local", file}, {"plan", "-f", file, "--measure"}} {
		_, _, err := assay(t, args...)
		if err == nil || cli.ExitCode(err) != cli.ExitUsage {
			t.Fatalf("%v: %v", args, err)
		}
		if i == 0 {
			if want = err.Error(); !strings.HasPrefix(want, file+":22:") && !strings.HasPrefix(want, file+":23:") {
				t.Errorf("no line: %s", want)
			}
		}
		if err.Error() != want {
			t.Errorf("%v says\n%v\nand plan says\n%s", args, err, want)
		}
	}
}
