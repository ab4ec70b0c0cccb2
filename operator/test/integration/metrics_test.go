package integration

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// series returns the lines of the operator's metrics for the test's namespace that contain every text.
func (w *world) series(texts ...string) []string {
	w.t.Helper()
	families, err := w.operator.registry.Gather()
	w.must(err)
	var raw bytes.Buffer
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&raw, family)
		w.must(err)
	}
	var out []string
	for line := range strings.Lines(raw.String()) {
		all := !strings.HasPrefix(line, "#") && strings.Contains(line, w.namespace)
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// untilSeries waits for a number of series.
func (w *world) untilSeries(want int, texts ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d series with %q", want, texts), func() error {
		if got := w.series(texts...); len(got) != want {
			return fmt.Errorf("%d: %q", len(got), got)
		}
		return nil
	})
}

func TestMetrics_FollowRunFromLeaseToEnd(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	w.untilSeries(1, "assay_lease_held{", `node="`+w.namespace+`-node-a"`, `run="scan"`)
	w.untilSeries(1, "assay_run_info{", `phase="Running"`, `template="pir-scan"`, `verdict="None"`)
	w.untilSeries(1, "assay_waves_started_total{", `purpose="screen"`, "} 1")
	w.untilSeries(1, "assay_node_ready{", "-node-a", "} 1")

	w.runBlocks(0, 4)
	w.analyze()
	w.argoSays("scan-w000", "Succeeded", "")
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)

	w.untilSeries(1, "assay_run_info{", `phase="Succeeded"`, `verdict="Go"`, `best="fused-m4r"`)
	w.untilSeries(1, "assay_runs_finished_total{", `phase="Succeeded"`, `verdict="Go"`, "} 1")
	w.untilSeries(1, "assay_trials_finished_total{", `outcome="used"`, "} 144")
	w.untilSeries(1, "assay_run_trials{", `outcome="done"`, "} 192")
	// Two candidates at the two points of batchSize 8.
	w.untilSeries(4, "assay_gate_bound{", `gate="gain-at-8"`, "} 1.5")
	w.untilSeries(1, "assay_comparison_ratio{", `arm="fused-m4r"`, `point="batchSize=8,pendingDelta=0"`, `metric="throughput"`)
	w.untilSeries(1, "assay_node_noise_trials{", "-node-a", "} 144")
	w.untilSeries(0, "assay_lease_held{")

	// A replacement of the operator reports the same metrics, from the ledger.
	results := func() []string {
		return append(w.series("assay_result"),
			append(w.series("assay_comparison"), append(w.series("assay_gate_e"), w.series("assay_node_noise")...)...)...)
	}
	before := results()
	w.operator.stop()
	w.operator.start()
	w.until("the new operator reports the metrics of the old one", func() error {
		if diff := cmp.Diff(before, results()); diff != "" {
			return fmt.Errorf("-before +after:\n%s", diff)
		}
		return nil
	})
	if len(before) < 100 {
		t.Errorf("only %d series of results", len(before))
	}

	w.must(admin.Delete(w.ctx, w.get()))
	w.untilSeries(0, `run="scan"`)
}

func TestMetrics_OfWaitingRun(t *testing.T) {
	t.Parallel()
	first := started(t, nil)
	second := first.beside("later")
	second.create()
	second.untilWaiting()
	first.untilSeries(1, "assay_run_condition{", `run="later"`, `condition="Progressing"`, `reason="WaitingForLease"`, "} 0")
	first.untilSeries(1, "assay_runs{", `phase="Pending"`, "} 1")
}
