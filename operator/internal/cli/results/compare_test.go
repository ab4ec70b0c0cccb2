package results

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/compare"
	"assay.dev/assay/operator/internal/report/pairs"
	"assay.dev/assay/operator/test/clitest"
)

// Every column says its own confidence, and all say a confidence in the same digits.
func TestComparison_ColumnsNameConfidence(t *testing.T) {
	var out bytes.Buffer
	if err := printComparison(&out, compare.Comparison{ConfidenceA: 0.995, ConfidenceB: 0.57, Confidence: 0.57}, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A [99.5 %]  B [57 %]  B/A [57 %]", "the 57 % intervals do not cover drift"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestComparedRuns_ArgumentsThatContradictAreUsageErrors(t *testing.T) {
	many := strings.Fields(strings.Repeat("run ", pairs.MostRuns+1))
	for name, tc := range map[string]struct {
		args      []string
		all, page bool
		says      string
	}{
		"one run in a table":         {[]string{"a"}, false, false, "name two"},
		"three runs in a table":      {[]string{"a", "b", "c"}, false, false, "-o FILE.html"},
		"one run on a page":          {[]string{"a"}, false, true, "compares 2 to"},
		"too many runs on a page":    {many, false, true, "compares 2 to"},
		"all runs in a table":        {nil, true, false, "-o FILE.html"},
		"all runs and names of some": {[]string{"a", "b"}, true, true, "mutually exclusive"},
	} {
		if _, err := comparedRuns(t.Context(), nil, tc.args, tc.all, tc.page, io.Discard); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, err := comparedRuns(t.Context(), nil, []string{"a", "b", "c"}, false, true, io.Discard); err != nil || len(names) != 3 {
		t.Errorf("three runs on a page: %v, %v", names, err)
	}
}

func TestNewestRuns_OnlyThoseWithResults(t *testing.T) {
	var runs []assayv1alpha1.BenchmarkRun
	for i := range pairs.MostRuns + 2 {
		run := assayv1alpha1.BenchmarkRun{}
		run.Name, run.CreationTimestamp = fmt.Sprintf("run-%d", i), metav1.Unix(int64(i), 0)
		run.Status.Analysis = &assayv1alpha1.AnalysisStatus{}
		runs = append(runs, run)
	}
	runs[len(runs)-1].Status.Analysis = nil
	names, left := newestRuns(runs)
	if len(names) != pairs.MostRuns || names[0] != fmt.Sprintf("run-%d", pairs.MostRuns) || left != 1 {
		t.Errorf("%v, and %d more", names, left)
	}
}

func TestComparison_HostileTextIsEscaped(t *testing.T) {
	all := []string{clitest.Hostile}
	differs := []compare.Difference{{Key: clitest.Hostile, A: clitest.Hostile, B: clitest.Hostile}}
	for name, print := range map[string]func(io.Writer) error{
		"a comparison": func(out io.Writer) error {
			return printComparison(out, compare.Comparison{
				A: clitest.Hostile, B: clitest.Hostile, Rows: []compare.Row{{Point: clitest.Hostile, Arm: clitest.Hostile, Metric: clitest.Hostile}}, OnlyA: all, OnlyB: all,
				Environment: differs, Parameters: differs, WarningsA: all, WarningsB: all,
			}, 80)
		},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckPrintable(t, print, false) })
	}
}
