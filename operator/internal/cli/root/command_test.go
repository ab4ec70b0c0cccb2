package root

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/spf13/cobra"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/export"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/test/clitest"
)

// assay runs a command as a person types it.
func assay(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	command := New()
	var out, log bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&log)
	command.SetArgs(args)
	err = Execute(t.Context(), command)
	return out.String(), log.String(), err
}

func TestHelp_AllPrintsTheHelpOfEveryCommand(t *testing.T) {
	out, _, err := assay(t, "help", "--all")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"## assay\n", "## assay bench\n", "## assay history rebuild\n", "--blocks", "--reports"} {
		if !strings.Contains(out, text) {
			t.Errorf("the help of all commands has no %q", text)
		}
	}
	if strings.Contains(out, "## assay reference") {
		t.Error("a hidden command has its help printed")
	}
	if one, _, err := assay(t, "help", "gate"); err != nil || !strings.Contains(one, "--wait") || strings.Contains(one, "--blocks") {
		t.Errorf("help of one command: %v\n%s", err, one)
	}
}

// judgedLedger is the hand-written ledger with its analysis.
func judgedLedger(t *testing.T) string {
	t.Helper()
	folder := clitest.HandwrittenLedger(t)
	if out, err := runAnalyze(t, "--ledger", store.FolderURL(folder), "--write"); err != nil {
		t.Fatal(err, out)
	}
	return folder
}

func TestHelp_EveryCommandDocumented(t *testing.T) {
	root := New()
	forEachCommand(root, func(command *cobra.Command) {
		if command.Hidden || command == root || command.Name() == "help" {
			return
		}
		name := command.CommandPath()
		if command.Short == "" || strings.HasSuffix(command.Short, ".") {
			t.Errorf("%s: short text %q", name, command.Short)
		}
		if !command.Runnable() || command.Name() == "options" || command.Name() == "version" {
			return
		}
		if command.Example == "" {
			t.Errorf("%s has no example", name)
		}
		for line := range strings.Lines(command.Example) {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: example %q is not indented", name, line)
			}
		}
		// The commands of a pull request hand their results to the next job.
		forJobs := strings.HasPrefix(name, "assay pr ")
		if command.Flags().Lookup("output") == nil && command.Name() != "analyze" && !forJobs {
			t.Errorf("%s has no --output", name)
		}
		if command.Flags().Lookup("context") == nil && command.InheritedFlags().Lookup("context") == nil {
			t.Errorf("%s lacks kubectl's flags", name)
		}
	})
}

func TestCommands_InvalidArgumentsAreUsageErrors(t *testing.T) {
	folder := judgedLedger(t)
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"an unknown command":                 {[]string{"gte", "my-run"}, `unknown command "gte" for "assay"`},
		"an unknown subcommand":              {[]string{"ledger", "crate-bucket"}, `unknown command "crate-bucket" for "assay ledger"`},
		"a flag that is missing":             {[]string{"ledger", "probe"}, `required flag(s) "ledger" not set`},
		"an unknown flag":                    {[]string{"get", "--al"}, "unknown flag: --al"},
		"an unknown form":                    {[]string{"get", "-o", "xml"}, `invalid --output "xml": allowed are table, wide, json, yaml, name`},
		"an invalid selector":                {[]string{"get", "-l", "=="}, "--selector"},
		"names and a selector":               {[]string{"get", "x", "-l", "a=b"}, "names cannot be combined"},
		"no name":                            {[]string{"watch"}, "Usage: assay watch NAME"},
		"too many names":                     {[]string{"cancel", "a", "b"}, "Usage: assay cancel NAME"},
		"no file":                            {[]string{"run"}, "no file given"},
		"a file twice":                       {[]string{"plan", "a", "-f", "b"}, "name a file"},
		"a file that is missing":             {[]string{"plan", "/no/such/file.yaml"}, "/no/such/file.yaml"},
		"gate of nothing":                    {[]string{"gate"}, "name either a run or, with -f, a file"},
		"gate of two things":                 {[]string{"gate", "x", "-f", "y"}, "name either a run or, with -f, a file"},
		"a local run that is followed":       {[]string{"run", "--local", "-w", "x.yaml"}, "cannot be combined with --local"},
		"a file of no known form":            {[]string{"report", folder, "-o", "report.pdf"}, `invalid --output "report.pdf"`},
		"a format of no known form":          {[]string{"report", folder, "--format", "pdf"}, `invalid --format "pdf"`},
		"two forms":                          {[]string{"results", folder, "-o", "json", "--format", "csv"}, "contradict"},
		"a folder that is no ledger":         {[]string{"results", t.TempDir()}, "is not the ledger of a run"},
		"an invalid URL":                     {[]string{"results", "ftp://x"}, "ftp"},
		"a table in a form it has not":       {[]string{"results", folder, "--table", "mine", "-o", "html"}, `invalid --output "html"`},
		"a report that is opened as a table": {[]string{"report", folder, "--open", "-o", "x.csv"}, "--output"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := assay(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.says) || cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("error %v with code %d, want one that says %q with code %d", err, cli.ExitCode(err), tc.says, cli.ExitUsage)
			}
		})
	}
}

func TestResults_EveryForm(t *testing.T) {
	folder := judgedLedger(t)
	for form, want := range map[string]string{
		"table": "verdict: Go, best: new", "md": "# ", "report": "# ", "html": "<!doctype html>", "csv": "arm,", "json": `"verdict": "Go"`,
		"yaml": "verdict: Go", "benchstat": "\nBenchmark", "attempts": `"schema":"assay.dev/attempt`, "parquet": "PAR1",
	} {
		t.Run(form, func(t *testing.T) {
			out, _, err := assay(t, "results", folder, "-o", form)
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("-o %s does not print %q (%v):\n%.300s", form, want, err, out)
			}
			url, _, err := assay(t, "results", store.FolderURL(folder), "-o", form)
			if err != nil || url != out {
				t.Errorf("the ledger's URL gives something else than its folder (%v)", err)
			}
		})
	}
}

func TestResults_ForeignObjectsOmitted(t *testing.T) {
	folder := judgedLedger(t)
	want, _, err := assay(t, "results", folder, "-o", "attempts")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "attempts", "beside.json"), []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, err := assay(t, "results", folder, "-o", "attempts"); err != nil || got != want {
		t.Errorf("%v: %d bytes, want %d", err, len(got), len(want))
	}
}

// Users with a key of the namespace can write an analysis. The CLI rejects the same analyses as the operator.
func TestResults_InvalidAnalysisRejected(t *testing.T) {
	for sentence, tc := range map[string]struct{ before, after, want string }{
		"an unknown verdict":            {`"verdict": "Go"`, `"verdict": "Certainly"`, `verdict is "Certainly"; allowed values are`},
		"a count below zero":            {`"used": `, `"used": -`, "a count is between 0 and"},
		"more room than the operator's": {`"verdict"`, `"padding": "` + strings.Repeat("x", 17<<20) + `", "verdict"`, "too large"},
	} {
		folder := judgedLedger(t)
		path := filepath.Join(folder, ledger.AnalysisKey(0))
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		spoilt := strings.Replace(string(raw), tc.before, tc.after, 1)
		if spoilt == string(raw) {
			t.Fatalf("%s: the analysis has no %s", sentence, tc.before)
		}
		if err := os.WriteFile(path, []byte(spoilt), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"results", folder}, {"results", folder, "-o", "json"}, {"report", folder}} {
			out, _, err := assay(t, command...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), ledger.AnalysisKey(0)) {
				t.Errorf("%s: assay %s: error %v, want one that says %q; it prints\n%.300s", sentence, command[0], err, tc.want, out)
			}
		}
	}
}

func TestResults_CustomTableByName(t *testing.T) {
	folder := judgedLedger(t)
	if _, _, err := assay(t, "results", folder, "--table", "mine"); err == nil ||
		!strings.Contains(err.Error(), "spec.report.tables is empty") {
		t.Errorf("a run without tables: %v", err)
	}
	path := filepath.Join(folder, ledger.ExperimentKey)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var frozen experiment.Experiment
	if err := json.Unmarshal(raw, &frozen); err != nil {
		t.Fatal(err)
	}
	spec, template, err := fixture.SpecAndTemplate(&frozen)
	if err != nil {
		t.Fatal(err)
	}
	spec.Report = &assayv1alpha1.Report{Tables: []assayv1alpha1.ReportTable{
		{Name: "mine", Title: "Rows", Columns: []assayv1alpha1.ReportColumn{{Title: "rows/s", Metric: "speed"}}},
	}}
	again, err := experiment.Freeze(frozen.Run, spec, template)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(again); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string]string{"md": "### Rows", "csv": "arm,rows/s,rows/s low,rows/s high"} {
		out, _, err := assay(t, "results", folder, "--table", "mine", "-o", form)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("--table mine -o %s does not print %q (%v):\n%s", form, want, err, out)
		}
	}
	if _, _, err := assay(t, "results", folder, "--table", "yours"); err == nil ||
		!strings.Contains(err.Error(), `no table "yours"; spec.report.tables has mine`) {
		t.Errorf("an unknown table: %v", err)
	}
}

// Stored forms and forms rendered from the evidence are the same.
func TestReport_MissingFormsAreRendered(t *testing.T) {
	folder := judgedLedger(t)
	for form, key := range map[string]func(int) string{
		"md": ledger.ReportKey, "html": ledger.HTMLKey, "csv": ledger.TableKey, "parquet": ledger.ParquetKey,
	} {
		lies, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(key(0))))
		if err != nil {
			t.Fatal(err)
		}
		before, _, err := assay(t, "report", folder, "--format", form)
		if err != nil || before != string(lies) {
			t.Fatalf("%s differs from the object in the ledger (%v)", form, err)
		}
		if err := os.Remove(filepath.Join(folder, filepath.FromSlash(key(0)))); err != nil {
			t.Fatal(err)
		}
		after, _, err := assay(t, "report", folder, "--format", form)
		if err != nil || after != before {
			t.Errorf("%s made from the evidence differs from the one that lay there (%v)", form, err)
		}
	}
}

// Stored texts and tables are untrusted. A spreadsheet would evaluate their formulas.
func TestReport_ForgedTableIsNotPrinted(t *testing.T) {
	folder := judgedLedger(t)
	for form, key := range map[string]string{"csv": ledger.TableKey(0), "md": ledger.ReportKey(0)} {
		want, _, err := assay(t, "results", folder, "-o", form)
		if err != nil {
			t.Fatal(err)
		}
		forged := []byte("arm\n=HYPERLINK(\"https://evil.example.org\")\n")
		if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(key)), forged, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"report", "results"} {
			if out, _, err := assay(t, command, folder, "-o", form); err != nil || out != want {
				t.Errorf("%s -o %s gives %.200q (%v)", command, form, out, err)
			}
		}
	}
}

// Users with a key of a ledger can replace its report. Its scripts must not run.
func TestReport_ForgedPageRunsNoScript(t *testing.T) {
	folder := judgedLedger(t)
	ours, _, err := assay(t, "report", folder, "-o", "html")
	if err != nil {
		t.Fatal(err)
	}
	beginning := ours[:strings.Index(ours, "<meta name=")]
	if !strings.Contains(beginning, "default-src 'none'") || !strings.Contains(beginning, "form-action 'none'; base-uri 'none'") {
		t.Fatalf("a report begins with\n%s", beginning)
	}
	for _, forged := range []string{"<script>alert(1)</script>", "<!doctype html>\n<html><head><script>alert(1)</script>", ""} {
		if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(ledger.HTMLKey(0))), []byte(forged), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"report", "results"} {
			if out, _, err := assay(t, command, folder, "-o", "html"); err != nil || out != beginning+forged {
				t.Errorf("%s gives %q as %q (%v)", command, forged, out, err)
			}
		}
	}
}

func TestReport_WritesFileAtomically(t *testing.T) {
	folder, target := judgedLedger(t), t.TempDir()
	file := filepath.Join(target, "attempts.parquet")
	out, log, err := assay(t, "report", folder, "-o", file)
	if err != nil || out != "" || !strings.Contains(log, "wrote "+file) {
		t.Fatalf("%v %q %q", err, out, log)
	}
	rows, err := parquet.ReadFile[export.Row](file)
	if err != nil || len(rows) == 0 || rows[0].Run == "" {
		t.Errorf("%d rows (%v)", len(rows), err)
	}
	if _, _, err := assay(t, "report", folder, "-o", filepath.Join(target, "no", "such.html")); err == nil {
		t.Error("a folder that is missing is no error")
	}
	if err := os.Mkdir(filepath.Join(target, "folder.csv"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := assay(t, "report", folder, "-o", filepath.Join(target, "folder.csv")); err == nil {
		t.Error("a folder in the place of the file is no error")
	}
	left, err := os.ReadDir(target)
	if err != nil || len(left) != 2 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}

func TestReport_OpensBrowserOfEnvironment(t *testing.T) {
	folder, log := judgedLedger(t), filepath.Join(t.TempDir(), "opened")
	script := filepath.Join(t.TempDir(), "browser")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nhead -c 15 \"$1\" > "+log+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROWSER", script)
	t.Setenv("TMPDIR", t.TempDir())
	if _, _, err := assay(t, "report", folder, "--open"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(log)
	if err != nil || !strings.EqualFold(string(raw), "<!doctype html>") {
		t.Errorf("the browser saw %q (%v)", raw, err)
	}
}

func TestCompare_SameLedgerHasNoChange(t *testing.T) {
	folder := judgedLedger(t)
	out, _, err := assay(t, "compare", folder, store.FolderURL(folder), "-o", "yaml")
	if err != nil || !strings.Contains(out, "ratio:") || strings.Contains(out, "environment:") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = assay(t, "compare", folder, folder)
	if err != nil || strings.Count(out, "note of ") != 2 || strings.Count(out, "noise limits that could not be judged") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReport_MissingAnalysisNamesCommand(t *testing.T) {
	_, _, err := assay(t, "report", clitest.HandwrittenLedger(t))
	if err == nil || !strings.Contains(err.Error(), "has no analysis yet") ||
		!strings.Contains(err.Error(), "assay analyze --ledger URL --write") {
		t.Errorf("error %v", err)
	}
}

func TestCommands_WaveOutsideOfTheLedgerIsUsageError(t *testing.T) {
	folder := judgedLedger(t)
	for _, command := range [][]string{
		{"report", folder}, {"results", folder}, {"analyze", "--ledger", store.FolderURL(folder)}, {"compare", folder, folder},
	} {
		for _, wave := range []string{"1", "5", "-3", "-1"} {
			_, _, err := assay(t, append(command, "--wave", wave)...)
			if cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "invalid --wave "+wave+": allowed are 0, because") {
				t.Errorf("%s --wave %s: %v", command[0], wave, err)
			}
		}
		if _, _, err := assay(t, append(command, "--wave", "0")...); err != nil {
			t.Errorf("%s --wave 0: %v", command[0], err)
		}
	}
}

func TestHelp_PluginNamesKubectl(t *testing.T) {
	cli.Program = "kubectl assay"
	t.Cleanup(func() { cli.Program = "assay" })
	out, _, err := assay(t, "gate", "--help")
	if err != nil || !strings.Contains(out, "kubectl assay gate [NAME]") || !strings.Contains(out, "  kubectl assay gate -f run.yaml") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(out, "--kubeconfig") || !strings.Contains(out, `Use "kubectl assay options"`) {
		t.Errorf("the flags of the connection are not where they belong:\n%s", out)
	}
	out, _, err = assay(t, "options")
	if err != nil || !strings.Contains(out, "--kubeconfig") || !strings.Contains(out, "--request-timeout") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReference_CompleteAndReproducible(t *testing.T) {
	first := reference(New())
	for _, want := range []string{"## assay gate\n", "## assay ledger create-bucket\n", "Exit codes:", "--request-timeout"} {
		if !strings.Contains(first, want) {
			t.Errorf("the reference lacks %q", want)
		}
	}
	for _, other := range []string{"## assay reference", "## assay help", "/root/"} {
		if strings.Contains(first, other) {
			t.Errorf("the reference has %q", other)
		}
	}
	t.Setenv("HOME", "/home/somebody")
	if second := reference(New()); second != first {
		t.Error("the reference depends on who generates it")
	}
}

func TestCommands_NoClusterNamesKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, args := range [][]string{{"get"}, {"watch", "x"}, {"run", "testdata/adaptive.yaml"}, {"results", "my-run"}} {
		_, _, err := assay(t, args...)
		if err == nil || !strings.Contains(err.Error(), "no cluster is configured: name a kubeconfig with --kubeconfig or KUBECONFIG") ||
			cli.ExitCode(err) != cli.ExitError {
			t.Errorf("assay %s: error %v", strings.Join(args, " "), err)
		}
	}
}

func TestVersion(t *testing.T) {
	for form, want := range map[string]string{"text": "assay version " + cli.Version + "\n", "yaml": "version: " + cli.Version + "\n"} {
		if out, _, err := assay(t, "version", "-o", form); err != nil || out != want {
			t.Errorf("-o %s prints %q (%v)", form, out, err)
		}
	}
}
