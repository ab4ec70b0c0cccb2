package outcome

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// Commands know the verdict alone, and the status the reason alone.
func TestTable_VerdictHasOneCodeAndReasonOnePhase(t *testing.T) {
	codes, phases := map[experiment.Verdict]int{}, map[string]assayv1alpha1.Phase{}
	for _, row := range Table {
		if row.Reason == "" {
			continue
		}
		if code, known := codes[row.Verdict]; known && code != row.Code {
			t.Errorf("%s: verdict %q has the codes %d and %d", row.Situation, row.Verdict, code, row.Code)
		}
		if phase, known := phases[row.Reason]; known && phase != row.Phase {
			t.Errorf("%s: reason %s has the phases %s and %s", row.Situation, row.Reason, phase, row.Phase)
		}
		codes[row.Verdict], phases[row.Reason] = row.Code, row.Phase
	}
	for verdict, want := range map[experiment.Verdict]int{
		experiment.VerdictGo: 0, experiment.VerdictNoGo: 4, experiment.VerdictInconclusive: 3, experiment.VerdictInvalid: 3, "": 3,
	} {
		if got := Code(verdict); got != want {
			t.Errorf("verdict %q: exit code %d, want %d", verdict, got, want)
		}
	}
}

func TestOf_ReturnsRowOfTable(t *testing.T) {
	for name, tc := range map[string]struct {
		broken  bool
		verdict experiment.Verdict
		phase   assayv1alpha1.Phase
		reason  string
	}{
		"the setup is broken":    {true, experiment.VerdictInvalid, assayv1alpha1.PhaseFailed, assayv1alpha1.ReasonSetupBroken},
		"too few trials":         {false, experiment.VerdictInvalid, assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonTooFewTrials},
		"Go":                     {false, experiment.VerdictGo, assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached},
		"NoGo":                   {false, experiment.VerdictNoGo, assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached},
		"Inconclusive":           {false, experiment.VerdictInconclusive, assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonVerdictReached},
		"no gate":                {false, "", assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonNoVerdict},
		"a verdict of a forgery": {false, "Banana", assayv1alpha1.PhaseSucceeded, assayv1alpha1.ReasonNoVerdict},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(tc.broken, tc.verdict)
			if got.Phase != tc.phase || got.Reason != tc.reason || Phase(got.Reason) != tc.phase || !slices.Contains(Table, got) {
				t.Errorf("%+v", got)
			}
		})
	}
	if got := Phase(assayv1alpha1.ReasonBudgetExhausted); got != assayv1alpha1.PhaseSucceeded {
		t.Errorf("a run whose budget ended is %s", got)
	}
}

func TestMarkdown_TableIsInConcepts(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "concepts.md"))
	if err != nil || !strings.Contains(string(raw), markdown()) {
		t.Errorf("docs/concepts.md (%v) lacks\n%s", err, markdown())
	}
}

// markdown formats the table for documentation.
func markdown() string {
	var out strings.Builder
	out.WriteString("| situation | phase | reason | verdict | exit code |\n|---|---|---|---|--:|\n")
	word := func(text, absent string) string {
		if text == "" {
			return absent
		}
		return "`" + text + "`"
	}
	for _, row := range Table {
		fmt.Fprintf(&out, "| %s | `%s` | %s | %s | %d |\n", row.Situation, row.Phase, word(row.Reason, "the cause"),
			word(string(row.Verdict), "none"), row.Code)
	}
	return out.String()
}
