package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
	"assay.dev/assay/operator/test/golden"
	"assay.dev/assay/operator/test/scanned"
)

func simulated(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec),
	tamper func([]record.Attempt)) (*experiment.Experiment, *analysis.Analysis) {
	t.Helper()
	exp, result, _ := scanned.Run(t, scanned.Noisy, 8, edit, tamper)
	return exp, result
}

func failOne(attempts []record.Attempt) {
	var last *record.Attempt
	for i := range attempts {
		if attempts[i].Arm == "fused-naive" {
			last = &attempts[i]
		}
	}
	last.Outcome, last.Result, last.Message = record.Failed, nil, "exit status 134: aborted"
}

func TestGolden(t *testing.T) {
	t.Setenv("COLUMNS", "")
	exp, result := simulated(t, nil, failOne)
	var terminal bytes.Buffer
	if err := Terminal(&terminal, exp, result); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"scan.md": Markdown(exp, result), "scan.csv": CSV(exp, result), "scan.txt": terminal.Bytes()} {
		golden.Check(t, filepath.Join("testdata", name), string(got))
	}
}

// hostile are values that a careless table would fall apart over.
var hostile = []string{"1", "a|b", "line\nbreak", `say "hi", ok`, "<script>alert(1)</script>", "`code`", "=1+1", "\x1b[31mred",
	"{{workflow.name}}", `back\slash|`, ""}

func hostileRun(t *testing.T) (*experiment.Experiment, *analysis.Analysis) {
	return simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		template.Parameters[0].Type = assayv1alpha1.StringParameter
		spec.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: hostile}}}
		spec.Gates = []assayv1alpha1.Gate{{Name: "slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "3"}}
		spec.Predictions = nil
	}, func(attempts []record.Attempt) {
		for i := range attempts {
			if attempts[i].Slot%7 == 3 {
				attempts[i].Outcome, attempts[i].Result, attempts[i].Message = record.Failed, nil, "exit 1: | \n ``` <b>"
			}
		}
	})
}

// unescaped are the pipes that Markdown takes for cell borders.
var unescaped = regexp.MustCompile(`(^|[^\\])(\\\\)*\|`)

func TestMarkdown_AnyValueIsEscaped(t *testing.T) {
	exp, result := hostileRun(t)
	columns, tables := 0, 0
	for line := range strings.Lines(string(Markdown(exp, result))) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "|") {
			columns = 0
			if strings.Contains(line, "<script>") || strings.ContainsAny(line, "\r") {
				t.Errorf("not escaped: %q", line)
			}
			continue
		}
		got := 0
		// Neighbouring borders share no character here: cells are padded with spaces.
		for range unescaped.FindAllStringIndex(line, -1) {
			got++
		}
		if columns == 0 {
			columns = got
			tables++
		}
		if got != columns {
			t.Errorf("%d borders in a table with %d: %q", got, columns, line)
		}
		if strings.Contains(line, "<") {
			t.Errorf("HTML in %q", line)
		}
	}
	if tables < 5 {
		t.Errorf("%d tables", tables)
	}
}

func TestCSV_AnyValueIsRetained(t *testing.T) {
	exp, result := hostileRun(t)
	rows, err := csv.NewReader(bytes.NewReader(CSV(exp, result))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + len(hostile)*3; len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for i, value := range hostile {
		for arm := range 3 {
			// An apostrophe is added where a spreadsheet would take the value for a formula. Characters that are not shown are escaped, because
			// a terminal obeys them.
			if got := rows[1+3*i+arm][0]; strings.TrimPrefix(got, "'") != strings.TrimPrefix(Visible(value), "'") {
				t.Errorf("row %d holds %q, want %q", 1+3*i+arm, got, value)
			}
		}
	}
}

func TestTerminal_ControlCharactersAreEscaped(t *testing.T) {
	exp, result := hostileRun(t)
	var out bytes.Buffer
	if err := Terminal(&out, exp, result); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r < ' ' && r != '\n' {
			t.Fatalf("control character %q in %q", r, out.String())
		}
	}
}

func TestReport_EmptyAnalysis(t *testing.T) {
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	result := analyze.Evidence(exp, record.Evidence{}, 0)
	var out bytes.Buffer
	if err := Terminal(&out, exp, result); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "verdict: Invalid") {
		t.Errorf("terminal:\n%s", out.String())
	}
	if md := string(Markdown(exp, result)); !strings.Contains(md, "# benchmarks/pir-batch-scan: Invalid") {
		t.Errorf("markdown:\n%s", md)
	}
	if rows, err := csv.NewReader(bytes.NewReader(CSV(exp, result))).ReadAll(); err != nil || len(rows) != 13 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestReport_SingleArmHasNoRatioColumns(t *testing.T) {
	exp, result := simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms = spec.Arms[:1]
		spec.Arms[0].Baseline = false
		spec.Gates, spec.Predictions = nil, nil
	}, nil)
	if table := string(CSV(exp, result)); strings.Contains(table, "ratio") {
		t.Errorf("table of a single arm:\n%s", table)
	}
	var out bytes.Buffer
	if err := Terminal(&out, exp, result); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "verdict: no verdict") {
		t.Errorf("terminal:\n%s", out.String())
	}
}

// An untrusted analysis may have a hundred thousand warnings that differ in a number only.
func TestWarnings_ManyOfAKindGroupedInLinearTime(t *testing.T) {
	result := &analysis.Analysis{}
	const many = 120_000
	for i := range many {
		result.Warnings = append(result.Warnings, fmt.Sprintf("arm new lost %d trials", i))
	}
	result.Warnings = append(result.Warnings, result.Warnings[:10]...)
	used := cputime.Start()
	got := Warnings(&experiment.Experiment{Arms: []record.Arm{{Name: "new"}}}, result)
	if took := used(); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(got) != 1 || len(got[0].More) != many-1 || got[0].More[0] != "arm new lost 1 trials" {
		t.Errorf("%d groups of %d", len(got), len(got[0].More))
	}
}

// The answer of a comparison stays visible: warnings without end do not push it off the screen.
func TestBrief_AtMostSixLines(t *testing.T) {
	exp, result := simulated(t, nil, nil)
	for i := range 50 {
		result.Warnings = append(result.Warnings, strings.Repeat("w", i+1)+"\x1b[2J")
	}
	result.Cause = &analysis.Cause{Arm: "fused", Trial: "t", Lost: 1, Of: 2, Reason: "\x1b[2J"}
	got := Brief(exp, result)
	if len(got) != 6 || !strings.Contains(got[2], " more") || !strings.Contains(got[3], "cause: 1 of 2 trials") ||
		!strings.Contains(got[4], "trials used") || !strings.HasPrefix(got[5], "verdict: Go, best: ") {
		t.Errorf("%d lines:\n%s", len(got), strings.Join(got, "\n"))
	}
	if strings.ContainsRune(strings.Join(got, ""), '\x1b') {
		t.Error("control characters are printed")
	}
}
