package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/recompute"
	"assay.dev/assay/operator/internal/status"
	"assay.dev/assay/operator/test/folderledger"
)

// A client with the keys of a namespace replaces the objects of an analysis. Readers of the run get the accepted results or an error.
func TestCheckedLedger_ReplacedObjectsAreNeverRead(t *testing.T) {
	const forgedAnalysis, forgedPage = `{"verdict": "Go", "best": "forged"}`, "<script>alert(1)</script>"
	for name, tc := range map[string]struct {
		edit func(*folderledger.Ledger, *assayv1alpha1.BenchmarkRun)
		// warns and refused are parts of a warning of the analysis and of the error.
		warns, refused string
	}{
		"nothing is replaced": {edit: func(*folderledger.Ledger, *assayv1alpha1.BenchmarkRun) {}},
		"the analysis": {edit: func(l *folderledger.Ledger, _ *assayv1alpha1.BenchmarkRun) {
			l.Write(ledger.AnalysisKey(0), []byte(forgedAnalysis))
		}, warns: "a client replaced analysis/000/analysis.json"},
		"the analysis, of a run that an earlier release measured": {edit: func(l *folderledger.Ledger, run *assayv1alpha1.BenchmarkRun) {
			l.Write(ledger.AnalysisKey(0), []byte(forgedAnalysis))
			run.Status.Analysis = nil
		}},
		"the analysis by one that was made again": {edit: func(l *folderledger.Ledger, _ *assayv1alpha1.BenchmarkRun) {
			l.Write(ledger.AnalysisKey(0), append(l.Read(ledger.AnalysisKey(0)), '\n'))
		}, warns: "a client replaced"},
		"an analysis of a further wave": {edit: func(l *folderledger.Ledger, _ *assayv1alpha1.BenchmarkRun) {
			l.Write(ledger.AnalysisKey(1), []byte(forgedAnalysis))
		}},
		"the analysis, and the attempts give another verdict": {edit: func(l *folderledger.Ledger, run *assayv1alpha1.BenchmarkRun) {
			l.Write(ledger.AnalysisKey(0), []byte(forgedAnalysis))
			run.Status.Best = "another"
		}, refused: "use the status, or create a new run"},
		"the analysis of a run that has not ended": {edit: func(l *folderledger.Ledger, run *assayv1alpha1.BenchmarkRun) {
			run.Status.Analysis, run.Status.CompletionTime = nil, nil
		}, refused: "no analysis yet"},
	} {
		t.Run(name, func(t *testing.T) {
			l := folderledger.New(t)
			s, err := l.Open()
			if err != nil {
				t.Fatal(err)
			}
			whole, err := recompute.Ledger(t.Context(), s, 0)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := whole.Objects()
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				l.Write(object.Key, object.Data)
			}
			run := &assayv1alpha1.BenchmarkRun{}
			status.Results(&run.Status, whole.Experiment, whole.Analysis, "")
			run.Status.Wave, run.Status.CompletionTime = ptr.To[int32](0), ptr.To(metav1.Now())
			run.Status.Analysis = &assayv1alpha1.AnalysisStatus{SHA256: whole.Written.Analysis, ReportSHA256: whole.Written.Report}
			tc.edit(l, run)
			l.Write(ledger.HTMLKey(0), []byte(forgedPage))
			checked := checkedLedger(s, run)
			found, err := ReadAnalyzedLedger(t.Context(), checked, "scan", -1)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want one that says %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if found.Analysis.Verdict != whole.Analysis.Verdict || found.Analysis.Best != whole.Analysis.Best {
				t.Errorf("verdict %q of %q, want %q of %q", found.Analysis.Verdict, found.Analysis.Best, whole.Analysis.Verdict, whole.Analysis.Best)
			}
			if warned := slices.ContainsFunc(found.Analysis.Warnings, func(text string) bool {
				return tc.warns != "" && strings.Contains(text, tc.warns)
			}); warned != (tc.warns != "") {
				t.Errorf("warnings %q, want %q", found.Analysis.Warnings, tc.warns)
			}
			for _, key := range []string{ledger.HTMLKey(0), ledger.ParquetKey(0), ledger.TableKey(0)} {
				raw, err := checked.Get(t.Context(), key)
				if err != nil || bytes.Contains(raw, []byte("alert(1)")) {
					t.Errorf("%s is %.100q (%v)", key, raw, err)
				}
			}
			var archive bytes.Buffer
			if err := ledger.WriteArchive(t.Context(), checked, &archive); err != nil {
				t.Errorf("archive: %v", err)
			}
		})
	}
}

// Without its run, the analysis of a ledger in an object store is computed from the attempts.
func TestComputedLedger_StoredAnalysisIsNotRead(t *testing.T) {
	l := folderledger.New(t)
	want := l.Analyze()
	l.Write(ledger.AnalysisKey(0), []byte(`{"verdict": "Go", "best": "forged"}`))
	s, err := l.Open()
	if err != nil {
		t.Fatal(err)
	}
	found, err := ReadAnalyzedLedger(t.Context(), computedLedger(s), "scan", -1)
	if err != nil || found.Analysis.Verdict != want.Verdict || found.Analysis.Best != want.Best {
		t.Errorf("found %+v (%v), want the verdict %q of %q", found, err, want.Verdict, want.Best)
	}
}
