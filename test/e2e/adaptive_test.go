package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// blocksOf are the blocks that left attempts, by wave.
func blocksOf(t *testing.T, name string) map[string]map[string]bool {
	t.Helper()
	waves := map[string]map[string]bool{}
	for _, attempt := range attempts(t, name) {
		block, _ := attempt["block"].(string)
		wave, _, _ := strings.Cut(block, "-")
		if waves[wave] == nil {
			waves[wave] = map[string]bool{}
		}
		waves[wave][block] = true
	}
	return waves
}

// A run asks for more precision than eleven blocks can give, and for a confirmation: the operator adds waves until it may not
// add more, and then one of fresh blocks that has to say the same.
func TestAdaptive_AddsWavesAndConfirmsItsVerdict(t *testing.T) {
	long(t)
	run := smallScan("adaptive", 10)
	run.Spec.Sweep.Axes[0].Values = []string{"8"}
	run.Spec.Design.Blocks.Max = 11
	run.Spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "0.01%"}
	run.Spec.Design.Confirm = &assayv1alpha1.Confirm{Blocks: 5}
	apply(t, run)
	done := untilComplete(t, "adaptive", 8*time.Minute)

	waves := blocksOf(t, "adaptive")
	sizes := map[string]int{}
	total := 0
	for wave, blocks := range waves {
		sizes[wave] = len(blocks)
		total += len(blocks)
	}
	if sizes["w000"] != 10 || len(waves) < 3 || total != 16 {
		t.Errorf("waves have %v blocks: want 10 at first, one more, and 5 to confirm", sizes)
	}
	if done.Status.Verdict != assayv1alpha1.VerdictGo {
		t.Errorf("the verdict is %s: %s", done.Status.Verdict, conditions(done))
	}
	analysis := results(t, "adaptive")
	if analysis["screened"] != "Go" {
		t.Errorf("the screening blocks said %v", analysis["screened"])
	}
	gates, _ := analysis["gates"].([]any)
	for _, gate := range gates {
		gate, _ := gate.(map[string]any)
		if gate["gate"] == "gain-at-8" && number(t, gate, "estimate", "blocks") != 5 {
			t.Errorf("the gate rests on %v: the verdict must rest on the fresh blocks alone", gate["estimate"])
		}
	}
}

// How many queries fit into a batch that is answered within 5.9 ms? The answer is known: the loop takes half a millisecond
// to one and a half per query, as fast as the machine is, and the other arm never takes that long.
func TestSearch_FindsTheLargestBatchWithinALatency(t *testing.T) {
	long(t)
	run := smallScan("search", 3)
	run.Spec.Sweep, run.Spec.Gates = nil, nil
	run.Spec.Design.Blocks.Max = 9
	run.Spec.Design.GateConfidence = "0.95"
	run.Spec.Search = &assayv1alpha1.Search{
		Maximize:  "throughput",
		Over:      assayv1alpha1.SearchAxis{Axis: "batchSize", Low: resource.MustParse("1"), High: resource.MustParse("32"), Resolution: "100%"},
		SubjectTo: []assayv1alpha1.Constraint{{Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "5.9ms"}},
	}
	apply(t, run)
	done := untilComplete(t, "search", 8*time.Minute)

	answers := map[string]assayv1alpha1.SearchStatus{}
	for _, answer := range done.Status.Search {
		answers[answer.Arm] = answer
	}
	loop, fused := answers["loop"], answers["fused-m4r"]
	low, err := strconv.Atoi(loop.FeasibleMax)
	if err != nil || low < 2 || low > 16 || loop.InfeasibleMin == "" || !strings.Contains(loop.BindingConstraint, "latency") {
		t.Errorf("of the loop the answer is %+v", loop)
	}
	if fused.FeasibleMax != "32" || fused.InfeasibleMin != "" {
		t.Errorf("of the fused scan the answer is %+v", fused)
	}
	if waves := blocksOf(t, "search"); len(waves) < 2 {
		t.Errorf("the search took %d waves: the answer must be confirmed on fresh blocks", len(waves))
	}
	if text := fmt.Sprint(conditions(done)); !strings.Contains(text, "Complete=True") {
		t.Errorf("conditions: %s", text)
	}
}

// The other studies on the cluster: their images, templates and every trial work there. Their verdicts are checked by
// hack/e2e.sh on the smoke runs without a cluster, which take the same programs and more blocks. That of curp-batch-delay is
// TestReplicas_HaveSeparatePods.
func TestStudies_RunOnTheCluster(t *testing.T) {
	long(t)
	for _, study := range []string{"rms24-batching", "diskann-insert", "mork-serialisation"} {
		t.Run(study, func(t *testing.T) {
			var run assayv1alpha1.BenchmarkRun
			raw, err := os.ReadFile(filepath.Join(root, "workflows", "studies", study, "smoke.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(raw, &run); err != nil {
				t.Fatal(err)
			}
			run.Spec.Design.Blocks = assayv1alpha1.Blocks{Min: 2, Max: 2}
			run.Spec.Gates = slices.DeleteFunc(run.Spec.Gates, func(gate assayv1alpha1.Gate) bool { return gate.Op != assayv1alpha1.ParityEqual })
			apply(t, &run)
			done := untilComplete(t, run.Name, 6*time.Minute)
			if done.Status.Verdict != assayv1alpha1.VerdictGo {
				t.Errorf("verdict %s: every trial ends, and all agree: %s", done.Status.Verdict, conditions(done))
			}
			analysis := results(t, run.Name)
			if planned, used, warmups := number(t, analysis, "trials", "planned"), number(t, analysis, "trials", "used"),
				number(t, analysis, "trials", "warmups"); used == 0 || used+warmups != planned {
				t.Errorf("planned %d, used %d, warm-ups %d; not in the figures: %v", planned, used, warmups, analysis["excluded"])
			}
		})
	}
}
