package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

// runWave simulates the blocks of a wave, its analysis and Argo.
func (w *world) runWave(number int, machine fixture.Machine) {
	w.t.Helper()
	w.runWaveUnless(number, machine, func(string) bool { return false })
}

// runWaveUnless simulates a wave of which some attempts are lost, by the keys of their objects.
func (w *world) runWaveUnless(number int, machine fixture.Machine, lost func(key string) bool) {
	w.t.Helper()
	name := executor.Name(w.run.Name, number)
	w.until("workflow "+name+" exists", func() error { _, err := w.getWorkflow(name); return err })
	store := w.ledger()
	exp, err := ledger.ReadExperiment(w.ctx, store)
	w.must(err)
	machine.Seed = uint64(number + 1)
	objects, err := fixture.Objects(exp, nil, machine.Run(exp, w.wave(number)))
	w.must(err)
	for key, raw := range objects {
		if strings.HasPrefix(key, ledger.AttemptsPrefix) && !lost(key) {
			w.must(store.Create(w.ctx, key, raw))
		}
	}
	evidence, err := ledger.ReadEvidence(w.ctx, store, number)
	w.must(err)
	raw, err := json.Marshal(analyze.Evidence(exp, evidence, number))
	w.must(err)
	w.analysisPod(w.writeAnalysis(number, raw))
	w.argoSays(name, "Succeeded", "")
}

// runToTheEnd simulates all waves and returns them with the status.
func (w *world) runToTheEnd(machine fixture.Machine) ([]record.Wave, assayv1alpha1.BenchmarkRunStatus) {
	w.t.Helper()
	for number := 0; ; number++ {
		w.runWave(number, machine)
		next := executor.Name(w.run.Name, number+1)
		over := false
		w.until(fmt.Sprintf("wave %d is followed by another, or the run has ended", number), func() error {
			over = meta.IsStatusConditionTrue(w.get().Status.Conditions, assayv1alpha1.ConditionComplete)
			if over {
				return nil
			}
			_, err := w.getWorkflow(next)
			return err
		})
		if !over {
			continue
		}
		waves, problems, err := ledger.ReadWaves(w.ctx, w.ledger(), -1)
		w.must(err)
		if len(problems) > 0 || len(waves) != number+1 {
			w.t.Errorf("%d waves in the ledger, want %d; problems %v", len(waves), number+1, problems)
		}
		return waves, w.get().Status
	}
}

func TestAdaptiveRun_AddsWavesAndConfirmsOnAnotherNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Design.Blocks = assayv1alpha1.Blocks{Min: 10, Max: 30}
		spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "2.5%"}
		spec.Design.Confirm = &assayv1alpha1.Confirm{Blocks: 4}
		spec.Gates = []assayv1alpha1.Gate{{
			Name: "gain-at-8", Metric: "throughput", Candidate: "fused-m4r", At: assayv1alpha1.ParameterValues{"batchSize": "8"},
			Op: assayv1alpha1.RatioAtLeast, Bound: "1.5",
		}}
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveCPUs
	})
	w.addNode("node-b", "4")
	w.must(adminCreate(w))
	waves, status := w.runToTheEnd(fixture.Machine{Seconds: fixture.ScanSeconds, Noise: fixture.Noise{Block: 0.02, Arm: 0.02}})

	if len(waves) < 3 {
		t.Fatalf("%d waves, want two or more that screen and one that confirms", len(waves))
	}
	planned, measured, nodes := 0, 0, map[record.Purpose]map[string]bool{record.Screen: {}, record.Confirm: {}}
	for i, wave := range waves {
		want := record.Screen
		if i == len(waves)-1 {
			want = record.Confirm
		}
		if wave.Purpose != want {
			t.Errorf("wave %d is to %s, want %s", i, wave.Purpose, want)
		}
		for _, block := range wave.Blocks {
			planned, measured = planned+block.Trials(), measured+len(block.Order)
			nodes[wave.Purpose][block.Lease.Node] = true
		}
	}
	for node := range nodes[record.Confirm] {
		if nodes[record.Screen][node] {
			t.Errorf("node %s screened and confirmed although there is another", node)
		}
	}
	if status.Verdict != assayv1alpha1.VerdictGo || status.Best != "fused-m4r" || *status.Wave != int32(len(waves)-1) ||
		status.Execution != executor.Name("scan", len(waves)-1) {
		t.Errorf("verdict %s, best %s, wave %d, workflow %s", status.Verdict, status.Best, *status.Wave, status.Execution)
	}
	if want := fmt.Sprintf("%d/%d", measured, measured); status.Progress != want || status.Trials.Planned != int32(planned) {
		t.Errorf("progress %s, trials %+v, want %s", status.Progress, status.Trials, want)
	}
	for i := range waves {
		w.untilEvent("WaveStarted", fmt.Sprintf("wave %d started", i))
	}
}

// The node of a block fails during the block. Of exactly three requested blocks, two are complete.
func TestInterruptedBlock_IsReplacedBeyondBlocksMax(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Design.Blocks = assayv1alpha1.Blocks{Min: 3, Max: 3}
		// The results of the lost part are unknown, so a gate that requires all trials cannot be decided.
		spec.Gates = []assayv1alpha1.Gate{
			{Name: "gain-at-8", Metric: "throughput", Candidate: "fused-m4r", At: assayv1alpha1.ParameterValues{"batchSize": "8"},
				Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"},
			{Name: "most-complete", Op: assayv1alpha1.Completes, Bound: "50%"},
		}
	})
	w.must(adminCreate(w))
	machine := fixture.Machine{Seconds: fixture.ScanSeconds, Noise: fixture.Noise{Block: 0.01, Arm: 0.01}}
	w.runWaveUnless(0, machine, func(key string) bool {
		return strings.Contains(key, "/w000-b0001-s") && key[strings.LastIndex(key, "-s"):] > "-s00002"
	})
	var status assayv1alpha1.BenchmarkRunStatus
	w.until("a second wave begins", func() error { _, err := w.getWorkflow(executor.Name(w.run.Name, 1)); return err })
	w.runWave(1, machine)
	w.until("the run ends", func() error {
		status = w.get().Status
		if !meta.IsStatusConditionTrue(status.Conditions, assayv1alpha1.ConditionComplete) {
			return errors.New("it goes on")
		}
		return nil
	})
	waves, problems, err := ledger.ReadWaves(w.ctx, w.ledger(), -1)
	w.must(err)
	if len(problems) > 0 || len(waves) != 2 || len(waves[1].Blocks) != 1 {
		t.Fatalf("problems %v, waves %+v: want a second wave of one block", problems, waves)
	}
	if status.Verdict != assayv1alpha1.VerdictGo || status.Trials.Planned <= status.Trials.Done {
		t.Errorf("verdict %s, trials %+v: want Go, and the missing trials among the planned; gates %+v",
			status.Verdict, status.Trials, status.Gates)
	}
}

func adminCreate(w *world) error {
	if err := admin.Create(w.ctx, w.template); err != nil {
		return err
	}
	return admin.Create(w.ctx, w.run)
}

func TestSearch_EndsWithAnswerForEveryArm(t *testing.T) {
	t.Parallel()
	capacity := map[string]float64{"loop": 600, "fused-m4r": 1500}
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		template.Parameters = append(template.Parameters, assayv1alpha1.Parameter{Name: "rate", Type: assayv1alpha1.IntegerParameter})
		spec.Parameters = assayv1alpha1.ParameterValues{"batchSize": "1"}
		spec.Sweep, spec.Gates, spec.Predictions = nil, nil, nil
		spec.Arms = []assayv1alpha1.Arm{spec.Arms[0], spec.Arms[2]}
		spec.Search = &assayv1alpha1.Search{
			Maximize:  "throughput",
			Over:      assayv1alpha1.SearchAxis{Axis: "rate", Low: resource.MustParse("100"), High: resource.MustParse("4k"), Resolution: "20%"},
			SubjectTo: []assayv1alpha1.Constraint{{Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "4ms"}},
		}
	})
	w.must(adminCreate(w))
	waves, status := w.runToTheEnd(fixture.Machine{
		Noise: fixture.Noise{Block: 0.01, Arm: 0.01},
		Seconds: func(point record.Point, arm string) float64 {
			rate, err := strconv.ParseFloat(point.Parameters["rate"], 64)
			w.must(err)
			return 0.004 * math.Pow(rate/capacity[arm], 2)
		},
	})
	if waves[0].Purpose != record.Search || waves[len(waves)-1].Purpose != record.Confirm {
		t.Errorf("the first wave is to %s and the last to %s", waves[0].Purpose, waves[len(waves)-1].Purpose)
	}
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonSearchEnded,
		"breaks latency median at most 4.000 ms")
	if status.Verdict != "" || len(status.Search) != 2 {
		t.Fatalf("verdict %q and answers %+v", status.Verdict, status.Search)
	}
	for _, answer := range status.Search {
		low, err := strconv.ParseFloat(answer.Interval.Low, 64)
		w.must(err)
		high, err := strconv.ParseFloat(answer.Interval.High, 64)
		w.must(err)
		if truth := capacity[answer.Arm]; truth < low || truth >= high || answer.FeasibleMax != answer.Interval.Low || answer.Value == "" ||
			!strings.Contains(answer.Reason, "confirmed on fresh blocks") {
			t.Errorf("the capacity of %s is %v and the answer %+v", answer.Arm, truth, answer)
		}
	}
}

func TestInvalidDesigns_AreRejectedWithFieldAndRemedy(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		edit  func(*assayv1alpha1.BenchmarkRunSpec)
		texts []string
	}{
		"a null arm with one arm only": {
			func(spec *assayv1alpha1.BenchmarkRunSpec) {
				spec.Arms, spec.Gates, spec.Predictions, spec.Design.NullArm = spec.Arms[:1], nil, nil, true
			},
			[]string{"spec.design.nullArm", "add an arm, or remove nullArm"},
		},
		"a stopping rule that can never be met within the budget": {
			func(spec *assayv1alpha1.BenchmarkRunSpec) {
				spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"}
				spec.Budget.Trials = 200
			},
			[]string{"spec.budget.trials", "could never add one to the first 4", "raise the budget, or remove stop"},
		},
		"a search axis that is also a sweep axis": {
			func(spec *assayv1alpha1.BenchmarkRunSpec) {
				spec.Gates, spec.Predictions = nil, nil
				spec.Search = &assayv1alpha1.Search{
					Maximize:  "throughput",
					Over:      assayv1alpha1.SearchAxis{Axis: "batchSize", Low: resource.MustParse("1"), High: resource.MustParse("32")},
					SubjectTo: []assayv1alpha1.Constraint{{Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "4ms"}},
				}
			},
			[]string{"spec.sweep.axes[0].name", "is the search axis", "remove it here or from spec.search"},
		},
		"gates that contradict each other": {
			func(spec *assayv1alpha1.BenchmarkRunSpec) {
				spec.Gates = []assayv1alpha1.Gate{
					{Name: "least", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "2"},
					{Name: "most", Metric: "throughput", Op: assayv1alpha1.RatioAtMost, Bound: "1.5"},
				}
			},
			[]string{"spec.gates[0]", "no interval meets both; change one"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) { tc.edit(spec) })
			w.must(adminCreate(w))
			w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonInvalidExperiment, tc.texts...)
		})
	}
}
