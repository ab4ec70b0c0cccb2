package observe

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// A run over its budget is stopped by its newest execution, also if the ledger is unreachable.
func TestExecutions_NewestIsThatOfTheNewestWave(t *testing.T) {
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: types.UID("u")}}
	for sentence, tc := range map[string]struct {
		ledger *record.Wave
		waves  []int
		want   int
	}{
		"the ledger is readable":             {&record.Wave{Wave: 1}, []int{0, 1, 2}, 1},
		"the ledger is unreachable":          {nil, []int{2, 0, 1}, 2},
		"unreachable, with four-digit waves": {nil, []int{998, 999, 1000, 1001}, 1001},
		"readable, with four-digit waves":    {&record.Wave{Wave: 1000}, []int{999, 1000}, 1000},
		"unreachable, with one execution":    {nil, []int{0}, 0},
	} {
		var executions []executor.Execution
		for _, wave := range tc.waves {
			executions = append(executions, execution(executor.Name("scan", wave), "u", wave),
				execution(executor.AnalysisName("scan", wave, 1), "u", wave))
		}
		world := &World{Observed: plan.Observed{Run: run, Ledger: plan.LedgerState{Newest: tc.ledger}}}
		sortExecutions(world, executions)
		if want := executor.Name("scan", tc.want); world.Wave == nil || world.Wave.Name != want {
			t.Errorf("%s: it is %s, want %s", sentence, fmt.Sprint(world.Wave), want)
		}
	}
}
