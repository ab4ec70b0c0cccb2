package plan

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
	"assay.dev/assay/operator/test/golden"
)

// analysisFinds adds the analysis of a wave whose blocks all ran, with the number of valid blocks in total and the half-width of the widest
// interval.
func (w *world) analysisFinds(verdict experiment.Verdict, valid int, halfWidth float64) {
	what := fmt.Sprintf("%s from %d valid blocks, ±%.1f %%", verdict, valid, 100*halfWidth)
	w.analyzed(what, design.Findings{}, func(f *design.Findings) {
		w.Ledger.Verdict = verdict
		f.Valid, f.HalfWidth = valid, &halfWidth
	})
}

// runs completes all blocks of the newest wave after some minutes.
func (w *world) runs(minutes int) {
	w.after(time.Duration(minutes) * time.Minute).blocksDone(len(w.Ledger.Newest.Blocks))
}

// restart clears all state that is neither in the ledger nor in the API server, as a restart of the operator does.
func (w *world) restart() {
	w.happens("another operator becomes the leader", func() {
		copied := w.Ledger
		w.Ledger = LedgerState{
			Experiment: copied.Experiment, Waves: copied.Waves, Newest: &copied.Waves[len(copied.Waves)-1],
			Trials: copied.Trials, Done: copied.Done, DoneBlocks: copied.DoneBlocks, Open: copied.Open,
			Analysed: copied.Analysed, Verdict: copied.Verdict, Why: copied.Why, Findings: copied.Findings,
		}
	})
}

func adaptive(max int32, width string) func(*assayv1alpha1.BenchmarkRunSpec) {
	return func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Design.Blocks = assayv1alpha1.Blocks{Min: 10, Max: max}
		spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: width}
	}
}

func confirming(spec *assayv1alpha1.BenchmarkRunSpec) {
	spec.Design.Confirm = &assayv1alpha1.Confirm{Blocks: 3}
}

// screened adds the analysis of a screening whose verdict needs confirmation.
func (w *world) screened(verdict experiment.Verdict) {
	w.analyzed("screened "+string(verdict), design.Findings{Screened: verdict, Valid: 4}, func(*design.Findings) {
		w.Ledger.Verdict, w.Ledger.Why = experiment.VerdictInconclusive, "fused: screened "+string(verdict)+", not confirmed"
	})
}

func TestDecide_AdaptiveStories(t *testing.T) {
	stories := map[string]struct {
		edit  []func(*assayv1alpha1.BenchmarkRunSpec)
		story func(w *world)
	}{
		"blocks lost to noise are replaced": {nil, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.analyzed("one of 4 blocks is noisy", design.Findings{Valid: 3, Lost: 1},
				func(*design.Findings) { w.Ledger.Verdict = experiment.VerdictInconclusive })
			w.runs(1)
			w.analyzed("4 blocks are valid", design.Findings{Valid: 4, Lost: 1}, func(*design.Findings) { w.Ledger.Verdict = experiment.VerdictGo })
		}},
		"blocks that fail in the program are not replaced": {nil, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.analyzed("the candidate crashed in 2 blocks", design.Findings{Valid: 2},
				func(*design.Findings) { w.Ledger.Verdict = experiment.VerdictInvalid })
		}},
		"a machine that is always noisy": {nil, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			for wave := 1; wave <= 4; wave++ {
				w.analyzed("every block so far is noisy", design.Findings{Lost: 4 * wave},
					func(*design.Findings) { w.Ledger.Verdict = experiment.VerdictInvalid })
				if Ended(w.Run) {
					return
				}
				w.runs(4)
			}
		}},
		"precision reached": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(40, "1%")}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.analysisFinds(experiment.VerdictGo, 10, 0.03)
			w.runs(4)
			w.analysisFinds(experiment.VerdictGo, 14, 0.012)
			w.runs(4)
			w.analysisFinds(experiment.VerdictGo, 18, 0.0099)
		}},
		"blocks.max reached first": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(16, "1%")}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.analysisFinds(experiment.VerdictInconclusive, 10, 0.05)
			w.runs(4)
			w.analysisFinds(experiment.VerdictInconclusive, 14, 0.04)
			w.runs(2)
			w.analysisFinds(experiment.VerdictInconclusive, 16, 0.03)
		}},
		"the budget of trials ends first": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(40, "1%"), func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Budget.Trials = 155
		}}, func(w *world) {
			w.happens("the run is created with a budget of 155 trials, 12 to a block", func() {})
			w.runs(4)
			w.analysisFinds(experiment.VerdictInconclusive, 10, 0.05)
			w.runs(2)
			w.analysisFinds(experiment.VerdictInconclusive, 12, 0.04)
		}},
		"the wall clock ends between waves": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(40, "1%")}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(119)
			w.after(time.Minute)
			w.analysisFinds(experiment.VerdictInconclusive, 10, 0.03)
		}},
		"a Go that fresh blocks confirm on another node": {[]func(*assayv1alpha1.BenchmarkRunSpec){confirming}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.screened(experiment.VerdictGo)
			w.runs(3)
			w.analyzed("confirmed", design.Findings{Screened: experiment.VerdictGo, Valid: 4, ConfirmValid: 3}, func(*design.Findings) {
				w.Ledger.Verdict, w.Ledger.Why = experiment.VerdictGo, "fused: confirmed on fresh blocks"
			})
		}},
		"a Go that fresh blocks do not confirm": {[]func(*assayv1alpha1.BenchmarkRunSpec){confirming}, func(w *world) {
			w.Nodes = w.Nodes[:1]
			w.happens("the run is created on a cluster with one node", func() {})
			w.runs(4)
			w.screened(experiment.VerdictGo)
			w.runs(3)
			w.analyzed("a confirming block is noisy", design.Findings{Screened: experiment.VerdictGo, Valid: 4, ConfirmValid: 2, ConfirmLost: 1},
				func(*design.Findings) {
					w.Ledger.Verdict, w.Ledger.Why = experiment.VerdictInconclusive, "fused: screened Go, not confirmed"
				})
			w.runs(1)
			w.analyzed("not confirmed", design.Findings{Screened: experiment.VerdictGo, Valid: 4, ConfirmValid: 3, ConfirmLost: 1},
				func(*design.Findings) {
					w.Ledger.Verdict, w.Ledger.Why = experiment.VerdictInconclusive, "fused: screened Go, not confirmed"
				})
		}},
		"an Inconclusive has nothing to confirm": {[]func(*assayv1alpha1.BenchmarkRunSpec){confirming}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.analysisFinds(experiment.VerdictInconclusive, 4, 0.05)
		}},
		"cancel in the second wave": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(40, "1%")}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.analysisFinds(experiment.VerdictInconclusive, 10, 0.03)
			w.after(time.Minute).blocksDone(1)
			w.happens("cancel is set to true", func() { w.Run.Spec.Cancel = ptr.To(true) })
			w.after(10*time.Second).analysisFinds(experiment.VerdictInconclusive, 11, 0.02)
		}},
		"cancel between waves": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(40, "1%")}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.happens("suspend is set to true", func() { w.Run.Spec.Suspend = ptr.To(true) })
			w.analysisFinds(experiment.VerdictInconclusive, 10, 0.03)
			w.happens("cancel is set to true", func() { w.Run.Spec.Cancel = ptr.To(true) })
		}},
		"suspended between waves": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(40, "1%")}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.happens("suspend is set to true", func() { w.Run.Spec.Suspend = ptr.To(true) })
			w.analysisFinds(experiment.VerdictInconclusive, 10, 0.014)
			w.after(time.Hour).happens("suspend is set to false", func() { w.Run.Spec.Suspend = ptr.To(false) })
			w.runs(4)
			w.analysisFinds(experiment.VerdictGo, 14, 0.01)
		}},
		"another operator between waves": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(40, "1%")}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.analysisFinds(experiment.VerdictInconclusive, 10, 0.014)
			w.restart()
			w.runs(4)
			w.restart()
			w.analysisFinds(experiment.VerdictGo, 14, 0.01)
		}},
		"a node that is lost in the second wave": {[]func(*assayv1alpha1.BenchmarkRunSpec){adaptive(40, "1%")}, func(w *world) {
			w.happens("the run is created", func() {})
			w.runs(4)
			w.analysisFinds(experiment.VerdictInconclusive, 10, 0.014)
			w.after(time.Minute).blocksDone(1)
			w.happens("node-a is gone", func() { w.Nodes = w.Nodes[1:] })
			w.after(10*time.Second).analysisFinds(experiment.VerdictInconclusive, 11, 0.013)
			w.runs(4)
			w.analysisFinds(experiment.VerdictGo, 15, 0.01)
		}},
		"a search to its answer": {[]func(*assayv1alpha1.BenchmarkRunSpec){searching}, func(w *world) {
			w.Template.Parameters = append(w.Template.Parameters, assayv1alpha1.Parameter{Name: "rate", Type: assayv1alpha1.IntegerParameter})
			w.Template.Parameters[1].Default = ptr.To("1")
			w.happens("the run is created: 1 to 128 in steps of a factor of √2", func() {})
			for !Ended(w.Run) {
				w.runs(len(w.Ledger.Newest.Blocks))
				w.searched(map[string]int{"loop": 11, "fused": 90})
			}
		}},
	}
	for name, tc := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.promptEngine = true
			for _, edit := range tc.edit {
				edit(&w.Run.Spec)
			}
			tc.story(w)
			golden.Check(t, filepath.Join("testdata", "adaptive", storyFile(name)), w.log.String())
		})
	}
	got, err := filepath.Glob(filepath.Join("testdata", "adaptive", "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(stories) {
		t.Errorf("%d stories and %d golden files in testdata/adaptive: delete those without a story", len(stories), len(got))
	}
}

func searching(spec *assayv1alpha1.BenchmarkRunSpec) {
	spec.Sweep, spec.Gates = nil, nil
	spec.Search = &assayv1alpha1.Search{
		Maximize:  "latency",
		Over:      assayv1alpha1.SearchAxis{Axis: "rate", Low: resource.MustParse("1"), High: resource.MustParse("128"), Resolution: "41.42%"},
		SubjectTo: []assayv1alpha1.Constraint{{Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "2ms"}},
	}
}

// searched is the analysis of a search over systems that break above the capacity of each arm.
func (w *world) searched(capacity map[string]int) {
	exp, rules := w.Ledger.Experiment, w.Ledger.Experiment.Search()
	findings := design.Findings{}
	for arm := range exp.Arms {
		levels := map[int]*search.Level{}
		for i := range w.Ledger.Waves {
			wave := &w.Ledger.Waves[i]
			for _, block := range wave.Blocks {
				for _, index := range unique(block.Order) {
					cell := wave.Cells[index]
					if cell.Arm != arm {
						continue
					}
					countBlock(levels, exp, wave, cell, capacity[exp.Arms[arm].Name])
				}
			}
		}
		known := design.SearchedArm{Arm: exp.Arms[arm].Name}
		for i := range rules.Loads {
			if levels[i] != nil {
				known.Levels = append(known.Levels, *levels[i])
			}
		}
		findings.Search = append(findings.Search, known)
	}
	text := ""
	for _, arm := range findings.Search {
		text += fmt.Sprintf("; %s: %s", arm.Arm, rules.Conclude(arm.Levels).Reason)
	}
	w.analyzed(text[2:], findings, func(*design.Findings) { w.Ledger.Verdict, w.Ledger.Why = "", text[2:] })
}

// countBlock counts one block of one load.
func countBlock(levels map[int]*search.Level, exp *experiment.Experiment, wave *record.Wave, cell record.Cell, capacity int) {
	load := cell.Parameters["rate"]
	index := -1
	for i, point := range exp.Points {
		if point.Parameters["rate"] == load {
			index = i
		}
	}
	if levels[index] == nil {
		levels[index] = &search.Level{Index: index, Load: load}
	}
	level := levels[index]
	finding := &level.Probe
	if wave.Purpose == record.Confirm {
		if level.Fresh == nil {
			level.Fresh = &search.Finding{}
		}
		finding = level.Fresh
	}
	finding.Planned++
	finding.Blocks++
	finding.Outcome = search.Feasible
	var number int
	if _, err := fmt.Sscan(load, &number); err == nil && number > capacity {
		finding.Outcome, finding.Constraint = search.Infeasible, "latency median AtMost 2ms"
	}
}

func unique(slots []int) []int {
	var out []int
	seen := map[int]bool{}
	for _, slot := range slots {
		if !seen[slot] {
			seen[slot] = true
			out = append(out, slot)
		}
	}
	return out
}
