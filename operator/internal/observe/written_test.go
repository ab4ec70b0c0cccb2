package observe

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

const trueAnalysis, forgedAnalysis = `{"verdict": "NoGo"}`, `{"verdict": "Go"}`

// analysisPod is a pod of an analysis that reports its digests.
func analysisPod(at time.Time, raw string, edit ...func(*corev1.Pod)) corev1.Pod {
	text := ledger.Written{Analysis: record.SHA256([]byte(raw)), Report: record.SHA256([]byte(raw))}.Text()
	return pod("analyze", corev1.PodSucceeded, append([]func(*corev1.Pod){ended(executor.MainContainer, text, at), func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(at)
		p.Labels = map[string]string{executor.PartLabel: executor.AnalysisPart, executor.WaveLabel: "0"}
	}}, edit...)...)
}

// A client with the keys of the namespace may write any analysis at any time. Only the newest that a pod of an analysis reported counts.
func TestAnalysis_OnlyWhatItsPodReportedCounts(t *testing.T) {
	known := func(raw string) *assayv1alpha1.AnalysisStatus {
		return &assayv1alpha1.AnalysisStatus{SHA256: record.SHA256([]byte(raw)), StartTime: metav1.NewTime(noon)}
	}
	for name, tc := range map[string]struct {
		pods   []corev1.Pod
		status *assayv1alpha1.AnalysisStatus
		counts bool
	}{
		"no pod reported it":                     {nil, nil, false},
		"its pod reported it":                    {[]corev1.Pod{analysisPod(noon, trueAnalysis)}, nil, true},
		"a pod reported another one":             {[]corev1.Pod{analysisPod(noon, forgedAnalysis)}, nil, false},
		"the pod was deleted after acceptance":   {nil, known(trueAnalysis), true},
		"another one was accepted":               {nil, known(forgedAnalysis), false},
		"it was repeated":                        {[]corev1.Pod{analysisPod(noon, forgedAnalysis), analysisPod(noon.Add(time.Minute), trueAnalysis)}, nil, true},
		"it is an earlier one":                   {[]corev1.Pod{analysisPod(noon.Add(time.Minute), forgedAnalysis), analysisPod(noon, trueAnalysis)}, nil, false},
		"it was repeated after acceptance":       {[]corev1.Pod{analysisPod(noon.Add(time.Minute), trueAnalysis)}, known(forgedAnalysis), true},
		"two began in the same second":           {[]corev1.Pod{analysisPod(noon, forgedAnalysis), analysisPod(noon, trueAnalysis)}, nil, true},
		"the pod of a block reported it":         {[]corev1.Pod{analysisPod(noon, trueAnalysis, func(p *corev1.Pod) { p.Labels[executor.PartLabel] = executor.BlockPart })}, nil, false},
		"the pod of another wave reported it":    {[]corev1.Pod{analysisPod(noon, trueAnalysis, func(p *corev1.Pod) { p.Labels[executor.WaveLabel] = "1" })}, nil, false},
		"its container failed":                   {[]corev1.Pod{analysisPod(noon, trueAnalysis, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Terminated.ExitCode = 1 })}, nil, false},
		"the container beside it reported it":    {[]corev1.Pod{analysisPod(noon, trueAnalysis, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Name = "wait" })}, nil, false},
		"it still runs beside an analysis of it": {[]corev1.Pod{analysisPod(noon, trueAnalysis, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Create(t.Context(), ledger.AnalysisKey(0), []byte(trueAnalysis)); err != nil {
				t.Fatal(err)
			}
			run := &assayv1alpha1.BenchmarkRun{Status: assayv1alpha1.BenchmarkRunStatus{Analysis: tc.status}}
			world := &World{Observed: plan.Observed{Run: run, Ledger: plan.LedgerState{Newest: &record.Wave{}}}}
			err = newestAnalysis(t.Context(), s, world, &remembered{}, writtenAnalyses(run, tc.pods))
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			if world.Ledger.Analysed != tc.counts || (world.Analysis != nil) != tc.counts || (world.Accepted != nil) != tc.counts {
				t.Errorf("analysed is %v, want %v (%s)", world.Ledger.Analysed, tc.counts, world.Ledger.Replaced)
			}
			if reported := tc.status != nil || len(writtenAnalyses(run, tc.pods)[0]) > 0; reported && !tc.counts && world.Ledger.Replaced == "" {
				t.Error("it does not say that the analysis was replaced")
			}
		})
	}
}
